"""Donated nodes as the broker sees them: which waiting tasks may be started there (De Rose §3). Pure."""

from __future__ import annotations

from itertools import islice

from adaptor.donation.fitting import held, known_need, least_probability, room
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

    Held tasks (`fitting.held`) of a mixed bag are left for formal requests. Those of a transparent bag,
    which has no other place for them, are taken where no other waiting task fits: the node would be idle
    otherwise, and the donation counts on them when it chooses nodes (`donation_demand`).
    """
    rules, last = state.rules(worker.site), state.sites[worker.site].last
    longest, other = _room(state, bag, worker, now), None
    if longest <= 0:
        return None
    # Thousands of held tasks may stand in front of the first that fits: they are passed over quickly.
    for position, task in enumerate(islice(bag.waiting, odd_tasks(state, bag, worker.site) + 1)):
        fate = bag.preempted_of(task)
        kept = held(fate.times, rules)
        if fate.ran > longest or (kept and (other is not None or bag.spec.allocation != "transparent")):
            continue
        need = donated_need(state, bag, worker.site, task)
        if need > longest or need + last >= worker.too_long:
            continue
        if not kept:
            return bag.take(position), need + last
        other = position, need
    return None if other is None else (bag.take(other[0]), other[1] + last)


def fits_donated(state: SchedulingState, bag: Bag, worker: Worker, task: int, now: float) -> bool:
    """Whether another attempt of a task is likely to finish on a donated node."""
    last = state.sites[worker.site].last
    need = donated_need(state, bag, worker.site, task)
    return _room(state, bag, worker, now) >= need and need + last < worker.too_long


def _room(state: SchedulingState, bag: Bag, worker: Worker, now: float) -> float:
    """Seconds of the longest task of the bag that may be started on the worker's node and in its pilot."""
    node = state.donated[worker.pilot]
    probability = least_probability(bag.spec.allocation, state.rules(worker.site))
    longest = room(state.hazard(worker.site), now - node.since, node.until - now, probability)
    return min(longest, worker.time_left(now) - state.sites[worker.site].last)


def odd_tasks(state: SchedulingState, bag: Bag, site: str) -> int:
    """How many tasks of a bag, at most, need more than the others: they were cut or preempted."""
    return len(state.learner(bag.id, site).cut_tasks) + len(bag.preempted)


def donation_demand(state: SchedulingState, bag: Bag, site: str) -> DonationDemand | None:
    """What waits of a bag and may be started on donated nodes of a site; None: nothing.

    Suspects (`losses`) are started there only if they have no other place, and on one node at a time.
    """
    rules = state.rules(site)
    if bag.spec.allocation == "explicit":
        return None
    kept = _held(bag, rules) if bag.spec.allocation == "mixed" else set()
    waiting, line = len(bag.waiting) - len(kept), bag.waiting
    if not waiting and bag.suspects and bag.spec.allocation == "transparent":
        waiting, line = 1, bag.suspects
    if waiting <= 0:
        return None
    needs = (
        donated_need(state, bag, site, task)
        for task in islice(line, odd_tasks(state, bag, site) + 1)
        if task not in kept
    )
    return DonationDemand(
        waiting=waiting,
        processors_per_task=bag.spec.cpus,
        memory_per_task=bag.spec.memory,
        needs=min(needs, default=0.0),
        allocation=bag.spec.allocation,
    )


def _held(bag: Bag, rules: DonationRules) -> set[int]:
    return {
        task
        for task, fate in bag.preempted.items()
        if held(fate.times, rules) and bag.state(task) is TaskState.WAITING and task not in bag.losses
    }
