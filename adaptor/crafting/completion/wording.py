"""Why the completion heuristic decides as it does, in one sentence with the numbers."""

from __future__ import annotations

from itertools import accumulate

from adaptor.crafting.completion.search import Choice, Search
from adaptor.model import PilotState
from adaptor.units import counted, format_clock, format_duration, format_instant

_CERTAIN = 1.05
"""Ends that differ by less than this factor are told as one."""
_TAIL = 0.05
"""The part of the weight that is left out at either side of the ends between which a bag is said to end."""
_A_DAY = 20 * 3600.0
"""Seconds until which a time of the day is understood without its date."""
_NO_DATE = 1e11
"""Seconds beyond which no calendar reaches: what some tasks need never starts."""


def completion(search: Search, found: Choice) -> str:
    """`2 × 1h now + 6 × 3h at 14:10: done about 16:05 (15:20 to 17:30)`."""
    words, places = [], search.places
    for made in found.made:
        request = search.request(made, found.set.ends)
        where = f" in {places[made.place].name}" if len(places) > 1 else ""
        at = f"at {_clock(search, made.member.start)}" if made.member.start > 0 else "now"
        words.append(f"{request.p} × {format_duration(request.tr)}{where} {at}")
    return f"{' + '.join(words) or 'what is there'}: done about {_when(search, found)}"


def compared(search: Search, best: Choice, kept: Choice) -> str:
    """Why a request is withdrawn, or a running pilot ended."""
    pilot = best.withdrawn
    assert pilot is not None
    state = "running" if pilot.state is PilotState.RUNNING else "queued"
    without = f"{pilot.request.p} × {format_duration(pilot.request.tr)}"
    return (
        f"{completion(search, best)}; keeping the {state} {without} would be done about {_when(search, kept)}"
    )


def nothing_better(search: Search, kept: Choice) -> str:
    """Why no request is made."""
    tasks = counted(search.tasks, "task")
    if not kept.set.members:
        return f"no request that the limits allow could run any of the {tasks}"
    if min(kept.set.ends) >= _NO_DATE:
        return f"what is queued for the {tasks} never starts, and no further request would either"
    return f"no further request would end the {tasks} sooner than about {_when(search, kept)}"


def _when(search: Search, found: Choice) -> str:
    """`16:05 (15:20 to 17:30)`: the expected end, and the ends that leave out `_TAIL` on either side."""
    weighed = sorted(zip(found.set.ends, (belief.weight for belief in search.believed), strict=True))
    left = _TAIL * sum(weight for _, weight in weighed)
    first, last = _beyond(weighed, left), _beyond(weighed[::-1], left)
    expected = _clock(search, found.set.cost)
    if last <= _CERTAIN * first:
        return expected
    return f"{expected} ({_clock(search, first)} to {_clock(search, last)})"


def _beyond(weighed: list[tuple[float, float]], left: float) -> float:
    """The first end at which the weights add up to more than `left`; the last one if they never do."""
    totals = accumulate(weight for _, weight in weighed)
    return next(
        (end for (end, _), total in zip(weighed, totals, strict=True) if total > left), weighed[-1][0]
    )


def _clock(search: Search, seconds: float) -> str:
    """The time so many seconds from now; with its date where that is no longer clear."""
    if seconds >= _NO_DATE:
        return "never"
    at = search.now + seconds
    return format_clock(at) if seconds < _A_DAY else format_instant(at)
