"""Queued pilots that are much later than predicted, and whether to take one back. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from adaptor.crafting.multisite.levelling import Level
from adaptor.crafting.situation import PilotView
from adaptor.model import PilotState
from adaptor.units import format_duration

TOLERATED = 300.0
"""Seconds by which any pilot may be late."""
CLEARLY = 0.5
"""The others count as clearly sooner if they take at most this share of the time."""


def latest(pilots: Iterable[PilotView], now: float) -> PilotView | None:
    """The pilot that is the most late of those that have waited more than twice as long as predicted."""
    late = [pilot for pilot in pilots if lateness(pilot, now) > max(TOLERATED, _predicted_wait(pilot))]
    return max(late, key=lambda pilot: (lateness(pilot, now), pilot.id), default=None)


def lateness(pilot: PilotView, now: float) -> float:
    """Seconds since a queued pilot should have started; 0 for others."""
    if pilot.state is not PilotState.QUEUED or pilot.predicted_start is None:
        return 0.0
    return max(0.0, now - pilot.predicted_start)


def why_taken_back(pilot: PilotView, elsewhere: Level, now: float) -> str:
    """Why the other sites shall have the tasks of a late pilot; empty: they shall not.

    Nobody knows when a late pilot starts. It is taken to wait as long again as it is late already, so
    whoever waits and whoever changes at that point loses at most as much time as was lost before (the
    rule of the ski rental problem). The others must be clearly sooner than that, by half: with what is
    then learned of this site's lateness (`WaitLearner.gave_up`) the tasks do not come back to it at once.
    """
    late = lateness(pilot, now)
    here, there = late + pilot.request.tr, elsewhere.finish - now
    if there > CLEARLY * here:
        return ""
    sites = " and ".join(name for name, tasks in sorted(elsewhere.shares.items()) if tasks)
    return (
        f"it should have started {format_duration(late)} ago, and {sites} can have its tasks done in "
        f"{format_duration(there)}"
    )


def _predicted_wait(pilot: PilotView) -> float:
    if pilot.predicted_start is None or pilot.submitted is None:
        return 0.0
    return pilot.predicted_start - pilot.submitted
