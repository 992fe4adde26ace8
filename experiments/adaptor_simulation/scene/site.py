"""One simulated site: a space-shared cluster, its queue and its nodes, and our pilots in it.

As PBS and some Slurm do, it starts requests with less than their tr, where a slot that is free now holds it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from adaptor.crafting.availability import Availability
from adaptor.crafting.fits import chunk_of
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.profile import Profile
from adaptor.crafting.situation import SiteRules
from adaptor.decisions.site_settings import SiteSettings
from adaptor.model import QueueState, Request
from adaptor.reports import JobReport, JobState, NodeReport
from adaptor.resources import TaskSize
from adaptor.scheduling.state import SiteTerms
from adaptor_simulation.cluster import Cluster, Policy, cluster_of_processors
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.machine import Machine, lay_out
from adaptor_simulation.pilot_requests import among, queue_state, reshape, submit
from adaptor_simulation.places import Places, place_of
from backends.partitions import together

Show = Callable[[], QueueState]


class ScenePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of a simulated site. Times in whole seconds."""

    settings: SiteSettings
    """Settings as the daemon makes them from a configuration."""
    jobs: Jobs
    """Jobs of the local users."""
    processors: int
    machine: Machine | None = None
    """The same processors as nodes, on which jobs hold parts; None: the cluster counts processors."""
    chunk: int | None = 1
    """Processors of a local job that are on one node; None: whole nodes."""
    partitions: Mapping[str, frozenset[str]] = {}
    """Nodes of the partitions that `settings` name, where they have not all of them."""
    policy: Policy = "conservative"
    startup: int = 5
    """From the start of a pilot until its worker calls."""

    def terms(self, initial_tr: float) -> SiteTerms:
        """By which a broker gives out tasks. `initial_tr`: seconds that a task is first assumed to take."""
        settings = self.settings
        return SiteTerms(
            initial_tr=initial_tr,
            growth_factor=2,
            longest=settings.rules.longest_task,
            even_odds=HEURISTICS[settings.heuristic].even_odds,
            donation=None if settings.donation is None else settings.donation.rules,
        )


class _Job(msgspec.Struct):
    """A pilot as the scheduler knows it."""

    id: str
    tag: str
    pilot: int
    request: Request
    node: str
    task: TaskSize
    partition: str
    number: int | None = None
    """In the cluster; None on a donated node, of which its scheduler knows nothing."""
    started: int | None = None
    ended: int | None = None
    state: JobState = JobState.QUEUED


class Change(msgspec.Struct, frozen=True):
    """Something that happened to a pilot."""

    pilot: int
    at: int
    request: Request
    node: str
    end: JobState | None = None
    """State at its end; None: it started."""


class SimulatedSite:
    """Answers what a backend is asked, on the virtual clock. A donated node is one processor, of a machine of
    nodes too.

    Agents keep donated nodes outside of the scheduler, so a local job finds its processors idle and takes
    them; what ran there is preempted.
    """

    def __init__(
        self,
        place: ScenePlace,
        cluster: Cluster | None = None,
        show: Show | None = None,
        places: Places | None = None,
    ) -> None:
        """`cluster`: that of the place, at some second; None: it is made, at second 0. `show`: the queue as
        its scheduler shows it; None: every job of it. `places`: of the cluster, if it donates nodes; None:
        they are made."""
        self.place = place
        self.name = place.settings.name
        self._cluster = _cluster_of(place) if cluster is None else cluster
        self._show = show or (lambda: queue_state(self._cluster))
        donates = place.settings.donation is not None
        self._places = (places or Places(self._cluster)) if donates else None
        self._jobs: dict[str, _Job] = {}
        self._live: dict[int, _Job] = {}  # by pilot: those that have not ended
        self._used: dict[int, _Job] = {}  # by processor that we use as a donated node
        self._ends: list[tuple[int, int]] = []
        """Heap of when such pilots end, and of the pilots; some have ended before."""
        self._seen = self._cluster.changes
        self._changes: list[Change] = []
        self._news: dict[str, _Job] = {}
        """Jobs that were submitted, started or ended since `news` was asked last."""

    @property
    def now(self) -> int:
        return self._cluster.now

    def next_event(self) -> float:
        """Time of the next event; `math.inf`: never."""
        coming = self._cluster.next_event()
        while self._ends and self._ends[0][1] not in self._live:
            heapq.heappop(self._ends)
        return min([coming if coming is not None else math.inf, *(end for end, _ in self._ends[:1])])

    def advance(self, until: int) -> list[Change]:
        """Let all happen up to and including a second; what became of our pilots since the last call."""
        while (at := min(self.next_event(), until)) <= until and at > self._cluster.now:
            self._cluster.advance(int(at))
            self._look()
        self._cluster.advance(until)
        return self.changes()

    def changes(self) -> list[Change]:
        """Changes of our pilots since the last call."""
        self._look()
        changes, self._changes = self._changes, []
        return changes

    @property
    def in_system(self) -> int:
        """Requests that wait or run."""
        return len(self._live)

    def next_cut(self) -> float:
        """Time at which a request may next be started with less than its tr; `math.inf`: none waits for
        that."""
        return self.next_event() if self._cuttable() else math.inf

    @property
    def some_queued(self) -> bool:
        """Whether a request waits."""
        return any(job.started is None for job in self._live.values())

    # --- what a backend is asked -----------------------------------------------------------------

    def queue_state(self) -> QueueState:
        """The queue by the ids that `submit` gives."""
        names = self.place.settings.rules.limits.partitions
        state = self._show()
        if not names:
            return state
        return together({name: among(state, self.place.partitions.get(name)) for name in names})

    def nodes(self) -> Sequence[NodeReport]:
        assert self._places is not None, "the place donates its nodes"
        return self._places.reports()

    @property
    def some_unused(self) -> bool:
        """Whether an idle processor is not used as a donated node."""
        return self._places is not None and self._places.idle > len(self._used)

    def submit(
        self, pilot: int, tag: str, request: Request, node: str, task: TaskSize, partition: str = ""
    ) -> str:
        """The job's id; on nodes it asks for chunks that hold tasks of this size."""
        number = None
        if not node:
            rules, nodes = self._where(partition)
            number = submit(self._cluster, rules, task, request, nodes)
        id = f"{self.name}-{pilot}" if number is None else str(number)
        job = self._jobs[id] = self._live[pilot] = self._news[id] = _Job(
            id, tag, pilot, request, node, task, partition, number
        )
        if node:
            job.started, job.state = self.now, JobState.RUNNING
            self._used[place_of(node)] = job
            heapq.heappush(self._ends, (self.now + request.tr, pilot))
            self._changes.append(Change(pilot, self.now, request, node))
        return id

    def reshape(self, id: str, request: Request, task: TaskSize, partition: str = "") -> bool:
        """Let a job that waits ask for another request in its place; whether it does."""
        job = self._jobs[id]
        if job.number is None or job.started is not None or job.ended is not None:
            return False
        rules, nodes = self._where(partition)
        if not reshape(self._cluster, job.number, rules, task, request, nodes):
            return False
        job.request, job.task, job.partition = request, task, partition
        return True

    def jobs(self) -> list[JobReport]:
        """All of our pilots that are in the system or ended lately."""
        return [_report(job) for job in self._jobs.values()]

    def news(self) -> list[tuple[int, JobReport]]:
        """By pilot: its job, of those that were submitted, started or ended since the last call."""
        news, self._news = self._news, {}
        return [(job.pilot, _report(job)) for job in news.values()]

    def cancel(self, ids: Collection[str]) -> None:
        for id in ids:
            job = self._jobs[id]
            if job.ended is None:
                self._stop(job, JobState.CANCELLED)

    def leave(self, pilot: int) -> None:
        """The last worker of a pilot has left."""
        if (job := self._live.get(pilot)) is not None:
            self._stop(job, JobState.COMPLETED)

    # --- what happens ----------------------------------------------------------------------------

    def _where(self, partition: str) -> tuple[SiteRules, frozenset[str] | None]:
        """The rules and the nodes of a partition; None: it has all."""
        return self.place.settings.rules.in_partition(partition), self.place.partitions.get(partition)

    def _stop(self, job: _Job, state: JobState) -> None:
        if job.number is not None:
            self._cluster.cancel(job.number)
        self._end(job, state)
        self._look()

    def _end(self, job: _Job, state: JobState) -> None:
        job.ended, job.state, self._news[job.id] = self.now, state, job
        del self._live[job.pilot]
        if job.node:
            del self._used[place_of(job.node)]
        self._changes.append(Change(job.pilot, self.now, job.request, job.node, state))

    def _look(self) -> None:
        """Take in what started and ended in this second."""
        if self._places is not None:
            self._look_at_nodes(self._places)
        for job in self._cuttable():
            self._start_cut(job)
        if self._seen == self._cluster.changes:
            return
        self._seen = self._cluster.changes
        for job in list(self._live.values()):
            if job.number is not None:
                self._follow(job, job.number)

    def _cuttable(self) -> list[_Job]:
        """The jobs that wait and that this site's scheduler starts with less than their tr."""
        if self.place.settings.rules.shrink_margin is None:
            return []
        return [job for job in self._live.values() if job.started is None and job.request.least is not None]

    def _start_cut(self, job: _Job) -> None:
        assert job.number is not None
        rules, nodes = self._where(job.partition)
        queue = among(queue_state(self._cluster), nodes)
        got = start_cut(self._cluster, queue, job.number, job.request, rules, job.task, nodes)
        job.request = got or job.request

    def _look_at_nodes(self, places: Places) -> None:
        if places.look():
            for place in places.taken(self._used):
                self._end(self._used[place], JobState.PREEMPTED)
        while self._ends and self._ends[0][0] <= self.now:
            ended = self._live.get(heapq.heappop(self._ends)[1])
            if ended is not None:
                self._end(ended, JobState.WALLTIME)

    def _follow(self, job: _Job, number: int) -> None:
        known = self._cluster.outside_job(number)
        if known.started is not None and job.started is None:
            job.started, job.state, self._news[job.id] = known.started, JobState.RUNNING, job
            self._changes.append(Change(job.pilot, known.started, job.request, ""))
        if known.ended is not None:
            self._end(job, JobState.WALLTIME)


def _report(job: _Job) -> JobReport:
    return JobReport(
        id=job.id,
        tag=job.tag,
        state=job.state,
        start=None if job.started is None else float(job.started),
        end=None if job.ended is None else float(job.ended),
        granted=None if job.started is None else float(job.request.tr),
        limit=float(job.request.tr),
    )


def _cluster_of(place: ScenePlace) -> Cluster:
    if place.machine is None:
        cluster = cluster_of_processors(place.jobs, place.processors, place.policy)
    else:
        cluster = Cluster(lay_out(place.jobs, place.machine, place.chunk), place.policy)
    cluster.advance(0)
    return cluster


def start_cut(
    cluster: Cluster,
    queue: QueueState,
    job: int,
    request: Request,
    rules: SiteRules,
    task: TaskSize,
    nodes: frozenset[str] | None = None,
) -> Request | None:
    """Start a waiting job now with all that its slot holds; what it got.

    None: that is less than its least time, or it has started.

    As OpenPBS and Slurm 26.05 do. The other jobs keep their planned starts.

    Args:
        queue: as the scheduler sees it now, with all of its jobs.
        request: that the job asks for.
        nodes: those of its partition; None: all.
    """
    if request.least is None or cluster.outside_job(job).started is not None:
        return None
    chunk = chunk_of(rules, queue, task) if queue.nodes else None
    held = _held(Availability(queue).without(str(job)).profile(chunk), queue.now, request)
    if held < request.least:
        return None
    got = request.lasting(held)
    reshape(cluster, job, rules, task, got, nodes)
    if cluster.outside_job(job).started is not None:
        return got
    reshape(cluster, job, rules, task, request, nodes)
    return None


def _held(profile: Profile, now: float, request: Request) -> int:
    """Seconds from now for which the processors of a request are free, tr at most."""
    if profile.free_at(now) < request.p:
        return 0
    taken = (time for time, free in profile.steps() if time > now and free < request.p)
    return int(min(request.tr, next(taken, math.inf) - now))
