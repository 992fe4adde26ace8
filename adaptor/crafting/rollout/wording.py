"""Why the rollout heuristic decides as it does, in one sentence with the numbers."""

from __future__ import annotations

from adaptor.crafting.rollout.world import RequestSet, World
from adaptor.model import PilotState
from adaptor.units import counted, format_clock, format_duration, format_instant

_CERTAIN = 1.05
"""Ends that differ by less than this factor are told as one."""
_A_DAY = 20 * 3600.0
"""Seconds until which a time of the day is understood without its date."""
_NO_DATE = 1e11
"""Seconds beyond which no calendar reaches: what some tasks need never starts."""


def completion(world: World, found: RequestSet) -> str:
    """`2 × 1h now + 6 × 3h at 14:10: done about 16:05 (15:20 to 17:30)`."""
    return f"{_listed(world, found)}: done about {_when(world, found)}"


def compared(world: World, best: RequestSet, kept: RequestSet) -> str:
    """Why requests are withdrawn, or one that runs is ended."""
    without = " + ".join(
        f"{pilot.request.p} × {format_duration(pilot.request.tr)}" for pilot in best.withdrawn
    )
    state = "running" if best.withdrawn[0].state is PilotState.RUNNING else "queued"
    return (
        f"{completion(world, best)}; keeping the {state} {without} would be done about {_when(world, kept)}"
    )


def nothing_better(world: World, kept: RequestSet) -> str:
    """Why no request is made."""
    tasks = counted(world.bag.tasks, "task")
    if not len(kept.members):
        return f"no request that the limits allow could run any of the {tasks}"
    if min(world.ends(kept.members)) >= _NO_DATE:
        return f"what is queued for the {tasks} never starts, and no further request would either"
    return f"no further request would end the {tasks} sooner than about {_when(world, kept)}"


def _listed(world: World, found: RequestSet) -> str:
    ends = world.ends(found.members)
    words = []
    for made in found.made:
        request = world.request(made, ends)
        homes = world.bag.homes
        where = f" in {homes[made.place].name}" if len(homes) > 1 else ""
        at = f"at {_clock(world, made.start)}" if made.start > 0 else "now"
        words.append(f"{request.p} × {format_duration(request.tr)}{where} {at}")
    return " + ".join(words) or "what is there"


def _when(world: World, found: RequestSet) -> str:
    """The expected end, and between which ones it may be as the runtime is not known yet."""
    ends = world.ends(found.members)
    told = _clock(world, found.cost)
    if max(ends) <= _CERTAIN * min(ends):
        return told
    return f"{told} ({_clock(world, min(ends))} to {_clock(world, max(ends))})"


def _clock(world: World, seconds: float) -> str:
    """The time so many seconds from now; with its date where that is no longer clear."""
    if seconds >= _NO_DATE:
        return "never"
    at = world.bag.now + seconds
    return format_clock(at) if seconds < _A_DAY else format_instant(at)
