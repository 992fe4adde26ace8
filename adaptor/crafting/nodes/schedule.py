"""The schedule of a queue with nodes, and the nodes that a further request most likely gets. Pure."""

from __future__ import annotations

import importlib.util
import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Protocol

import msgspec

from adaptor.crafting.nodes.placing import TimelinesByStart
from adaptor.crafting.nodes.space import GPUS, MEMORY, PROCESSORS, Ask, Space, Vector, chunks_on, taken_by
from adaptor.crafting.nodes.timelines import Timeline, Timelines
from adaptor.crafting.profile import Profile
from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.resources import Need, Part

OVERRUN = 60.0
"""Seconds that a job beyond its time limit is assumed to go on: schedulers end jobs by the minute."""

MANY = 20_000
"""Waiting jobs times nodes from which on compiled loops are worth the time to load them (some 0.3 s)."""

DETAILED = 2_000  # jobs that get nodes one by one without compiled loops: about a second

Hold = tuple[int, float, float, Vector]  # `(node, begin, end, what is held)`


class NodePlan(Protocol):
    """Common interface of `Timelines` and `CompiledTimelines`."""

    def hold(self, holds: Iterable[Hold]) -> None: ...
    def place(self, jobs: Sequence[tuple[Ask, float, float]]) -> None: ...
    def backfill(self, jobs: Sequence[tuple[Ask, float]]) -> list[float]: ...
    def steps(self) -> list[tuple[list[float], list[Vector]]]: ...

    @property
    def latest(self) -> list[tuple[int, Vector]]:
        """Amounts that the last planned job took, by node."""


class NodeSchedule(msgspec.Struct, frozen=True):
    """The planned schedule of a site's nodes."""

    space: Space
    steps: list[tuple[list[float], list[Vector]]]
    """Steps of each node of the space: `(times, free amounts from then on)`."""
    starts: dict[str, float]
    """Planned start of each waiting job by id (epoch seconds); `math.inf`: it never starts."""
    until: float = math.inf
    """Epoch seconds from which on the steps are not known, only what is left of all processors together."""
    noted: dict[str, tuple[Part, ...]] = {}
    """Parts of noted jobs without a known start, by id."""
    rest: Profile | None = None
    """Processors left, on whatever nodes; below 0 where more are held. None: `until` is never."""


def node_schedule(
    queue: QueueState, *, compiled: bool | None = None, noted: Collection[str] = ()
) -> NodeSchedule:
    """Plan a queue on its nodes by conservative backfilling (De Rose §2): a job gets the first hole it fits.

    Running jobs hold their parts until their time limit. Waiting jobs with a start planned by the scheduler
    hold theirs from that start on; where the scheduler does not name the nodes, the first ones with room. The
    other jobs follow in queue order, each as early as possible without delaying an earlier one.

    If the starts of very many jobs are known, only the first `DETAILED` get nodes without compiled loops.

    Args:
        compiled: whether compiled loops are used; None: where they are worth it, and numba is installed.
        noted: ids of jobs of which the parts are wanted.
    """
    space = Space(queue.nodes)
    later = [job for job in queue.pending if job.planned_start is None]
    if compiled is None:
        compiled = is_long(queue) and has_numba()
    starts = planned_starts(queue)
    known = list(spans(queue, starts))
    loose = [(ask, begin, end) for job, begin, end in known if not job.parts for ask in space.asks(job)]
    many = len(loose) * len(space.nodes) >= MANY
    plan = _plan(queue.now, space, compiled=compiled, many=many)
    plan.hold(hold for job, begin, end in known for hold in _holds(space, job.parts, begin, end))
    until, rest = math.inf, None
    if many and not compiled and not later:
        begins = sorted(begin for _, begin, _ in loose)[DETAILED:]
        until = next((begin for begin in begins if begin > queue.now), math.inf)
        if until < math.inf:
            held = [(begin, end, job.processors) for job, begin, end in known]
            rest = Profile.holding(queue.now, queue.processors, held)
    plan.place([(ask, begin, end) for ask, begin, end in loose if begin < until])
    parts: dict[str, tuple[Part, ...]] = {}
    starts.update(zip((job.id for job in later), _backfill(plan, space, later, noted, parts), strict=True))
    return NodeSchedule(space, plan.steps(), starts, until, parts, rest)


def _backfill(
    plan: NodePlan,
    space: Space,
    jobs: Iterable[PendingJob],
    noted: Collection[str],
    parts: dict[str, tuple[Part, ...]],
) -> Iterator[float]:
    """Their starts. A job of uneven chunks starts where most of it fits; the rest takes what is left.

    The parts of the noted ones are added to `parts`.
    """
    for alone, some in groupby(jobs, key=lambda job: job.id in noted or bool(job.need and job.need.others)):
        if not alone:
            yield from plan.backfill([(space.asks(job)[0], job.tr) for job in some])
            continue
        for job in some:
            most, *rest = space.asks(job)
            (start,) = plan.backfill([(most, job.tr)])
            if start < math.inf:
                taken = plan.latest
                for ask in rest:
                    plan.place([(ask, start, start + job.tr)])
                    taken += plan.latest
                if job.id in noted:
                    parts[job.id] = tuple(_part(space, *held) for held in taken)
            yield start


def planned_starts(queue: QueueState) -> dict[str, float]:
    """Starts that the scheduler has planned, by id of the job."""
    return {
        job.id: max(job.planned_start, queue.now) for job in queue.pending if job.planned_start is not None
    }


def spans(
    queue: QueueState, starts: dict[str, float]
) -> Iterable[tuple[RunningJob | PendingJob, float, float]]:
    """The jobs whose begin and end are known, with both."""
    for job in queue.running:
        yield job, queue.now, job.end if job.end > queue.now else queue.now + OVERRUN
    for waiting in queue.pending:
        if waiting.id in starts:
            yield waiting, starts[waiting.id], starts[waiting.id] + waiting.tr


def _holds(space: Space, parts: Iterable[Part], begin: float, end: float) -> Iterable[Hold]:
    for part in parts:
        held = space.held(part)
        if held is not None:
            yield held[0], begin, end, held[1]


def is_long(queue: QueueState) -> bool:
    """True if the readable loops would take seconds, or minutes."""
    return sum(job.planned_start is None for job in queue.pending) * len(queue.nodes) >= MANY


def why_by_processors(queue: QueueState) -> str:
    """Why the starts of jobs are planned by their processors alone; empty: they are planned on nodes."""
    if has_numba() or not is_long(queue):
        return ""
    return (
        "the queue is too long to be planned on the nodes: starts are planned by processors alone, and may "
        "be hours off; the extra 'request-adaptor[compiled]' plans them on the nodes"
    )


@cache
def has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


def _plan(start: float, space: Space, *, compiled: bool, many: bool) -> NodePlan:
    """An empty plan. `many`: there are many jobs to place whose starts are known."""
    if compiled:
        from adaptor.crafting.nodes.compiled import CompiledTimelines

        return CompiledTimelines(start, space)
    return (TimelinesByStart if many else Timelines)(start, space)


def parts_of(plan: NodeSchedule, unit: Need, chunks: int, start: float, end: float) -> tuple[Part, ...]:
    """Parts that a number of chunks of `unit` takes of each node in [start, end), next to all that is
    planned.

    Fewer chunks if the nodes have no room for all.
    """
    ask = plan.space.of(unit)
    parts: list[Part] = []
    for node in plan.space.lists[ask.among]:
        least = _least(plan, node, start, end)
        capacity = plan.space.capacity[node]
        here = min(chunks, chunks_on(least, capacity, ask))
        if here > 0:
            parts.append(_part(plan.space, node, taken_by(here, least, capacity, ask)))
            chunks -= here
        if chunks <= 0:
            break
    return tuple(parts)


def holding(
    plan: NodeSchedule, parts: Sequence[Part], start: float, end: float, *, freed: bool = False
) -> NodeSchedule:
    """The plan in which these parts are held too during [start, end); those of other nodes do not count.

    `freed`: they are held no longer.
    """
    steps = list(plan.steps)
    for part in parts:
        found = plan.space.held(part)
        if found is not None:
            node, held = found
            line = Timeline.of(*steps[node])
            line.hold(start, end, tuple(-count for count in held) if freed else held)
            line.clamp()
            if freed:  # the holds may have exceeded the node
                line.free = [tuple(map(min, step, plan.space.capacity[node])) for step in line.free]
            steps[node] = (line.times, line.free)
    return msgspec.structs.replace(plan, steps=steps, rest=_rest(plan, parts, start, end, freed=freed))


def _rest(
    plan: NodeSchedule, parts: Sequence[Part], start: float, end: float, *, freed: bool
) -> Profile | None:
    begin = max(start, plan.until)
    if plan.rest is None or begin >= end:
        return plan.rest
    rest = plan.rest.copy()
    processors = sum(part.processors for part in parts if part.node in plan.space.index)
    rest.give(begin, end - begin, processors if freed else -processors)
    return rest


def _least(plan: NodeSchedule, node: int, start: float, end: float) -> Vector:
    """Least that is free on a node at any instant of [start, end), by dimension."""
    times, free = plan.steps[node]
    first = max(0, bisect_right(times, start) - 1)
    return tuple(map(min, zip(*free[first : bisect_left(times, end, first + 1)], strict=True)))


def _part(space: Space, node: int, taken: Vector) -> Part:
    there = space.nodes[node]
    gpus = zip(space.types, taken[GPUS:], strict=True)
    return Part(
        node=there.name,
        processors=taken[PROCESSORS],
        memory=0 if there.memory is None else taken[MEMORY],
        gpus=tuple((type, count) for type, count in gpus if count),
    )
