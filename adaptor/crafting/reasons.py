"""Why a site makes a request, gives one up, or makes none: for each case, one sentence with the numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

from adaptor.crafting.fits import RequestShape
from adaptor.crafting.places import CraftingSituation
from adaptor.crafting.situation import Demand, PilotView, SiteState
from adaptor.model import Limits, PilotState, Request
from adaptor.units import counted, format_clock, format_duration, format_instant, verb

_CERTAIN = 1.05  # ends that differ by less than this factor are said as one
_VAGUE = 100  # ends that differ by more than this factor are not said
_TAIL = 0.05
"""The part of the weight that is left out at either side of the ends between which a bag is said to end."""
_A_DAY = 20 * 3600.0  # seconds until which a time of the day is understood without its date
_NO_DATE = 1e11  # seconds beyond which no calendar reaches: what some tasks need never starts


def no_answer(view: SiteState) -> str:
    return (
        f"the queue is not known: no new request for {counted(_waiting(view), 'waiting task')} "
        "until the scheduler tells; `adaptor status --sites` says why it does not"
    )


def everything_covered(view: SiteState) -> str:
    return (
        f"the pilots in the system ({listed(view.requests)}) already cover "
        f"the {counted(_waiting(view), 'waiting task')}"
    )


def nothing_left(view: SiteState, uncovered: int) -> str:
    """Why no further request is made for this number of tasks; empty: one may be."""
    if view.requests_left > 0:
        return ""
    if not uncovered:
        return everything_covered(view)
    if view.limit_left:
        return hour_used_up(view, uncovered)
    return (
        f"{limit_used_up(view)}: {uncovered} of {counted(_waiting(view), 'waiting task')} "
        f"{verb(uncovered, 'wait')} until a pilot ends; raise {view.rules.limits.in_system_key} if the site"
        " allows more"
    )


def awaited(now: float, pilots: Sequence[PilotView]) -> str:
    """The first of these pilots to start, and when; empty: one runs already, or there is none."""
    if not pilots or any(pilot.state is PilotState.RUNNING for pilot in pilots):
        return ""
    start, first = min(
        ((pilot.predicted_start or 0.0, pilot) for pilot in pilots),
        key=lambda found: found[0] if found[0] > now else math.inf,
    )
    due = f"expected to start at {_clock(now, start - now)}" if start > now else "queued"
    return f"pilot {first.id} ({counted(first.request.p, 'processor')}) is {due}"


def hour_used_up(view: SiteState, uncovered: int) -> str:
    """The bound on submissions in an hour, from when they go on, and what the user can do."""
    return (
        f"max_submissions is {view.rules.max_submissions} an hour and used up: {uncovered} of "
        f"{counted(_waiting(view), 'waiting task')} {verb(uncovered, 'wait')} for a request until "
        f"{format_clock(view.submissions.again)}; raise max_submissions if the site allows more"
    )


def work_held(view: SiteState, partition: str) -> str:
    """Why no request is made in addition to those that run or are queued."""
    queue = view.queue
    source = queue.in_partition(partition).allowed.work_left.source if queue is not None else ""
    return (
        f"running and queued jobs may take all that {source} allows: no other request until some of it passed"
    )


def better_one_waits(view: SiteState) -> str:
    """Why a pilot stays although a better request is known."""
    return (
        f"a better request waits until {format_clock(view.submissions.again)}: max_submissions is "
        f"{view.rules.max_submissions} an hour and used up"
    )


def limit_used_up(view: SiteState) -> str:
    limits = view.rules.limits
    return f"{limits.in_system_key} is {limits.in_system} and used up ({listed(view.requests)})"


def nothing_possible(situation: CraftingSituation) -> str:
    """Why a heuristic crafted no request for the remaining tasks of a situation; empty: none remain."""
    shape = situation.shape
    if shape.site_processors == 0:
        return "no node is in service now"
    if situation.remaining_tasks == 0:
        return ""
    tasks = counted(situation.remaining_tasks, "task")
    if situation.allowed_requests == 0:
        return none_left(shape.rules.limits, situation.remaining_tasks)
    if shape.widest == 0:
        return f"no request can run {tasks}: {_too_wide(shape)}"
    width = counted(shape.unit.processors, "processor")
    least = format_duration(shape.tr_for(1, shape.rules.limits.max_tr))
    return (
        f"the queue leaves no free slot of {width} for {least}, the least that "
        f"a task needs: no request for {tasks} until such a slot opens"
    )


def none_left(limits: Limits, tasks: int) -> str:
    """Why there is no request for these tasks, where others got all that the limit allows."""
    return (
        f"{limits.in_system_key} is {limits.in_system} and other tasks got the requests that were left: "
        f"no request for {counted(tasks, 'task')} until a pilot ends"
    )


def _too_wide(shape: RequestShape) -> str:
    """A sentence on the need of a task, the limits of the site, and a way out for the user."""
    node = shape.rules.granularity
    if shape.task.processors > node > 1:
        need = counted(shape.task.processors, "processor")
        return f"each needs {need} on one node, but a node has {node}; ask for {node} cpus or fewer"
    need = counted(shape.unit.processors, "processor")
    request_exceeds_task = shape.unit.processors > shape.task.processors
    if request_exceeds_task:
        need += f" (whole nodes of {node})"
    limit = shape.rules.limits.max_proc
    if shape.unit.processors > limit:
        advice = "raise max_proc" if request_exceeds_task else "raise max_proc or ask for fewer cpus"
        return f"each needs {need}, but max_proc is {limit}; {advice}"
    return f"each needs {need}, but the site has {shape.site_processors} in service; choose another site"


def _waiting(view: SiteState) -> int:
    return sum(demand.waiting for demand in view.demands)


def too_short(pilot: PilotView, demands: Iterable[Demand]) -> str:
    """Why a queued pilot can run no waiting task of these."""
    shortest = min(demand.shortest for demand in demands)
    return (
        f"{format_duration(pilot.request.tr)} is too short for every waiting task: "
        f"the shortest needs {format_duration(shortest)}"
    )


def listed(pilots: tuple[PilotView, ...]) -> str:
    """The pilots by state: `pilot 4 running, pilots 5 and 7 queued`."""
    by_state: dict[PilotState, list[str]] = {}
    for pilot in pilots:
        by_state.setdefault(pilot.state, []).append(str(pilot.id))
    return ", ".join(_named(ids, state) for state, ids in by_state.items()) or "no pilots"


def _named(ids: list[str], state: PilotState) -> str:
    if len(ids) == 1:
        return f"pilot {ids[0]} {state.value}"
    if len(ids) > 5:
        return f"{len(ids)} pilots {state.value}"
    return f"pilots {', '.join(ids[:-1])} and {ids[-1]} {state.value}"


def asked(now: float, request: Request, wait: float, where: str) -> str:
    """`6 × 3h in short at 14:10:00`; `wait` in seconds, `where` empty for the only partition."""
    at = f"at {_clock(now, wait)}" if wait > 0 else "now"
    return f"{shown(request)}{f' in {where}' if where else ''} {at}"


def planned(requests: Sequence[str], end: str) -> str:
    """`2 × 1h now + 3 pilots of 6 × 3h at 14:10:00: done about 16:05:00`; `end` is empty where none can be
    named."""
    alike = [each if count == 1 else f"{count} pilots of {each}" for each, count in Counter(requests).items()]
    what = " + ".join(alike) or "what is there"
    return f"{what}: done about {end}" if end else f"{what}: no end is known before tasks have ended"


def better_without(pilot: PilotView, better: str, end: str) -> str:
    """Why a queued request is withdrawn: `better` is planned in its place."""
    keeping = f"keeping the queued {shown(pilot.request)} would"
    return f"{better}; {keeping} be done about {end}" if end else f"{better}; {keeping} take longer"


def nothing_better(tasks: int, ends: Sequence[float], end: str) -> str:
    """Why no request is made in addition to what is there.

    Args:
        ends: for each possible runtime, seconds until that has run the tasks, which is about `end`; empty:
            nothing is there.
        end: empty where none can be named.
    """
    if not ends:
        return f"the limits leave no request that could run any of the {counted(tasks, 'task')} now"
    if min(ends) >= _NO_DATE:
        queued = f"what is queued for the {counted(tasks, 'task')}"
        return f"{queued} never starts, and no further request would either"
    sooner = f"no further request would end the {counted(tasks, 'task')} sooner"
    return f"{sooner} than about {end}" if end else sooner


def end_about(now: float, expected: float, ends: Iterable[tuple[float, float]]) -> str:
    """`16:05:00 (15:20:00 to 17:30:00)`: the expected end, and the range without `_TAIL` at each side; empty
    if that range says nothing, as when one task of many has finished.

    Args:
        expected: seconds from now.
        ends: by belief, seconds from now and the weight; all weights make 1.
    """
    weighed = sorted(ends)
    first, last = _beyond(weighed), _beyond(weighed[::-1])
    if last > _VAGUE * first:
        return ""
    if last <= _CERTAIN * first:
        return _clock(now, expected)
    return f"{_clock(now, expected)} ({_clock(now, first)} to {_clock(now, last)})"


def _beyond(weighed: Sequence[tuple[float, float]]) -> float:
    """The first end up to which the weights add up to more than `_TAIL`."""
    totals = accumulate(weight for _, weight in weighed)
    return next(end for (end, _), total in zip(weighed, totals, strict=True) if total > _TAIL)


def shown(request: Request) -> str:
    """`6 × 3h`; `6 × 20m to 3h` where the scheduler may start it with less than tr."""
    least = "" if request.least is None else f"{format_duration(request.least)} to "
    return f"{request.p} × {least}{format_duration(request.tr)}"


def _clock(now: float, seconds: float) -> str:
    """The time after this number of seconds; with its date where that is no longer clear."""
    if seconds >= _NO_DATE:
        return "never"
    return format_clock(now + seconds) if seconds < _A_DAY else format_instant(now + seconds)
