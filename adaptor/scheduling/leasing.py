"""Assignment of waiting tasks to workers: eager scheduling with fair shares between bags.

Eager: a worker with free processors gets the next task at once (De Rose §1). Each worker also holds a short
reserve of tasks, so that no slot waits for a round trip. When no task waits, idle workers get unstarted
tasks back from other workers, then suspects (`suspects`), then replicas of running tasks: the first result of
a task wins.
"""

from __future__ import annotations

import math

from adaptor.donation.fitting import held
from adaptor.model import TaskState
from adaptor.resources import Room
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.donated_nodes import reach, take_for_donated
from adaptor.scheduling.guards import may_hold, may_wait_behind, room_of
from adaptor.scheduling.lines import Line
from adaptor.scheduling.placement import (
    feed_suspects,
    in_turn,
    is_empty,
    keep_for,
    lines_of,
    places_for,
    those_for_gpus,
    waiting_bags,
)
from adaptor.scheduling.state import PaidCopy, SchedulingState
from adaptor.scheduling.tail_replication import copies, may_replicate
from adaptor.scheduling.task_needs import TaskNeeds
from adaptor.scheduling.workers import Worker

RESERVE_LIMIT = 256  # the most leases that a worker holds in reserve
_PAUSE = 0.1  # seconds between two searches for tasks to replicate, for each hundred workers


def dispatch(state: SchedulingState, now: float) -> None:
    """Lease waiting tasks to every worker with free processors."""
    for worker in list(state.workers.values()):
        if not worker.awaited and worker.free.processors > 0:
            feed(state, worker, now)


def feed(state: SchedulingState, worker: Worker, now: float) -> None:
    """Lease tasks to a worker: first for its free processors, then for its reserve."""
    if worker.runs_suspects:
        feed_suspects(state, worker, now)
        return
    while _lease_next(state, worker, worker.free, now, waiting_bags(state, worker)):
        pass
    bags = _reserved_bags(state, worker)
    depth = max((_reserve(state, bag, line, worker) for bag, line in lines_of(bags)), default=0)
    while worker.queued < depth and _lease_next(state, worker, worker.whole, now, bags, reserve=True):
        bags = _reserved_bags(state, worker)
    if waiting_bags(state, worker):
        if not worker.held:  # nothing that waits fits there, and it may leave as idle
            feed_suspects(state, worker, now)
    elif worker.free.processors > 0:
        feed_idle(state, worker, now)


def _reserved_bags(state: SchedulingState, worker: Worker) -> list[Bag]:
    """The bags with waiting tasks that a worker may hold in reserve."""
    return [
        bag
        for bag in state.bags.values()
        if bag.lines.any_waits
        and state.serves(worker, bag)
        and (may_hold(bag, worker) if bag.max_running is None else may_wait_behind(state, bag, worker))
    ]


def lacks_time(state: SchedulingState, worker: Worker, now: float) -> bool:
    """True if a worker holds nothing, and its pilot ends too soon for every task that waits.

    Only runtimes that were learned, or that users told, count, and no open bag waits: its next tasks may be
    shorter.
    """
    bags = waiting_bags(state, worker)
    if not bags or not is_empty(worker) or worker.pilot in state.donated:
        return False
    if any(bag.open and state.serves(worker, bag) for bag in state.bags.values()):
        return False
    return not any(_may_fit(state, bag, line, worker, now) for bag, line in lines_of(bags))


def _may_fit(state: SchedulingState, bag: Bag, line: Line, worker: Worker, now: float) -> bool:
    """True if a waiting task of a line ends in time in a worker's pilot, or may for all that is known."""
    tasks = line.waiting.head(reach(state, bag, line, worker.site))
    needs = TaskNeeds(state, bag, worker.site, line)
    nothing_known = not (bag.spec.time or needs.learner.seen.finished)
    if nothing_known and any(bag.sizes.time(task) is None for task in tasks):
        return True
    return any(needs.fitting(tasks, lambda seconds: seconds <= worker.time_left(now)))


def lacks_work(state: SchedulingState, worker: Worker) -> bool:
    """True if a worker holds nothing, and no task waits, or is expected, that may run in its pilot."""
    return (
        is_empty(worker)
        and worker.pilot not in state.donated
        and not any(
            state.serves(worker, bag)
            and (bag.open or bag.count(TaskState.WAITING) or bag.count(TaskState.BLOCKED))
            for bag in state.bags.values()
        )
    )


def _lease_next(
    state: SchedulingState, worker: Worker, room: Room, now: float, bags: list[Bag], *, reserve: bool = False
) -> bool:
    """Lease one task, of the first of these bags that has one that fits."""
    bags = in_turn(state, bags, worker)
    for_gpus = those_for_gpus(state, worker, lines_of(bags), now) if worker.whole.gpus else []
    for bag, line in for_gpus or lines_of(bags):
        if places := places_for(state, bag, line, worker, room):
            taken = _take_fitting(state, bag, line, worker, room, now)
            if taken is not None:
                if state.reserved.get(bag.id, (line.number,))[0] == line.number:
                    state.reserved.pop(bag.id, None)
                behind = reserve and bag.max_running is not None
                state.lease(places, bag, *taken, now, behind=behind)
                return True
        elif keep_for(state, bag, line, worker, now):
            return False
    return False


def _take_fitting(
    state: SchedulingState, bag: Bag, line: Line, worker: Worker, room: Room, now: float
) -> tuple[int, float] | None:
    """Take the first task of a line that can finish before the pilot ends: (task, seconds it needs).

    In a pilot of a formal request, tasks held for formal requests (`fitting.held`) go first, since the
    other tasks may run on donated nodes too. Only tasks that were cut or preempted need more time than the
    others, so the search ends after as many tasks as there are of those.
    """
    if worker.pilot in state.donated:
        return take_for_donated(state, bag, line, worker, room, now)
    rules, other = state.rules(worker.site), None
    tasks = line.waiting.head(reach(state, bag, line, worker.site))
    needs = TaskNeeds(state, bag, worker.site, line)
    for position, task, seconds in needs.fitting(tasks, lambda seconds: worker.can_finish(seconds, now)):
        first = not bag.preempted or held(bag.preempted_of(task).times, rules)
        if (other is not None and not first) or not line.admits(task, room):
            continue
        if first:
            return line.take(position), seconds
        other = position, seconds
    return None if other is None else (line.take(other[0]), other[1])


def _reserve(state: SchedulingState, bag: Bag, line: Line, worker: Worker) -> int:
    """The number of leases that a worker should hold beyond its running tasks.

    Enough for the site's `reserve` seconds of work and at least one, but at most half of the worker's fair
    part of the waiting tasks (guided self-scheduling), so that the last tasks do not wait in one worker.
    Of a bag with `max-running`, the worker's places of it count in place of its processors.
    """
    seen = state.learner_of(bag, worker.site, line).seen
    terms = state.sites[worker.site]
    if not seen.finished or not terms.reserve or line.task.nodes > 1:
        return 0
    slots = max(1, worker.whole.slots(line.task))
    share = worker.processors / max(1, state.workers.processors(worker.site))
    if bag.max_running is not None:
        slots = worker.held.at_once(bag.id)
        share = slots / bag.max_running
    seconds = terms.reserve + 2 * terms.latency
    wanted = min(RESERVE_LIMIT, max(1, math.ceil(slots * seconds / max(seen.mean, 1e-4))))
    return min(wanted, int(len(line.waiting) * share / 2))


def feed_idle(state: SchedulingState, worker: Worker, now: float) -> None:
    """Use an idle worker when no task waits but suspects: its processors are already paid for (De Rose §1).

    Call unstarted tasks back for it, else start suspects, else replicate running tasks.
    """
    if _call_back(state, worker):
        return
    if not worker.held:
        feed_suspects(state, worker, now)
        if worker.held:
            return
    for bag in list(state.bags.values()):
        if may_replicate(bag) and state.serves(worker, bag) and _is_due(state, bag, now):
            for copy in copies(state, bag, now):
                key = state.lease([copy.worker], bag, copy.task, copy.needs, now)
                if bag.id in state.alone:
                    state.copies[key] = PaidCopy(copy.worker.id, copy.until)


def _call_back(state: SchedulingState, idle: Worker) -> bool:
    """Ask other workers to return half of their unstarted tasks; True if it asked for any."""
    asked = False
    for other in state.workers.values():
        if other.awaited or other.site != idle.site:
            continue
        unstarted = [
            key
            for key in other.unstarted
            if not other.held[key].give_back_sent and (other is not idle or other.held[key].behind)
        ]
        for key in unstarted[len(unstarted) // 2 :]:
            bag = state.bags.get(key.bag)
            if not other.queued or bag is None or not idle.free.holds(bag.sizes.of(key.task)):
                continue
            if state.serves(idle, bag) and room_of(state, bag) > 0:
                other.held[key].give_back_sent = asked = True
                state.orders[other.id].give_back.append(key)
    return asked


def _is_due(state: SchedulingState, bag: Bag, now: float) -> bool:
    """True if the last search is old enough: each search visits all workers (1000 workers: 20 ms)."""
    last = state.looked.get(bag.id)
    if last is not None and 0 <= now - last < len(state.workers) // 100 * _PAUSE:
        return False
    state.looked[bag.id] = now
    return True
