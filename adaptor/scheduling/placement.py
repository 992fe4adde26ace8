"""Workers that a task may use, together or alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from adaptor.resources import Room, TaskSize
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.donated_nodes import fits_donated, reach
from adaptor.scheduling.guards import may_start
from adaptor.scheduling.lines import LOOKAHEAD, Line
from adaptor.scheduling.state import SchedulingState
from adaptor.scheduling.task_needs import TaskNeeds
from adaptor.scheduling.workers import Worker

Turn = tuple[Bag, Line]  # a bag, and a class of its tasks of which some wait


def waiting_bags(state: SchedulingState, worker: Worker) -> list[Bag]:
    """The bags with waiting tasks that may start on a worker."""
    return [
        bag
        for bag in state.bags.values()
        if bag.lines.any_waits and state.serves(worker, bag) and may_start(state, bag, worker)
    ]


def in_turn(state: SchedulingState, bags: Iterable[Bag], worker: Worker) -> list[Bag]:
    """The bags in their turn: those with the highest priority first, then those that hold the fewest
    processors at this site, then the older ones."""
    return sorted(
        bags, key=lambda bag: (-bag.spec.priority, state.held_processors[bag.id, worker.site], bag.id)
    )


def lines_of(bags: Iterable[Bag]) -> Iterator[Turn]:
    """Lines of waiting tasks of these bags; of each bag, the class to be served next comes first."""
    for bag in bags:
        for line in bag.lines.by_turn(in_file_order=bag.spec.order != "random"):
            yield bag, line


def places_for(state: SchedulingState, bag: Bag, line: Line, worker: Worker, room: Room) -> list[Worker]:
    """The workers that a task of this class gets, this one among them; empty: none fits now.

    Of a task on one node, the worker if `room` holds it. Of one on several, empty workers of the pilot in the
    order of their nodes; the first runs its command.
    """
    if line.task.nodes > 1:
        return places_of(state, line.task, worker, room)
    if room.holds(line.task):
        return [worker]
    some = line.waiting.head(LOOKAHEAD) if line.mixed else ()
    return [worker] if any(room.holds(bag.sizes.of(task)) for task in some) else []


def places_of(state: SchedulingState, task: TaskSize, worker: Worker, room: Room) -> list[Worker]:
    """Workers on which one task of this size can start now, in the order of nodes; empty: it cannot."""
    if task.nodes == 1:
        return [worker] if room.holds(task) else []
    others = [other for other in _candidates(state, task, worker) if other is not worker and is_empty(other)]
    if not is_empty(worker) or len(others) < task.nodes - 1:
        return []
    return sorted([worker, *sorted(others, key=_by_node)[: task.nodes - 1]], key=_by_node)


def is_empty(worker: Worker) -> bool:
    """True if it holds nothing, and has said so."""
    return not worker.held and not worker.awaited and worker.free == worker.whole


def _candidates(state: SchedulingState, task: TaskSize, worker: Worker) -> list[Worker]:
    """The workers of the pilot that can be one of the nodes of a task; none if this one cannot."""
    if not worker.whole.holds(task):
        return []
    return [other for other in state.workers.of_pilot(worker.pilot) if other.whole.holds(task)]


def _by_node(worker: Worker) -> list[tuple[int, str]]:
    """Numbers in a name count as numbers: n2 comes before n10."""
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"(\d+)", worker.node)]


def keep_for(state: SchedulingState, bag: Bag, line: Line, worker: Worker, now: float) -> bool:
    """True if a worker must keep its free processors for a class whose next task needs more than is free.

    One worker is kept for each bag at most, and only while the class holds nothing at the site.
    """
    if line.task.nodes > 1:
        # The bag is the one to be served next: what becomes free is kept until enough nodes are.
        there = len(_candidates(state, line.task, worker))
        enough = there >= line.task.nodes or (there and state.made_for.get(worker.pilot) == line.task)
        return bool(enough) and _has_time(state, bag, line, worker, now)
    next_one = bag.sizes.of(line.waiting[0])
    if state.leases[bag.id, line.number, worker.site] or not worker.whole.holds(next_one):
        return False
    if line.mixed and not _has_time(state, bag, line, worker, now):
        return False
    kept = state.reserved.get(bag.id)
    if kept is None or kept[1] not in state.workers:
        kept = state.reserved[bag.id] = line.number, worker.id
    return kept == (line.number, worker.id)


def those_for_gpus(state: SchedulingState, worker: Worker, turns: Iterable[Turn], now: float) -> list[Turn]:
    """The lines with a waiting task for whose GPUs a worker with GPUs is kept. Empty: there are none."""
    return [
        (bag, line)
        for bag, line in turns
        if line.task.gpus and worker.whole.holds(line.task) and _has_time(state, bag, line, worker, now)
    ]


def _has_time(state: SchedulingState, bag: Bag, line: Line, worker: Worker, now: float) -> bool:
    """True if a waiting task may start there as long as the pilot has left."""
    tasks = line.waiting.head(reach(state, bag, line, worker.site))
    if worker.pilot in state.donated:
        return any(fits_donated(state, bag, worker, task, now) for task in tasks)
    needs = TaskNeeds(state, bag, worker.site, line)
    return any(needs.fitting(tasks, lambda seconds: worker.can_finish(seconds, now)))


def feed_suspects(state: SchedulingState, worker: Worker, now: float) -> None:
    """Lease waiting suspects to a worker that is empty, or runs suspects only."""
    while (found := _next(state, worker, now)) is not None:
        places, bag, task, needs = found
        bag.suspects.remove(task)
        state.lease(places, bag, task, needs, now)


def _next(state: SchedulingState, worker: Worker, now: float) -> tuple[list[Worker], Bag, int, float] | None:
    """The suspect to lease, with its workers."""
    bags = [
        bag
        for bag in state.bags.values()
        if bag.suspects and state.serves(worker, bag) and may_start(state, bag, worker)
    ]
    if not bags or not _is_open(state, worker):
        return None
    for bag in in_turn(state, bags, worker):
        for task in bag.suspects:
            places = places_of(state, bag.sizes.of(task), worker, worker.free)
            needs = _time_for(state, bag, worker, task, now) if places else None
            if needs is not None and not (worker.held and bag.losses.isolated(task)):
                return places, bag, task, needs
    return None


def _is_open(state: SchedulingState, worker: Worker) -> bool:
    """True if nothing runs there but suspects that may have company."""
    bags = state.bags
    return all(
        key.bag in bags and key.task in bags[key.bag].losses and not bags[key.bag].losses.isolated(key.task)
        for key in worker.held
    )


def _time_for(state: SchedulingState, bag: Bag, worker: Worker, task: int, now: float) -> float | None:
    """Seconds that the pilot must have left when the task starts; None: it is not to start there."""
    needs = TaskNeeds(state, bag, worker.site, bag.lines.of(task))
    if worker.pilot in state.donated:
        # No donated node is put at risk while a formal request can run the task.
        if bag.spec.allocation != "transparent" or not fits_donated(state, bag, worker, task, now):
            return None
        return needs.on_donated(task) + state.sites[worker.site].last
    seconds = needs.to_start(task)
    return seconds if worker.can_finish(seconds, now) else None
