"""Why the completion heuristic decides as it does, in one sentence with the numbers."""

from __future__ import annotations

from collections.abc import Iterable
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
    return f"{' + '.join(words) or 'what is there'}: {done_about(search, found)}"


def done_about(search: Search, found: Choice) -> str:
    """`done about 16:05 (15:20 to 17:30)`: the expected end, and between which ones it may be."""
    return f"done about {_when(search, found)}"


def compared(search: Search, best: Choice, kept: Choice) -> str:
    """Why a request is withdrawn, or a running pilot ended."""
    pilot = best.withdrawn
    assert pilot is not None
    state = "running" if pilot.state is PilotState.RUNNING else "queued"
    without = f"{pilot.request.p} × {format_duration(pilot.request.tr)}"
    return f"{completion(search, best)}; keeping the {state} {without} would be {done_about(search, kept)}"


def nothing_better(search: Search, kept: Choice) -> str:
    """Why no request is made."""
    tasks = counted(search.tasks, "task")
    if not kept.set.members:
        return f"no request that the limits allow could run any of the {tasks}"
    if min(kept.set.ends) >= _NO_DATE:
        return f"what is queued for the {tasks} never starts, and no further request would either"
    return f"no further request would end the {tasks} sooner than about {_when(search, kept)}"


def _when(search: Search, found: Choice) -> str:
    told = _clock(search, found.set.cost)
    first, last = _likely(search, found)
    if last <= _CERTAIN * first:
        return told
    return f"{told} ({_clock(search, first)} to {_clock(search, last)})"


def _likely(search: Search, found: Choice) -> tuple[float, float]:
    """The ends of the bag, seconds from now, beyond which at most `_TAIL` of the weight is on either side."""
    weighed = sorted(zip(found.set.ends, (belief.weight for belief in search.believed), strict=True))
    left = _TAIL * sum(weight for _, weight in weighed)
    return _beyond(weighed, left), _beyond(reversed(weighed), left)


def _beyond(weighed: Iterable[tuple[float, float]], left: float) -> float:
    """The end at which the weights add up to more than `left`; the last one if they never do."""
    ends, weights = zip(*weighed, strict=True)
    passed = (end for end, total in zip(ends, accumulate(weights), strict=True) if total > left)
    return float(next(passed, ends[-1]))


def _clock(search: Search, seconds: float) -> str:
    """The time so many seconds from now; with its date where that is no longer clear."""
    if seconds >= _NO_DATE:
        return "never"
    at = search.now + seconds
    return format_clock(at) if seconds < _A_DAY else format_instant(at)
