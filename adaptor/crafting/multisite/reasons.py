"""The sentences that say why a site gets so many of the waiting tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.crafting.refusal import listed, no_answer
from adaptor.crafting.situation import PilotView, PlanningView
from adaptor.units import counted, format_duration


class SitePortion(msgspec.Struct, frozen=True, kw_only=True):
    """A site's share of the waiting tasks, among those of the others."""

    site: str
    waiting: int
    uncovered: int
    """Those that no pilot is expected to take."""
    shares: dict[str, int]
    seconds: float
    """Until all that is shared out is expected to be finished."""
    first: float
    """Seconds until a task could be finished here; may be `math.inf`."""
    late: float
    """Seconds by which requests start later here than predicted."""

    @property
    def mine(self) -> int:
        return self.shares[self.site]

    @property
    def gets(self) -> str:
        return f"gets {self.mine or 'none'} of {counted(self.waiting, 'waiting task')}"

    @property
    def others(self) -> str:
        """`near gets 280, pilots in the system have 20`."""
        later, covered = self.uncovered - sum(self.shares.values()), self.waiting - self.uncovered
        parts = [f"{name} gets {tasks}" for name, tasks in self.shares.items() if name != self.site]
        parts += [f"pilots in the system have {covered}"] * bool(covered)
        parts += [f"{later} are left for later requests"] * bool(later)
        return ", ".join(parts)


def why_covered(pilots: Mapping[str, Sequence[PilotView]], waiting: int) -> str:
    where = ", ".join(f"{len(each)} at {name}" for name, each in pilots.items())
    return (
        f"the pilots in the system ({where}) can be expected to take all of the "
        f"{counted(waiting, 'waiting task')}"
    )


def why_some(portion: SitePortion) -> str:
    late = f"; requests start {format_duration(portion.late)} late here" if portion.late >= 1 else ""
    beside = f" if {portion.others}" if portion.others else ""
    return f"{portion.gets}: all can be done in {format_duration(portion.seconds)}{beside}{late}"


def why_none(portion: SitePortion, view: PlanningView, closed: str) -> str:
    if closed:
        return f"{portion.gets}: {closed}; {portion.others}"
    if view.queue is None:
        return no_answer(view)
    limit = view.rules.limits.max_pending_requests
    if len(view.pilots) >= limit:
        there = f"max_pending_requests is {limit} and {listed(view.pilots)} are in the system"
        return f"{portion.gets}: {there}; {portion.others}"
    if math.isinf(portion.first):
        return f"{portion.gets}: no free slot here is wide and long enough for one; {portion.others}"
    return (
        f"{portion.gets}: here the first could be done in {format_duration(portion.first)}, elsewhere all of "
        f"them in {format_duration(portion.seconds)}; {portion.others}"
    )
