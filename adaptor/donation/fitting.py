"""Which tasks may be started on a donated node, and which are better kept for formal requests."""

from __future__ import annotations

import math
from typing import Protocol

from adaptor.crafting.fits import tasks_in
from adaptor.donation.idleness import Hazard
from adaptor.donation.situation import Allocation, DonationDemand, DonationRules
from adaptor.resources import Gpus, TaskSize


class NodeSize(Protocol):
    """What a node has, besides its processors."""

    @property
    def memory(self) -> int | None: ...
    @property
    def gpus(self) -> Gpus: ...


def least_probability(allocation: Allocation, rules: DonationRules) -> float:
    """With which a task must finish before its node is taken, to start there; above 1: never, 0: always."""
    if rules.choose == "all" and allocation != "explicit":
        return 0.0
    return {"explicit": 2.0, "mixed": rules.fit, "transparent": rules.last_fit}[allocation]


def release_probability(need: float, wait: float, rules: DonationRules) -> float:
    """With which a held task must finish on a donated node to be started there anyway.

    Started from scratch until it finishes, at the same odds each time, it takes need / probability seconds at
    most; a formal request that starts in `wait` seconds has done it after wait + need. It is not tried with
    less than `last_fit`.
    """
    if wait <= 0:
        return 2.0
    return max(rules.last_fit, need / (need + wait))


def demanded_probability(demand: DonationDemand, rules: DonationRules, now: float) -> float:
    """With which the shortest task of a demand must finish before its node is taken."""
    if demand.held_until is None:
        return least_probability(demand.allocation, rules)
    return release_probability(demand.needs, demand.held_until - now, rules)


def room(hazard: Hazard, age: float, until_planned: float, probability: float) -> float:
    """The estimated seconds of the longest task that may be started on a donated node; 0: none.

    Args:
        age: seconds since the node became idle.
        until_planned: seconds until a job is planned there, or until the hours end.
        probability: with which it must finish (`least_probability`).
    """
    if probability > 1.0:
        return 0.0
    if probability <= 0.0:
        return math.inf
    return max(0.0, min(until_planned, hazard.longest(age, probability)))


def slots_on(node: NodeSize, free: int, task: TaskSize) -> int:
    """Tasks that a node can run at the same time on `free` of its processors.

    None of those that take several nodes: each donated node has a pilot of its own.
    """
    return tasks_in(task, free, node.memory, node.gpus) if task.nodes == 1 else 0


def held(preempted: int, rules: DonationRules) -> bool:
    """Whether a task was preempted so often that donated nodes are kept for others.

    In a `mixed` bag it waits for a pilot of a formal request, and is the first to be started there, unless
    the request is predicted so late that donated nodes are likely to do it before (`release_probability`).
    A `transparent` bag has no such pilots: it is started where no other waiting task fits.
    """
    return rules.choose == "likely" and preempted >= rules.patience


def known_need(estimate: float | None, ran: float) -> float:
    """Seconds that a task is taken to need: what was learned of its bag, and more than it ran in vain.

    Args:
        estimate: of the bag's learner; None before any of its tasks has finished or was cut, when it is
            the default, which says nothing. The task is started anywhere then.
        ran: the longest time that the task ran before it was preempted.
    """
    return max(estimate or 0.0, ran)
