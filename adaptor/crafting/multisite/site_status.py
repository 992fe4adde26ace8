"""One site as the division reckons with it at an instant, and what the division leaves to it."""

from __future__ import annotations

import msgspec

from adaptor.crafting.multisite.capacity import Capacity
from adaptor.crafting.multisite.lateness import lateness
from adaptor.crafting.multisite.waits import WaitLearner
from adaptor.crafting.profile import Profile
from adaptor.crafting.shape import RequestShape
from adaptor.crafting.situation import Demand, PilotView, PlanningView
from adaptor.model import PilotState

NO_ANSWER = "its scheduler does not answer"


class SiteStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a site."""

    view: PlanningView
    """With the queue as last seen; its demands are not looked at."""
    free: Profile | None = None
    """What is free beside all jobs, our own included; None while that is not known."""
    waits: WaitLearner = msgspec.field(default_factory=WaitLearner)
    closed: str = ""
    """Why no request may be made there now; empty: it may."""
    lost: bool = False
    """Silent for so long that its pilots are reckoned with no more but for the workers that are heard of."""

    @property
    def reckoned(self) -> PlanningView:
        """The site with the pilots that still count."""
        if not self.lost:
            return self.view
        running = [pilot for pilot in self.view.pilots if pilot.state is PilotState.RUNNING]
        return msgspec.structs.replace(self.view, pilots=tuple(each for each in running if each.processors))

    @property
    def allowed(self) -> int:
        """Requests that may be made now."""
        if self.closed or self.lost or self.free is None or self.view.queue is None:
            return 0
        in_system = sum(pilot.state.in_system for pilot in self.view.pilots)
        return max(0, self.view.rules.limits.max_pending_requests - in_system)

    def capacity(self, demand: Demand, requests: int, now: float) -> Capacity:
        """What the site could do for a demand, if it may make so many requests now."""
        shape = self.shape(demand)
        return Capacity(
            self.free or Profile(now, 0),
            shape,
            now=now,
            requests=requests,
            ends=self._ends(now),
            delay=self.delay(shape.widest, now),
            whole_tr=self.view.heuristic == "static",
        )

    def shape(self, demand: Demand) -> RequestShape:
        return RequestShape(
            rules=self.view.rules,
            site_processors=self.view.queue.processors if self.view.queue else 0,
            processors_per_task=demand.processors_per_task,
            runtime=demand.runtime,
        )

    def most(self, demand: Demand) -> int:
        """Tasks that one request can hold at the most."""
        shape = self.shape(demand)
        return shape.slots(shape.widest) * max(1, shape.rounds(shape.rules.limits.max_tr))

    def holds(self, pilot: PilotView, demand: Demand) -> int:
        """Tasks that a pilot can take."""
        shape = self.shape(demand)
        return shape.slots(pilot.request.p) * max(1, shape.rounds(pilot.request.tr))

    def delay(self, processors: int, now: float) -> float:
        """What requests of this width have been late there, or those that wait now, where that is more."""
        waiting = max((lateness(pilot, now) for pilot in self.view.pilots), default=0.0)
        return max(waiting, self.waits.lateness(processors, now))

    def _ends(self, now: float) -> list[float]:
        """When pilots end and others may take their place; at no time where the site is not to be used."""
        if self.closed or self.lost:
            return []
        return [
            each.ends if each.ends is not None else max(now, each.predicted_start or now) + each.request.tr
            for each in self.view.pilots
        ]


class SitePart(msgspec.Struct, frozen=True, kw_only=True):
    """What the division leaves to one site."""

    uncovered: list[int]
    """By group: the tasks that the site asks processors for."""
    needless: list[int]
    """Pilots that find no task, of any site."""
    late: dict[int, str]
    """Queued pilots of the site to take back because of their lateness, with the reason."""
    reason: str
    """Why so many tasks, in one sentence with the numbers."""
