"""Queued pilots that are much later than predicted, and when to withdraw one. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from adaptor.crafting.multisite.levelling import Level
from adaptor.crafting.situation import PilotView
from adaptor.model import PilotState
from adaptor.units import format_duration

TOLERATED = 300.0
"""Seconds of lateness that never cause a withdrawal."""
CLEARLY = 0.5
"""The other sites are clearly sooner if they need at most this share of the time."""


def latest(pilots: Iterable[PilotView], now: float) -> PilotView | None:
    """The latest pilot of those that have waited for more than twice the predicted time; None: no such."""
    late = [pilot for pilot in pilots if lateness(pilot, now) > max(TOLERATED, _predicted_wait(pilot))]
    return max(late, key=lambda pilot: (lateness(pilot, now), pilot.id), default=None)


def lateness(pilot: PilotView, now: float) -> float:
    """Seconds since the predicted start of a queued pilot; 0 for any other pilot."""
    if pilot.state is not PilotState.QUEUED or pilot.predicted_start is None:
        return 0.0
    return max(0.0, now - pilot.predicted_start)


def why_taken_back(pilot: PilotView, elsewhere: Level, now: float) -> str:
    """Why the other sites should run the tasks of a late pilot; empty: they should not.

    The start of a late pilot is unknown. This rule assumes that the pilot waits for its present lateness
    once more, so both choices lose at most as much time as the pilot lost so far (the rule of the ski
    rental problem). The other sites must be clearly sooner, by half: the withdrawal teaches the lateness
    of this site (`WaitLearner.gave_up`), and so the tasks do not return to it at once.
    """
    late = lateness(pilot, now)
    here, there = late + pilot.request.tr, elsewhere.finish - now
    if there > CLEARLY * here:
        return ""
    sites = " and ".join(name for name, tasks in sorted(elsewhere.shares.items()) if tasks)
    return (
        f"it should have started {format_duration(late)} ago; {sites} can finish its tasks in "
        f"{format_duration(there)}"
    )


def _predicted_wait(pilot: PilotView) -> float:
    if pilot.predicted_start is None or pilot.submitted is None:
        return 0.0
    return pilot.predicted_start - pilot.submitted
