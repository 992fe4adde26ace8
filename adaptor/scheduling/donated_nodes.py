"""Donated nodes as the broker sees them: which waiting tasks may be started there (De Rose §3). Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice

from adaptor.donation.fitting import held, known_need, least_probability, release_probability, room
from adaptor.donation.situation import DonationDemand, DonationRules
from adaptor.model import TaskState
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.state import SchedulingState
from adaptor.scheduling.workers import Worker


def donated_need(state: SchedulingState, bag: Bag, site: str, task: int) -> float:
    """Seconds that a task is taken to need on a donated node; 0 while nothing is known of its bag."""
    learner = state.learner(bag.id, site)
    known = learner.mean is not None or learner.cut_tasks or bag.spec.runtimes.get(site) is not None
    return known_need(learner.estimate_of(task) if known else None, bag.preempted_of(task).ran)


def take_for_donated(
    state: SchedulingState, bag: Bag, worker: Worker, now: float
) -> tuple[int, float] | None:
    """Take the first waiting task that is likely to finish on a donated node: (task, seconds it needs).

    Held tasks (`fitting.held`) of a mixed bag are left for formal requests, unless those start too late
    (`fitting.release_probability`). They, and those of a transparent bag, which has no other place for them,
    are taken where no other waiting task fits: the node would be idle otherwise, and the donation counts on
    them when it chooses nodes (`donation_demands_of`).
    """
    rules, last = state.rules(worker.site), state.sites[worker.site].last
    longest, other = _room_of(state, bag, worker, now), None
    if longest <= 0:
        return None
    release = _Release(state, bag, worker, now)
    # Thousands of held tasks may stand in front of the first that fits: they are passed over quickly.
    for position, task in enumerate(islice(bag.waiting, odd_tasks(state, bag, worker.site) + 1)):
        fate = bag.preempted_of(task)
        kept = held(fate.times, rules)
        if kept and other is not None:
            continue
        waits = kept and bag.spec.allocation == "mixed"
        if fate.ran > (release.longest if waits else longest):
            continue
        need = donated_need(state, bag, worker.site, task)
        if not (release.allows(need) if waits else need <= longest) or need + last >= worker.too_long:
            continue
        if not kept:
            return bag.take(position), need + last
        other = position, need
    return None if other is None else (bag.take(other[0]), other[1] + last)


def fits_donated(state: SchedulingState, bag: Bag, worker: Worker, task: int, now: float) -> bool:
    """Whether another attempt of a task is likely to finish on a donated node."""
    last = state.sites[worker.site].last
    need = donated_need(state, bag, worker.site, task)
    return _room_of(state, bag, worker, now) >= need and need + last < worker.too_long


def _room_of(state: SchedulingState, bag: Bag, worker: Worker, now: float) -> float:
    """Seconds of the longest task of the bag, if it is not held, that may be started there."""
    return _room(state, worker, now, least_probability(bag.spec.allocation, state.rules(worker.site)))


def _room(state: SchedulingState, worker: Worker, now: float, probability: float) -> float:
    """Seconds of the longest task that may be started on the worker's node and in its pilot."""
    node = state.donated[worker.pilot]
    longest = room(state.hazard(worker.site), now - node.since, node.until - now, probability)
    return min(longest, worker.time_left(now) - state.sites[worker.site].last)


class _Release:
    """Whether held tasks of a mixed bag may be started on a worker's node now. Most bags never ask."""

    def __init__(self, state: SchedulingState, bag: Bag, worker: Worker, now: float) -> None:
        self._state, self._bag, self._worker, self._now = state, bag, worker, now

    @cached_property
    def _wait(self) -> float:
        """Seconds until the next request is predicted to start; 0: none is."""
        start = self._state.next_start(self._bag)
        return 0.0 if start is None else start - self._now

    @cached_property
    def longest(self) -> float:
        """Seconds above which none may be. Where one does not fit, no longer one does."""
        return self._room_for(0.0) if self._wait > 0 else -math.inf

    def allows(self, need: float) -> bool:
        """Whether a task of so many seconds may be started."""
        fits = need <= self.longest and need <= self._room_for(need)
        if not fits:
            self.longest = min(self.longest, math.nextafter(need, -math.inf))
        return fits

    def _room_for(self, need: float) -> float:
        least = release_probability(need, self._wait, self._state.rules(self._worker.site))
        return _room(self._state, self._worker, self._now, least)


def odd_tasks(state: SchedulingState, bag: Bag, site: str) -> int:
    """How many tasks of a bag, at most, need more than the others: they were cut or preempted."""
    return len(state.learner(bag.id, site).cut_tasks) + len(bag.preempted)


def donation_demands_of(state: SchedulingState, bag: Bag, site: str) -> Iterator[DonationDemand]:
    """What waits of a bag and may be started on donated nodes of a site.

    Tasks of a mixed bag that are held for a request that is predicted to start come after the others.
    Suspects (`losses`) are started there only if they have no other place, and on one node at a time.
    """
    rules = state.rules(site)
    if bag.spec.allocation == "explicit":
        return
    kept = _held(bag, rules) if bag.spec.allocation == "mixed" else set()
    waiting = len(bag.waiting) - len(kept)
    first = odd_tasks(state, bag, site) + 1
    if waiting > 0:
        yield _demand(
            state, bag, site, waiting, [task for task in islice(bag.waiting, first) if task not in kept]
        )
    elif bag.suspects and bag.spec.allocation == "transparent":
        yield _demand(state, bag, site, 1, list(islice(bag.suspects, first)))
    start = state.next_start(bag)
    if kept and start is not None:
        yield _demand(state, bag, site, len(kept), kept, held_until=start)


def _demand(
    state: SchedulingState,
    bag: Bag,
    site: str,
    waiting: int,
    tasks: Collection[int],
    held_until: float | None = None,
) -> DonationDemand:
    """`tasks`: all that may be the shortest."""
    return DonationDemand(
        waiting=waiting,
        processors_per_task=bag.spec.cpus,
        memory_per_task=bag.spec.memory,
        needs=min((donated_need(state, bag, site, task) for task in tasks), default=0.0),
        allocation=bag.spec.allocation,
        held_until=held_until,
    )


def _held(bag: Bag, rules: DonationRules) -> set[int]:
    return {
        task
        for task, fate in bag.preempted.items()
        if held(fate.times, rules) and bag.state(task) is TaskState.WAITING and task not in bag.losses
    }
