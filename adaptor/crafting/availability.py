"""The schedule of a queue state: the start of each job, and the processors that stay free."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property

import msgspec

from adaptor.crafting.bounded import BoundedProfile, bounded, where
from adaptor.crafting.nodes.schedule import (
    NodeSchedule,
    holding,
    node_schedule,
    planned_starts,
    spans,
    why_by_processors,
)
from adaptor.crafting.nodes.slots import slot_profile
from adaptor.crafting.profile import Profile
from adaptor.model import PendingJob, QueueState
from adaptor.resources import Need


class PlannedQueue(QueueState, frozen=True, kw_only=True):
    """The queue state of a scheduler that reports its whole plan at once, instead of job by job.

    `running` and `pending` are the jobs that the plan does not contain yet.
    """

    plan: tuple[tuple[float, int], ...]
    """`(epoch seconds, processors free from then on)` in order of time, from now on; adjacent ones differ."""


class Schedule(msgspec.Struct, frozen=True):
    """The planned schedule of a site."""

    profile: Profile
    """The processors that running and planned jobs leave free."""
    starts: dict[str, float]
    """Planned start of each pending job by id (epoch seconds); `math.inf`: it never starts."""


class Availability:
    """A queue, and the processors that its jobs leave free: planned when first asked, once for every unit of
    requests."""

    def __init__(
        self, queue: QueueState, nodes: NodeSchedule | None = None, noted: Collection[str] = ()
    ) -> None:
        """
        Args:
            nodes: the plan of the queue's nodes; None: it is made when first asked, where they are known.
            noted: ids of jobs that may leave (`without`): their parts are noted as they are planned.
        """
        self.queue, self._noted = queue, noted
        if nodes is not None:
            self.nodes = nodes
        self._profiles: dict[Need | None, Profile] = {}

    @cached_property
    def nodes(self) -> NodeSchedule | None:
        """The plan of the nodes; None: they are not known."""
        return node_schedule(_plannable(self.queue), noted=self._noted) if self.queue.nodes else None

    @property
    def starts(self) -> dict[str, float]:
        """Planned start of each pending job by id (epoch seconds); `math.inf`: it never starts."""
        return self._planned.starts if self.nodes is None else self.nodes.starts

    def profile(self, unit: Need | None = None) -> Profile:
        """The availability profile from the queue's `now` on, in processors. Copy it before you change it.

        Args:
            unit: what a request is made of (`unit.on_nodes`). Where the nodes are known, the profile is of
                the processors on which whole units fit; None: of single processors.
        """
        if unit not in self._profiles:
            queue, each = self.queue, unit or Need(chunks=1, processors=1)
            nodes = self.nodes
            free = self._planned.profile if nodes is None else slot_profile(nodes, each, queue.now)
            if nodes is not None and queue.allowed.min_parts > 1:
                spread = slot_profile(nodes, msgspec.structs.replace(each, scatter=True), queue.now)
                free = BoundedProfile(free, where(spread, each.processors * queue.allowed.min_parts))
            if queue.allowed.together:
                free = bounded(free, queue.now, queue.allowed.together, spans(queue, self.starts))
            self._profiles[unit] = free
        return self._profiles[unit]

    def with_jobs(self, jobs: Iterable[PendingJob]) -> Availability:
        """The availability if more jobs wait behind those that are there."""
        pending = (*self.queue.pending, *jobs)
        return Availability(msgspec.structs.replace(self.queue, pending=pending), noted=self._noted)

    def beside(self, job: PendingJob, start: float) -> Availability:
        """The availability next to one more job, which holds its parts from `start` on (epoch seconds)."""
        queue = msgspec.structs.replace(self.queue, pending=(*self.queue.pending, job))
        if self.nodes is None:
            return Availability(queue)
        return Availability(queue, holding(self.nodes, job.parts, start, start + job.tr))

    def without(self, gone: str) -> Availability:
        """The availability if the job with this id leaves; the others keep their planned starts."""
        queue, starts = self.queue, self.starts
        known = {job.id: (job, begin, end) for job, begin, end in spans(queue, starts)}
        if gone not in known or math.isinf(known[gone][1]):
            return self
        job, begin, end = known[gone]
        if self.nodes is None:
            profile = self.profile().copy()
            profile.give(begin, end - begin, job.processors)
            left = Availability(queue)
            stay = {id: start for id, start in starts.items() if id != gone and start < math.inf}
            left._planned = Schedule(profile, stay)
            return left
        if parts := job.parts or self.nodes.noted.get(gone, ()):
            return Availability(queue, holding(self.nodes, parts, begin, end, freed=True))
        running = tuple(job for job in queue.running if job.id != gone)
        return Availability(
            msgspec.structs.replace(queue, running=running, pending=_started(queue, starts, gone))
        )

    @cached_property
    def _planned(self) -> Schedule:
        return schedule(self.queue)


def _plannable(queue: QueueState) -> QueueState:
    """The queue to plan; without compiled loops, the jobs of a long one start as their processors alone say.

    The jobs then hold as much as fits at that time; to plan them on the nodes one by one would take minutes.
    """
    if not why_by_processors(queue):
        return queue
    starts = schedule(msgspec.structs.replace(queue, nodes=())).starts
    return msgspec.structs.replace(queue, pending=_started(queue, starts))


def _started(queue: QueueState, starts: Mapping[str, float], but: str = "") -> tuple[PendingJob, ...]:
    """The pending jobs that ever start, with these planned starts, without the job `but`."""
    return tuple(
        msgspec.structs.replace(job, planned_start=starts[job.id])
        for job in queue.pending
        if job.id != but and starts[job.id] < math.inf
    )


def availability(queue: QueueState, unit: Need | None = None) -> Profile:
    """The availability profile for one unit of requests (see `Availability`)."""
    return Availability(queue).profile(unit)


def schedule(queue: QueueState) -> Schedule:
    """Plan the queue by conservative backfilling (De Rose §2), counted in processors.

    A job gets the first hole that it fits.

    Running jobs hold their processors until their time limit. Pending jobs with a start planned by the
    scheduler hold theirs from that start on (from now on if it is past); where such plans need more
    processors than the site has, none are free. The other jobs follow in queue order, each as early as
    possible without delaying an earlier one. A job larger than the site gets no start.
    """
    # Each planned job only lowers the profile, so a job never starts before an earlier job of the same
    # shape: the search continues from that job's start. The first job of a shape starts no earlier than
    # the smallest one of its class would.
    profile, starts, later = fixed(queue)
    reached: dict[tuple[int, float], float] = {}
    floors: dict[tuple[int, int], float] = {}
    """Earliest start so far of the smallest job of each class: powers of two of processors and seconds."""
    for job in later:
        shape = (job.processors, job.tr)
        begin = reached.get(shape, -math.inf)
        if shape not in reached and job.processors > 0 and job.tr > 0:
            kind = (job.processors.bit_length() - 1, math.frexp(job.tr)[1] - 1)
            least = floors.get(kind, -math.inf)
            begin = floors[kind] = profile.earliest_start(2 ** kind[0], 2.0 ** kind[1], least)
        reached[shape] = starts[job.id] = profile.place(job.processors, job.tr, begin)
    return Schedule(profile, starts)


def fixed(queue: QueueState) -> tuple[Profile, dict[str, float], list[PendingJob]]:
    """The part that `schedule` does not choose: the profile next to running jobs and to those that the
    scheduler has planned, the planned starts, and the other jobs in queue order."""
    starts = planned_starts(queue)
    later = [job for job in queue.pending if job.planned_start is None]
    holds = [(begin, end, job.processors) for job, begin, end in spans(queue, starts)]
    if isinstance(queue, PlannedQueue):
        if not holds:
            return Profile.of_steps(queue.plan), starts, later
        ends = [*(time for time, _ in queue.plan[1:]), math.inf]
        steps = zip(queue.plan, ends, strict=True)
        holds += [(time, end, queue.processors - free) for (time, free), end in steps]
    return Profile.holding(queue.now, queue.processors, holds), starts, later
