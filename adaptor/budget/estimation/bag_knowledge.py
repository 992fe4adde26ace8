"""What is known of a bag when its forecast is made: its tasks, its pilots, and what they cost. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from adaptor.budget.accounting.credits import MILLION, in_credits
from adaptor.budget.accounting.entries import Reserved
from adaptor.budget.accounting.tariffs import HOUR, Allocation, Tariff


class BagKnowledge(msgspec.Struct, frozen=True, kw_only=True):
    """What a forecast is made from."""

    now: float
    tasks: int
    """Those that have a result or may still have one."""
    finished: Sequence[float]
    """Runtimes in seconds; of many tasks a sample, of one in `every`."""
    every: int = 1
    running: Sequence[float]
    """Seconds for which the running tasks have run."""
    waiting: int
    slots: int
    """Tasks that the pilots in the system can run at the same time."""
    starts: float
    """When the first of them starts, epoch seconds."""
    charged: float
    """Credits so far, begun charging units of running pilots included."""
    paid: float = 0.0
    """Seconds of slots that are charged already and still to come."""
    rate: float
    """Credits per second of a slot."""
    unit: float
    """The charging unit, seconds."""
    startup: float


class PilotKnowledge(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot of the bag in the system."""

    slots: int
    """Tasks of the bag that it can run at the same time."""
    started: float | None = None
    """Epoch seconds; None while it is queued."""
    predicted_start: float | None = None
    """Epoch seconds; None where nobody has predicted it."""
    granted: float
    """Seconds from its start to its end at the latest."""
    reserved: Reserved | None = None
    """Its reservation in the ledger; None while it has none."""

    def charged(self, now: float) -> int:
        """Millionths of a credit, as if it ended now; 0 while it is queued."""
        if self.started is None or self.reserved is None:
            return 0
        return self.reserved.tariff.charge(self.reserved.kind, self.reserved.p, now - self.started)

    def paid(self, now: float) -> float:
        """Seconds of slots that are left of the charging unit that has begun."""
        if self.started is None or self.reserved is None:
            return 0.0
        elapsed = now - self.started
        until = min(self.reserved.tariff.charged_seconds(elapsed), self.granted)
        return self.slots * max(0.0, until - elapsed)


class BagTasks(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a bag."""

    total: int
    """Those that have a result or may still have one."""
    done: int
    runtimes: Sequence[float]
    """Seconds, of one finished task in `every` (see `RuntimeSample`)."""
    every: int = 1
    started: Sequence[float]
    """Epoch seconds, of each running task."""
    processors: int = 1
    """Of each task."""


def bag_knowledge(
    tasks: BagTasks,
    pilots: Sequence[PilotKnowledge],
    used: int,
    tariffs: Iterable[Tariff],
    kind: Allocation,
    startup: float,
    now: float,
) -> BagKnowledge:
    """What is known of a bag now.

    Args:
        used: millionths of a credit that the bag's ended pilots were charged.
        tariffs: of the sites at which it may run, at least one; the cheapest counts.
        startup: seconds from the start of a pilot until its first task starts, at most.
    """
    price, unit = min((each.price(kind), each.charging_unit) for each in tariffs)
    return BagKnowledge(
        now=now,
        tasks=tasks.total,
        finished=tasks.runtimes,
        every=tasks.every,
        running=[max(0.0, now - start) for start in tasks.started],
        waiting=max(0, tasks.total - tasks.done - len(tasks.started)),
        slots=sum(each.slots for each in pilots),
        starts=_first_start(pilots, now),
        charged=charged_so_far(used, pilots, now),
        paid=sum(each.paid(now) for each in pilots),
        rate=tasks.processors * price / MILLION / HOUR,
        unit=float(unit),
        startup=startup,
    )


def charged_so_far(used: int, pilots: Iterable[PilotKnowledge], now: float) -> float:
    """Credits for what has ended, and for what runs as if it ended now."""
    return in_credits(used + sum(each.charged(now) for each in pilots))


def _first_start(pilots: Iterable[PilotKnowledge], now: float) -> float:
    starts = (each.started or each.predicted_start or now for each in pilots)
    return min(starts, default=math.inf)
