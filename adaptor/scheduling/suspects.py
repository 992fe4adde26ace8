"""Where and when suspects run: after all other tasks, and never beside them (see `losses`). Pure.

A worker that runs a suspect gets nothing but other suspects, so that a task that takes it down ends no
innocent work. An isolated suspect, one whose workers have died repeatedly, gets an empty worker for itself.
"""

from __future__ import annotations

from adaptor.scheduling.bag import Bag
from adaptor.scheduling.donated_nodes import donated_need, fits_donated
from adaptor.scheduling.guards import may_start
from adaptor.scheduling.places import places_of
from adaptor.scheduling.state import SchedulingState
from adaptor.scheduling.workers import Worker


def feed_suspects(state: SchedulingState, worker: Worker, now: float) -> None:
    """Lease waiting suspects to a worker that is empty, or runs suspects only."""
    while (found := _next(state, worker, now)) is not None:
        places, bag, task, needs = found
        bag.suspects.remove(task)
        state.lease(places, bag, task, needs, now)


def _next(state: SchedulingState, worker: Worker, now: float) -> tuple[list[Worker], Bag, int, float] | None:
    """The suspect to lease, with its workers: of the bag with the fewest processors, the first in time."""
    bags = [
        bag
        for bag in state.bags.values()
        if bag.suspects and state.serves(worker, bag) and may_start(bag, worker)
    ]
    if not bags or not _is_open(state, worker):
        return None
    for bag in sorted(bags, key=lambda bag: (-bag.spec.priority, state.shares[bag.id, worker.site], bag.id)):
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
    if worker.pilot in state.donated:
        # Nobody's idle node is put at risk while a formal request can do it.
        if bag.spec.allocation != "transparent" or not fits_donated(state, bag, worker, task, now):
            return None
        return donated_need(state, bag, worker.site, task) + state.sites[worker.site].last
    needs = state.needs(bag, worker.site, task)
    return needs if needs <= worker.time_left(now) and needs < worker.too_long else None
