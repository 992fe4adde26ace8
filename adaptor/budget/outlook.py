"""What a bag that is bought for by requests will cost, and when it will end, with an interval. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adaptor.budget.forecast import FIRST, Estimate, remaining_work, residual_of


class Outlook(msgspec.Struct, frozen=True):
    """With an interval in which each figure lies with probability 0.9."""

    cost: Estimate
    """Credits in the end, those charged already included."""
    end: Estimate | None
    """Epoch seconds; None while nothing is there or asked for that could end it."""
    work: Estimate
    """Seconds of a slot that the tasks without a result still need."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a bag."""

    now: float
    tasks: int
    """Those that have a result or may still have one."""
    finished: Sequence[float]
    """Runtimes in seconds; of very many a sample will do."""
    running: Sequence[float]
    """For how long the others have run."""
    waiting: int
    slots: int
    """Tasks that can run at the same time on what is there or asked for."""
    starts: float
    """When the first of them is there, epoch seconds."""
    charged: float
    """Credits so far, begun charging units of running pilots included."""
    rate: float
    """Credits per second of a slot."""
    unit: float
    """The charging unit, seconds."""
    startup: float


def worth_telling(finished: int, tasks: int) -> bool:
    """Whether enough is known: 30 tasks, fewer in a small bag."""
    return finished >= max(2, min(FIRST, tasks // 4))


def outlook(seen: Seen) -> Outlook:
    """The remaining work (`remaining_work`) at the site's rate, and what is paid besides.

    Each slot ends amid a charging unit and, on average, waits for half a task that runs beside it; at the
    most it wastes a whole unit and starts once more.

    Raises:
        ValueError: fewer than two tasks have finished.
    """
    work = remaining_work(seen.finished, seen.running, seen.waiting)
    if not work.value:
        at = Estimate(seen.now, seen.now, seen.now)
        return Outlook(Estimate(seen.charged, seen.charged, seen.charged), at, work)
    residual = residual_of(seen.finished, seen.running)
    slots = max(1, min(seen.slots, seen.waiting + len(seen.running)))
    extra = (0.0, seen.unit / 2 + residual, seen.unit + seen.startup + 2 * residual)
    works = (work.low, work.value, work.high)
    cost = [seen.charged + seen.rate * (each + slots * more) for each, more in zip(works, extra, strict=True)]
    if not seen.slots:
        return Outlook(Estimate(*cost), None, work)
    begin = max(seen.now, seen.starts)
    later = (0.0, residual, seen.startup + 2 * residual)
    ends = [begin + each / slots + more for each, more in zip(works, later, strict=True)]
    return Outlook(Estimate(*cost), Estimate(*ends), work)
