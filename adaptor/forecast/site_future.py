"""Supply of the sites to a bag in one possible future: present pilots, and requests to come. Pure.

The requests are crafted by the heuristic of the site, from what is free in that future, as the planner does:
for the first course of each future, and while `crafts` has another. The other courses take the requests that
it made at the first, the second … time, and place them again. A future is either drawn (local jobs run shares
of their limits) or as planned, with the waits that requests really had besides the planned ones. The queue at
the time of later requests is unknown: in one half of the futures no other jobs come, in the other it looks as
it does now.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

import msgspec

from adaptor.crafting.availability import Availability, PlannedQueue, Schedule
from adaptor.crafting.choosing import Wanted
from adaptor.crafting.fits import unit_of
from adaptor.crafting.futures.drawn_queue import drawn_jobs, ended_by, fitting, planned
from adaptor.crafting.places import Place
from adaptor.crafting.planner import PLANNERS
from adaptor.crafting.profile import Profile
from adaptor.crafting.situation import Demand, PilotView
from adaptor.crafting.submissions import SubmissionsLeft
from adaptor.forecast.bag_facts import BagFacts
from adaptor.forecast.buying import Bounds, Buyer
from adaptor.forecast.estimate import quantile
from adaptor.forecast.known import KnownBag, KnownPilot, KnownSite
from adaptor.forecast.supply import Moment, PilotAhead
from adaptor.model import PendingJob, PilotState, Request, RunningJob

_FEWEST_WAITS = 5  # waits of a site from which they count
_MOST_DRAWN = 1500  # jobs of a queue beyond which its futures are not drawn one by one
_BAG = 0  # the number of the bag, where demands and pilots name one


class SiteFuture:
    """A site in one future."""

    def __init__(
        self,
        known: KnownSite,
        plan: Schedule | None,
        bag: BagFacts,
        now: float,
        draw: random.Random,
        *,
        steady: bool,
        drawn: bool = True,
    ) -> None:
        """`plan`: of the queue, as planned; `steady`: whether the queue always looks as it does now; `drawn`:
        False where all goes as planned."""
        self.known, self._view, self._task = known, known.view, bag.spec.task
        self._plan, self._now, self._draw, self._steady = plan, now, draw, steady
        self._unit = unit_of(self._view.rules, self._view.queue, self._task)
        self._wait_share: float | None = None
        self._schedule = self._future() if drawn else plan
        self._others = self._without_own()
        late = self._view.waits.lateness(self._view.rules.limits.max_proc, now)
        self._late = late * 1.5 * draw.random() if drawn else 0.0
        self._batches: list[list[Request]] = []
        """Requests made when requests were considered for the first, the second … time in this future."""

    def _future(self) -> Schedule | None:
        known, plan = self.known, self._plan
        queue, waits = self._view.queue, self._view.waits.shares
        if queue is None or plan is None:
            return None
        ends = self._ends_beside()
        enough = len(waits) >= _FEWEST_WAITS
        if len(queue.running) + len(queue.pending) > _MOST_DRAWN or (enough and self._draw.random() < 0.5):
            self._wait_share = self._draw.choice(waits) if enough else 0.2 + 0.8 * self._draw.random()
            return planned(ended_by(queue, ends)) if ends else plan
        shares, by_job = known.run_shares, known.run_shares_by_job
        drawn = drawn_jobs(queue, shares, known.seen_since, known.own, self._draw, by_job, plan.starts)
        return planned(ended_by(drawn, ends))

    def _ends_beside(self) -> dict[str, float]:
        """Drawn ends of our other pilots, all early or all late: most run tasks of one bag."""
        beside = self.known.beside
        share = self._draw.random() if beside else 0.0
        return {job: quantile(end, share) for job, end in beside.items()}

    def _without_own(self) -> Profile | None:
        """Processors that others leave free, as far as tasks of this size find room there on single nodes;
        None: unknown."""
        queue, future = self._view.queue, self._schedule
        if queue is None or future is None:
            return None
        profile, own = future.profile.copy(), {pilot.job for pilot in self.known.pilots}
        for running in queue.running:
            if running.id in own and running.end > queue.now:
                profile.give(queue.now, running.end - queue.now, running.processors)
        for pending in queue.pending:
            start = future.starts.get(pending.id, math.inf)
            if pending.id in own and start < math.inf:
                profile.give(start, pending.tr, pending.processors)
        return fitting(profile, queue, self._task)

    def pilots(self) -> list[PilotAhead]:
        """The pilots in the system."""
        return [self._ahead(pilot) for pilot in self.known.pilots]

    def first_start(self) -> float:
        """The earliest start of its pilots, or of a request that may be made; epoch seconds, or infinite."""
        starts = [self._start_of(pilot) for pilot in self.known.pilots]
        if self.known.open:
            made, shortest = max(self._now, self._view.next_request), self._view.rules.pad + 1
            others, p = self._others, self._unit.processors
            starts.append(made if others is None else others.earliest_start(p, shortest, made))
        return min(starts, default=math.inf)

    def _ahead(self, pilot: KnownPilot) -> PilotAhead:
        """A pilot in the system; one whose tasks run has its start-up behind it."""
        start = pilot.started if pilot.started is not None else self._start_of(pilot)
        ahead = self._made(start, pilot.tr, pilot.p, pilot.slots)
        return msgspec.structs.replace(
            ahead,
            start=start if pilot.started is not None and pilot.elapsed else ahead.start,
            elapsed=pilot.elapsed,
            bounds=pilot.bounds,
            tariff=pilot.tariff,
            kind=pilot.kind,
        )

    def _made(self, began: float, tr: float, p: int, slots: int) -> PilotAhead:
        """The pilot of a request that starts then; its pad is lost at the beginning for the most part."""
        known, pad = self.known, self._view.rules.pad
        last = min(10.0, pad / 2)
        ends = known.end_takes is not None and known.terms is not None
        return PilotAhead(
            site=self._view.name,
            p=p,
            slots=slots,
            began=began,
            start=began + (pad - last) * self._draw.random(),
            end=began + tr - last,
            useful=tr - pad,
            tariff=known.tariff,
            unit=known.terms.unit if ends and known.terms is not None else math.inf,
            lead=known.end_takes or 0.0,
        )

    def _start_of(self, pilot: KnownPilot) -> float:
        """Start of a queued pilot; one that the scheduler did not show yet comes last in its queue."""
        start = self._schedule.starts.get(pilot.job) if self._schedule is not None else None
        if start is None and self._others is not None:
            start = self._others.earliest_start(pilot.p, pilot.tr, self._now)
        if start is None or math.isinf(start):
            start = max(self._now, pilot.predicted if pilot.predicted is not None else self._now)
        wait = max(0.0, start - self._now)
        return self._now + wait * (1.0 if self._wait_share is None else self._wait_share) + self._late

    def asked(
        self, moment: Moment, turn: int, crafts: Iterator[object], share: float, bounds: Bounds | None
    ) -> list[PilotAhead]:
        """The requests for `tasks` when requests are considered for the `turn`-th time.

        Args:
            crafts: one for each time that requests may still be crafted for the forecast.
            share: part of the tasks for which it is to have slots.
            bounds: what the aims of the bag allow; None: it has none.
        """
        limits = self._view.rules.limits
        held = sum(pilot.pilots for pilot in moment.held if pilot.site == self._view.name)
        allowed = limits.in_system - held
        if not (self.known.open and share) or self._others is None or allowed <= 0:
            return []
        if bounds and bounds.slots <= 0:
            return []
        queue = self._queue(self._others, moment)
        while turn >= len(self._batches):
            if self._batches and next(crafts, None) is None:
                break
            self._batches.append(self._craft(queue, moment, allowed, share, bounds))
        needed = min(limits.max_tr, moment.needed(self._view.name) + self._view.rules.pad)
        found: list[PilotAhead] = []
        profile = self._profile_of(queue)
        for request in self._batches[min(turn, len(self._batches) - 1)][:allowed]:
            # What was crafted for shorter tasks is made longer; nothing else is crafted for it.
            p, tr = request.p, max(float(request.tr), needed)
            if bounds is not None:
                left = bounds.slots - sum(pilot.slots for pilot in found)
                p = min(p, math.ceil(left / self._unit.tasks) * self._unit.processors)
                tr = max(tr, min(limits.max_tr, bounds.least_tr))
                tr = tr if bounds.longest is None else min(tr, float(bounds.longest))
            made = max(moment.now, self._view.next_request)
            start = profile.earliest_start(p, tr, made) if p > 0 else math.inf
            if start < math.inf:
                profile.take(start, tr, p)
                share = 1.0 if self._wait_share is None else self._wait_share
                began = made + share * (start - made) + self._late
                began += self._view.poll * self._draw.random()
                found.append(self._made(began, tr, p, self._unit.slots(p)))
        return found

    def _queue(self, others: Profile, moment: Moment) -> PlannedQueue:
        """The queue at that moment: processors that others leave free from then on, and the pilots in the
        system as jobs."""
        assert self._view.queue is not None
        shift = moment.now - self._now if self._steady else 0.0
        at = moment.now - shift
        steps = [(time + shift, free) for time, free in others.steps() if time > at]
        held = [(place, pilot) for place, pilot in enumerate(moment.held) if pilot.site == self._view.name]
        return PlannedQueue(
            now=moment.now,
            processors=self._view.queue.processors,
            plan=((moment.now, others.free_at(at)), *steps),
            running=tuple(
                RunningJob(f"{place}", pilot.p, pilot.end)
                for place, pilot in held
                if pilot.began <= moment.now
            ),
            pending=tuple(
                PendingJob(f"{place}", pilot.p, pilot.end - pilot.began, pilot.began, new=True)
                for place, pilot in held
                if pilot.began > moment.now
            ),
        )

    @staticmethod
    def _profile_of(queue: PlannedQueue) -> Profile:
        """Free processors next to all jobs, without jobs for which the future has no room."""
        profile = Profile.of_steps(list(queue.plan))
        for running in queue.running:
            _take(profile, queue.now, running.end, running.processors)
        for pending in queue.pending:
            start = pending.planned_start or queue.now
            _take(profile, start, start + pending.tr, pending.processors)
        return profile

    def _craft(
        self, queue: PlannedQueue, moment: Moment, allowed: int, share: float, bounds: Bounds | None
    ) -> list[Request]:
        """Requests by the plan of the site's heuristic for these tasks."""
        here, learner = self._view, moment.learners[self._view.name]
        # Partitions are not told apart, and nothing is withdrawn for what may come.
        limits = msgspec.structs.replace(here.rules.limits, partitions={})
        rules = msgspec.structs.replace(here.rules, limits=limits, may_withdraw=False, may_reshape=False)
        demand = Demand(
            task=self._task,
            waiting=math.ceil(moment.waiting * share),
            running=moment.seen.running,
            runtime=moment.needed(here.name),
            shortest=learner.estimate,
            bag=_BAG,
            hosts_counted=bounds is not None,
            least_tr=bounds.least_tr if bounds is not None else 0,
            longest=bounds.longest if bounds is not None else None,
            times=msgspec.structs.replace(
                learner.known,
                running=moment.seen.running,
                starts=moment.seen.starts,
                first_start=moment.seen.first_start,
            ),
        )
        pilots = tuple(self._views(moment))
        view = msgspec.structs.replace(
            here,
            now=moment.now,
            queue=queue,
            rules=rules,
            requests=pilots,
            demands=(demand,),
            submissions=SubmissionsLeft(),
        )
        wanted = Wanted(
            demand=demand,
            remaining=math.ceil(moment.uncovered * share),
            allowed=allowed,
            pilots=pilots,
        )
        place = Place(site=view, free=Availability(queue), rules=rules, allowed=allowed)
        made = PLANNERS[view.heuristic]([place], wanted)
        return [crafted.request for crafted in made.crafted]

    def _views(self, moment: Moment) -> list[PilotView]:
        """The pilots in the system, as the planner sees them."""
        return [
            PilotView(
                id=place,
                job=f"{place}",
                state=PilotState.RUNNING if pilot.began <= moment.now else PilotState.QUEUED,
                request=Request(pilot.p, max(1, round(pilot.end - pilot.began))),
                started=pilot.began if pilot.began <= moment.now else None,
                ends=pilot.end if pilot.began <= moment.now else None,
                predicted_start=pilot.began,
                bag=_BAG,
                shape=(self._task, _BAG),
            )
            for place, pilot in enumerate(moment.held)
            if pilot.site == self._view.name
        ]


class SitesFuture:
    """All sites in one future; a `Supply` of one course at a time."""

    def __init__(self, known: KnownBag, sites: Sequence[SiteFuture], crafts: Iterator[object]) -> None:
        """`crafts`: one item for each time that requests may still be crafted for the forecast."""
        self._known, self._sites, self._crafts = known, sites, crafts
        self._turn = 0
        self._buyer: Buyer | None = None

    def again(self) -> list[PilotAhead]:
        """A new course begins; the pilots in the system."""
        self._turn = 0
        self._buyer = Buyer(self._known.bag, self._known.pace) if self._known.bag.paced else None
        return [pilot for site in self._sites for pilot in site.pilots()]

    @property
    def paced(self) -> bool:
        """Whether requests are made step by step, as tasks finish: a bag with aims buys so."""
        return self._buyer is not None

    def asked(self, moment: Moment) -> list[PilotAhead]:
        """Pilots of the requests that the sites make at this moment."""
        found, equal = [], 1 / len(self._sites)
        for site in self._sites:
            bounds = None if self._buyer is None else self._buyer.bounds(site.known, moment)
            share = equal if site.known.share is None else site.known.share
            found += site.asked(moment, self._turn, self._crafts, share, bounds)
        if self._buyer is not None:
            self._buyer.bought(sum(pilot.slots for pilot in found))
        self._turn += bool(found)
        return found

    def goes_on(self, moment: Moment, pilot: PilotAhead, ages: Sequence[float]) -> bool:
        """Whether a pilot is kept for another charging unit, by the ages of its tasks."""
        if self._buyer is None:
            return True
        site = next(site.known for site in self._sites if site.known.view.name == pilot.site)
        return self._buyer.goes_on(site, moment, ages)


def _take(profile: Profile, start: float, end: float, processors: int) -> None:
    there = min(processors, profile.minimum(start, end)) if start < end else 0
    if there > 0:
        profile.take(start, end - start, there)
