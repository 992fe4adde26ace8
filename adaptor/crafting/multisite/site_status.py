"""The input of the division for one site, its late pilots, and its result for that site."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from adaptor.crafting.availability import Availability
from adaptor.crafting.fits import RequestShape
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.multisite.capacity import Capacity, Level
from adaptor.crafting.profile import Profile
from adaptor.crafting.situation import Demand, Elsewhere, PilotView, SiteState, TaskShape
from adaptor.model import PilotState
from adaptor.units import format_duration

TOLERATED = 300.0  # seconds of lateness that never cause a withdrawal
CLEARLY = 0.5  # the other sites are clearly sooner if they need at most this share of the time


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


NO_ANSWER = "its scheduler does not answer"


class SiteStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A site at the instant of the division."""

    view: SiteState
    """The site with the queue as last read; the division ignores its demands."""
    free: Availability | None = None
    """Processors that all jobs leave free, own pilots included; None: unknown."""
    closed: str = ""
    """Why the site must not get requests now; empty: it may."""
    closed_to: Mapping[TaskShape, str] = {}
    """Reasons why the site must not get requests for such tasks now, by shape of task."""
    lost: bool = False
    """Silent for too long: only workers that still send messages count, no other pilots."""

    @property
    def counted_view(self) -> SiteState:
        """The view with the pilots that still count."""
        if not self.lost:
            return self.view
        running = [pilot for pilot in self.view.requests if pilot.state is PilotState.RUNNING]
        counted = tuple(pilot for pilot in running if pilot.processors)
        return msgspec.structs.replace(self.view, requests=counted)

    @property
    def allowed(self) -> int:
        """The number of requests allowed now."""
        if self.closed or self.lost or self.free is None or self.view.queue is None:
            return 0
        return self.view.requests_left

    def capacity(self, demand: Demand, requests: int, now: float) -> Capacity:
        """Capacity of the site for a demand if it may make `requests` now."""
        shape = self.shape(demand)
        whole = HEURISTICS[self.view.heuristic].fixed_shape
        return Capacity(
            self.free.profile(shape.chunk) if self.free else Profile(now, 0),
            shape,
            now=now,
            requests=requests,
            ends=self._ends(now),
            delay=self.delay(shape.widest, now, shape.rules.limits.max_tr if whole else None),
            whole_tr=whole,
        )

    def shape(self, demand: Demand) -> RequestShape:
        return RequestShape.for_demand(self.view.rules, self.view.queue, demand)

    def most(self, demand: Demand) -> int:
        """The most tasks that one request can hold."""
        shape = self.shape(demand)
        return shape.holds(shape.widest, shape.rules.limits.max_tr)

    def holds(self, pilot: PilotView, demand: Demand) -> int:
        """Tasks that a pilot can take."""
        return self.shape(demand).holds(pilot.request.p, pilot.request.tr)

    def delay(self, processors: int, now: float, tr: float | None = None) -> float:
        """Expected lateness of a request of this width (seconds): learned or present, the larger one.

        `tr`: its time in seconds, where that is known.
        """
        waiting = max((lateness(pilot, now) for pilot in self.view.requests), default=0.0)
        return max(waiting, self.view.waits.lateness(processors, now, tr))

    def _ends(self, now: float) -> list[float]:
        """The ends of the pilots, each of which allows another request; none if the site gets no requests."""
        if self.closed or self.lost:
            return []
        return [
            pilot.ends
            if pilot.ends is not None
            else max(now, pilot.predicted_start or now) + pilot.request.tr
            for pilot in self.view.requests
        ]


class SitePart(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the division for one site."""

    uncovered: list[int]
    """Tasks for which the site requests processors, by group."""
    needless: list[int]
    """Ids of pilots without a task, at any site."""
    late: dict[int, str]
    """Queued pilots of the site to withdraw because they are late, by id, with the reason."""
    reason: str
    """Why the site gets these tasks, in one sentence with the numbers."""
    replans: list[bool]
    """By group: whether the site plans for all waiting tasks besides the work of other sites; else it gets
    what is uncovered here, as the group was divided by cost or time."""
    elsewhere: Sequence[Elsewhere]
    """Work of other sites by group, where the site replans."""
