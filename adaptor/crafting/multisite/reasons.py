"""Why a site gets its number of the waiting tasks: for each case, one sentence with the numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.crafting.refusal import limit_used_up, no_answer
from adaptor.crafting.situation import PilotView, PlanningView
from adaptor.units import counted, format_duration


class SitePortion(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks that one site gets, beside those of the other sites."""

    site: str
    waiting: int
    uncovered: int
    """Waiting tasks that no pilot in the system covers."""
    shares: dict[str, int]
    """Tasks by site."""
    seconds: float
    """Seconds until the last task of all shares is expected to end."""
    first: float
    """Seconds until a first task could end here; may be `math.inf`."""
    late: float
    """Seconds by which requests here start later than predicted."""

    @property
    def mine(self) -> int:
        return self.shares[self.site]

    @property
    def gets(self) -> str:
        return f"gets {self.mine or 'none'} of {counted(self.waiting, 'waiting task')}"

    @property
    def others(self) -> str:
        """What the others get: `near gets 280, pilots in the system cover 20`."""
        later, covered = self.uncovered - sum(self.shares.values()), self.waiting - self.uncovered
        parts = [f"{name} gets {tasks}" for name, tasks in self.shares.items() if name != self.site]
        parts += [f"pilots in the system cover {covered}"] * bool(covered)
        parts += [f"{later} stay for later requests"] * bool(later)
        return ", ".join(parts)


def why_covered(pilots: Mapping[str, Sequence[PilotView]], waiting: int) -> str:
    where = ", ".join(f"{len(each)} at {name}" for name, each in pilots.items())
    return f"the pilots in the system ({where}) already cover the {counted(waiting, 'waiting task')}"


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
        return f"{portion.gets}: {limit_used_up(view)}; {portion.others}"
    if math.isinf(portion.first):
        return f"{portion.gets}: no free slot here is wide and long enough for a task; {portion.others}"
    return (
        f"{portion.gets}: a first task could be done here in {format_duration(portion.first)}, all of them "
        f"elsewhere in {format_duration(portion.seconds)}; {portion.others}"
    )
