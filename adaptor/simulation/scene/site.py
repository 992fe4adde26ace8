"""One simulated site: a space-shared cluster, its queue and its nodes, and our pilots in it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TypeVar

import msgspec

from adaptor.crafting.places import rules_in
from adaptor.decisions.site_memory import SiteSettings
from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import NodeUse
from adaptor.model import PendingJob, QueueState, Request, RunningJob
from adaptor.reports import JobReport, JobState, NodeReport
from adaptor.resources import TaskSize
from adaptor.simulation.cluster import Policy, Simulation
from adaptor.simulation.donation.processors import OWNER, PLANNED, Processors
from adaptor.simulation.jobs import Jobs
from adaptor.simulation.kernels import NEVER
from adaptor.simulation.nodes.cluster import NodeCluster
from adaptor.simulation.nodes.machine import Machine, lay_out
from adaptor.simulation.nodes.queue_view import node_queue
from adaptor.simulation.pilot_requests import Cluster, among, reshape, submit
from adaptor.simulation.queue_view import queue_state
from backends.partitions import together

_AnyJob = TypeVar("_AnyJob", RunningJob, PendingJob)


class ScenePlace(msgspec.Struct, frozen=True, kw_only=True):
    """What a simulated site is made of. Times in whole seconds."""

    settings: SiteSettings
    """As the daemon makes them from a configuration."""
    jobs: Jobs
    """Of the local users."""
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


class _Job(msgspec.Struct):
    """A pilot as the scheduler knows it."""

    id: str
    tag: str
    pilot: int
    request: Request
    node: str
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
    """How it ended; None: it started."""


class SimulatedSite:
    """Answers what a backend is asked, on the virtual clock. A donated node is one processor, of a machine of
    nodes too.

    Agents keep donated nodes outside of the scheduler, so a local job finds its processors idle and takes
    them; what ran there is preempted.
    """

    def __init__(self, place: ScenePlace) -> None:
        self.place = place
        self.name = place.settings.name
        self._cluster = _cluster_of(place)
        self._cluster.advance(0)
        self._processors = _processors_of(self._cluster)
        self._jobs: dict[str, _Job] = {}
        self._used: dict[int, _Job] = {}
        """By processor that we use as a donated node."""
        self._changes: list[Change] = []

    @property
    def now(self) -> int:
        return self._cluster.now

    def next_event(self) -> float:
        """When something happens next; `math.inf`: never."""
        coming = self._cluster.next_event()
        ends = [(job.started or 0) + job.request.tr for job in self._used.values()]
        return min([coming if coming is not None else math.inf, *ends])

    def advance(self, until: int) -> list[Change]:
        """Let all happen up to and including a second; what became of our pilots since the last call."""
        while (at := min(self.next_event(), until)) <= until and at > self._cluster.now:
            self._cluster.advance(int(at))
            self._look()
        self._cluster.advance(until)
        self._look()
        changes, self._changes = self._changes, []
        return changes

    # --- what a backend is asked -----------------------------------------------------------------

    def queue_state(self) -> QueueState:
        """Our own jobs by the ids that `submit` has given them."""
        state = self._with_ids()
        names = self.place.settings.rules.limits.partitions
        if not names:
            return state
        return together({name: among(state, self.place.partitions.get(name)) for name in names})

    def _with_ids(self) -> QueueState:
        cluster = self._cluster
        queue = node_queue(cluster) if isinstance(cluster, NodeCluster) else queue_state(cluster)
        own = {str(job.number): job.id for job in self._jobs.values() if job.ended is None}
        return msgspec.structs.replace(
            queue,
            running=tuple(_named(job, own) for job in queue.running),
            pending=tuple(_named(job, own) for job in queue.pending),
        )

    def nodes(self) -> list[NodeReport]:
        self._processors.plan_ahead()
        lot = self._processors.lot
        return [
            NodeReport(
                name=_node(place),
                processors=1,
                use=NodeUse.IDLE if owner < 0 else NodeUse.TAKEN,
                planned=float(planned) if owner < 0 and planned < NEVER else math.inf,
            )
            for place, (owner, planned) in enumerate(lot[[OWNER, PLANNED]].T.tolist())
        ]

    def submit(
        self, pilot: int, tag: str, request: Request, node: str, task: TaskSize, partition: str = ""
    ) -> str:
        """The job's id; on nodes it asks for chunks that hold tasks of this size."""
        job = _Job(f"{self.name}-{pilot}", tag, pilot, request, node)
        self._jobs[job.id] = job
        if node:
            job.started, job.state = self.now, JobState.RUNNING
            self._used[_place(node)] = job
            self._changes.append(Change(pilot, self.now, request, node))
        else:
            rules = rules_in(self.place.settings.rules, partition)
            job.number = submit(self._cluster, rules, task, request, self.place.partitions.get(partition))
            self._look()
        return job.id

    def reshape(self, id: str, request: Request, task: TaskSize, partition: str = "") -> bool:
        """Let a job that waits ask for another request in its place; whether it does."""
        job = self._jobs[id]
        if job.number is None or job.started is not None or job.ended is not None:
            return False
        nodes = self.place.partitions.get(partition)
        rules = rules_in(self.place.settings.rules, partition)
        if not reshape(self._cluster, job.number, rules, task, request, nodes):
            return False
        job.request = request
        self._look()
        return True

    def jobs(self) -> list[JobReport]:
        """All of our pilots that are in the system or ended lately."""
        return [
            JobReport(
                id=job.id,
                tag=job.tag,
                state=job.state,
                start=None if job.started is None else float(job.started),
                end=None if job.ended is None else float(job.ended),
            )
            for job in self._jobs.values()
        ]

    def cancel(self, ids: Collection[str]) -> None:
        for id in ids:
            job = self._jobs[id]
            if job.ended is None:
                self._stop(job, JobState.CANCELLED)

    def leave(self, pilot: int) -> None:
        """The last worker of a pilot has left."""
        for job in self._jobs.values():
            if job.pilot == pilot and job.ended is None:
                self._stop(job, JobState.COMPLETED)

    # --- what happens ----------------------------------------------------------------------------

    def _stop(self, job: _Job, state: JobState) -> None:
        if job.number is not None:
            self._cluster.cancel(job.number)
        self._end(job, state)
        self._look()

    def _end(self, job: _Job, state: JobState) -> None:
        job.ended, job.state = self.now, state
        if job.node:
            del self._used[_place(job.node)]
        self._changes.append(Change(job.pilot, self.now, job.request, job.node, state))

    def _look(self) -> None:
        """Take in what started and ended in this second."""
        ended, started = self._processors.changes()
        for number in ended:
            self._processors.vacate(number)
        for number in started:
            self._processors.seat(number)
        owner = self._processors.lot[OWNER]
        for place, job in list(self._used.items()):
            if owner[place] >= 0:
                self._end(job, JobState.PREEMPTED)
            elif job.started is not None and self.now >= job.started + job.request.tr:
                self._end(job, JobState.WALLTIME)
        for job in self._jobs.values():
            if job.number is not None and job.ended is None:
                self._follow(job, job.number)

    def _follow(self, job: _Job, number: int) -> None:
        known = self._cluster.outside_job(number)
        if known.started is not None and job.started is None:
            job.started, job.state = known.started, JobState.RUNNING
            self._changes.append(Change(job.pilot, known.started, job.request, ""))
        if known.ended is not None:
            self._end(job, JobState.WALLTIME)


def _named(job: _AnyJob, own: Mapping[str, str]) -> _AnyJob:
    return msgspec.structs.replace(job, id=own[job.id]) if job.id in own else job


def _cluster_of(place: ScenePlace) -> Cluster:
    if place.machine is None:
        return Simulation(place.jobs, place.processors, place.policy)
    return NodeCluster(lay_out(place.jobs, place.machine, place.chunk), place.machine, place.policy)


def _processors_of(cluster: Cluster) -> Processors[Simulation] | Processors[NodeCluster]:
    if isinstance(cluster, NodeCluster):
        return Processors(cluster, IdleLearner())
    return Processors(cluster, IdleLearner())


def _node(place: int) -> str:
    return f"cpu{place}"


def _place(node: str) -> int:
    return int(node.removeprefix("cpu"))
