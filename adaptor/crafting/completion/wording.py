"""Why the completion heuristic decides as it does, in one sentence with the numbers."""

from __future__ import annotations

from adaptor.crafting.completion.search import Choice, Search
from adaptor.model import PilotState
from adaptor.units import counted, format_clock, format_duration, format_instant

_CERTAIN = 1.05
"""Ends that differ by less than this factor are told as one."""
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
    """Why requests are withdrawn, or one that runs is ended."""
    without = [f"{pilot.request.p} × {format_duration(pilot.request.tr)}" for pilot in best.withdrawn]
    state = "running" if best.withdrawn[0].state is PilotState.RUNNING else "queued"
    return (
        f"{completion(search, best)}; keeping the {state} {' + '.join(without)} would be "
        f"{done_about(search, kept)}"
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
    ends, told = found.set.ends, _clock(search, found.set.cost)
    if max(ends) <= _CERTAIN * min(ends):
        return told
    return f"{told} ({_clock(search, min(ends))} to {_clock(search, max(ends))})"


def _clock(search: Search, seconds: float) -> str:
    """The time so many seconds from now; with its date where that is no longer clear."""
    if seconds >= _NO_DATE:
        return "never"
    at = search.now + seconds
    return format_clock(at) if seconds < _A_DAY else format_instant(at)
