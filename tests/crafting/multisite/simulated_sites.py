"""A bag on simulated sites, decided upon by division and planner: small, exact, second by second."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from adaptor.crafting.availability import availability
from adaptor.crafting.multisite.division import by_demand, divide
from adaptor.crafting.multisite.waits import WaitLearner
from adaptor.crafting.places import Place
from adaptor.crafting.planner import plan
from adaptor.crafting.profile import Profile
from adaptor.crafting.situation import (
    Demand,
    PilotView,
    SiteRules,
    SiteState,
    SubmitRequest,
    TaskGroup,
    Withdraw,
)
from adaptor.model import CraftedRequest, Limits, PendingJob, PilotState, QueueState, RunningJob
from adaptor.runtimes.known import KnownRuntimes
from tests.runtimes.known import known_runtimes

from .division_sites import standing

STEP = 10


@dataclass
class Pilot:
    id: int
    crafted: CraftedRequest
    submitted: int
    planned: float
    """Time at which the site's queue will start it."""
    started: int | None = None
    ends_of_tasks: list[float] = field(default_factory=list)


@dataclass
class Site:
    name: str
    processors: int
    runtime: int
    local: list[tuple[int, int, int]]
    """Jobs of others: start, end, processors; all are known to the queue, and they keep to it."""
    requests: int = 3
    max_proc: int = 16
    max_tr: int = 3600
    delay: int = 0
    """Seconds by which its requests start later than planned."""
    dead_from: float = float("inf")
    heuristic: str = "adaptive"
    pilots: list[Pilot] = field(default_factory=list)
    waits: WaitLearner = field(default_factory=WaitLearner)

    @property
    def rules(self) -> SiteRules:
        limits = Limits(max_pending_requests=self.requests, max_proc=self.max_proc, max_tr=self.max_tr)
        return SiteRules(limits=limits, pad=10)

    def queue(self, now: int) -> QueueState:
        ours = [(f"p{each.id}", each) for each in self.pilots]
        return QueueState(
            now=now,
            processors=self.processors,
            running=(
                *(RunningJob(f"l{n}", p, end) for n, (start, end, p) in enumerate(self.local)
                  if start <= now < end),
                *(RunningJob(id, each.crafted.request.p, each.started + each.crafted.request.tr)
                  for id, each in ours if each.started is not None),
            ),
            pending=(
                *(PendingJob(f"l{n}", p, end - start, start) for n, (start, end, p) in enumerate(self.local)
                  if now < start),
                *(PendingJob(id, each.crafted.request.p, each.crafted.request.tr, max(now, each.planned))
                  for id, each in ours if each.started is None),
            ),
        )  # fmt: skip

    def view(self, now: int, demand: Demand) -> SiteState:
        return SiteState(
            now=now, queue=self.queue(now), rules=self.rules, heuristic=self.heuristic,
            requests=tuple(map(_view, self.pilots)), demands=(demand,), waits=self.waits,
        )  # fmt: skip

    def submit(self, id: int, crafted: CraftedRequest, now: int) -> None:
        free: Profile = availability(self.queue(now))
        start = free.earliest_start(crafted.request.p, crafted.request.tr)
        self.pilots.append(Pilot(id, crafted, now, start + self.delay))


def _view(pilot: Pilot) -> PilotView:
    running = pilot.started is not None
    return PilotView(
        id=pilot.id,
        job=f"p{pilot.id}",
        state=PilotState.RUNNING if running else PilotState.QUEUED,
        request=pilot.crafted.request,
        started=pilot.started,
        ends=pilot.started + pilot.crafted.request.tr if pilot.started is not None else None,
        processors=pilot.crafted.request.p if running else None,
        submitted=pilot.submitted,
        predicted_start=pilot.crafted.predicted_start,
    )


@dataclass
class World:
    sites: list[Site]
    tasks: int
    now: int = 0
    waiting: int = 0
    done: int = 0
    asked: int = 0
    """Tasks that requests were made for, less those of requests that were taken back."""
    withdrawn: int = 0

    def run(self, limit: int = 200_000) -> int:
        """Seconds until the last task is done."""
        self.waiting = self.tasks
        while self.done < self.tasks:
            assert self.now < limit, f"only {self.done} of {self.tasks} tasks in {limit} s"
            self._happen()
            self._decide()
            self.now += STEP
        return self.now

    def _happen(self) -> None:
        for site in self.sites:
            if self.now >= site.dead_from:
                self._die(site)
            for pilot in list(site.pilots):
                self._live(site, pilot)

    def _live(self, site: Site, pilot: Pilot) -> None:
        request = pilot.crafted.request
        if pilot.started is None:
            if self.now < pilot.planned:
                return
            pilot.started = self.now
            predicted = pilot.crafted.predicted_start
            assert predicted is not None
            site.waits.started(request.p, self.now - predicted, self.now)
        ended = [end for end in pilot.ends_of_tasks if end <= self.now]
        pilot.ends_of_tasks = [end for end in pilot.ends_of_tasks if end > self.now]
        self.done += len(ended)
        left = pilot.started + request.tr - self.now
        while self.waiting and len(pilot.ends_of_tasks) < request.p and left >= site.runtime:
            self.waiting -= 1
            pilot.ends_of_tasks.append(self.now + site.runtime)
        if not pilot.ends_of_tasks:
            site.pilots.remove(pilot)

    def _die(self, site: Site) -> None:
        """All that ran there is lost, and the site never answers again."""
        self.waiting += sum(len(pilot.ends_of_tasks) for pilot in site.pilots)
        self.asked -= sum(pilot.crafted.tasks for pilot in site.pilots)
        site.pilots.clear()

    def _decide(self) -> None:
        for site in self.sites:
            if self.now >= site.dead_from:
                continue
            group = self._group()
            view = site.view(self.now, group.at[site.name])
            parts = divide({each.name: self._standing(each, group) for each in self.sites}, (group,))
            for decision in plan(view, by_demand(parts[site.name], site.name, (group,), view.demands)):
                if isinstance(decision, SubmitRequest):
                    self.asked += decision.crafted.tasks
                    site.submit(self.now * 100 + len(site.pilots), decision.crafted, self.now)
                elif isinstance(decision, Withdraw):
                    self._withdraw(site, decision.pilot)

    def _standing(self, site: Site, group: TaskGroup) -> list[Place]:
        return standing(site.view(self.now, group.at[site.name]), lost=self.now >= site.dead_from)

    def _group(self) -> TaskGroup:
        held = {site.name: sum(len(pilot.ends_of_tasks) for pilot in site.pilots) for site in self.sites}
        return TaskGroup(
            self.waiting,
            {
                site.name: Demand(
                    waiting=self.waiting, runtime=site.runtime,
                    running=sum(held.values()), times=self._times(site),
                )
                for site in self.sites
            },
            held,
        )  # fmt: skip

    def _times(self, site: Site) -> KnownRuntimes:
        """All tasks of a site are alike; nothing is known before one of them has finished."""
        starts = [end - site.runtime for pilot in site.pilots for end in pilot.ends_of_tasks]
        return known_runtimes(
            finished=self.done, mean=site.runtime, longest=site.runtime,
            mean_start=sum(starts) / len(starts) if starts else None, first_start=min(starts, default=None),
        )  # fmt: skip

    def _withdraw(self, site: Site, id: int) -> None:
        (pilot,) = [each for each in site.pilots if each.id == id]
        site.pilots.remove(pilot)
        self.waiting += len(pilot.ends_of_tasks)
        self.asked -= pilot.crafted.tasks
        self.withdrawn += 1
        predicted = pilot.crafted.predicted_start
        if predicted is not None and predicted < self.now:
            site.waits.gave_up(pilot.crafted.request.p, self.now - predicted, self.now)


def near_and_far(heuristic: str) -> st.SearchStrategy[tuple[Site, Site]]:
    """Any two small sites, with jobs of others or without."""
    return st.tuples(_any_site("near", heuristic), _any_site("far", heuristic))


def _any_site(name: str, heuristic: str) -> st.SearchStrategy[Site]:
    return st.builds(
        Site,
        name=st.just(name),
        processors=st.sampled_from([4, 8, 16]),
        runtime=st.sampled_from([30, 60, 100]),
        local=st.lists(
            st.integers(0, 20).map(lambda slot: (slot * 200, slot * 200 + 200, 4)), max_size=6, unique=True
        ),
        requests=st.integers(1, 4),
        max_proc=st.sampled_from([4, 8, 16]),
        max_tr=st.sampled_from([600, 3600]),
        heuristic=st.just(heuristic),
    )
