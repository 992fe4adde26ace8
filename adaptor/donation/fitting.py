"""Tasks for donated nodes, tasks that are better kept for requests, and nodes that will come.

De Rose et al. (2008, §5): cheaper resources are worth waiting for as long as the time to the deadline allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import msgspec

from adaptor.crafting.fits import tasks_in
from adaptor.donation.idleness import EDGES, Hazard, Idleness
from adaptor.donation.situation import Allocation, DonationDemand, DonationRules, Hours
from adaptor.resources import Gpus, TaskSize


class NodeSize(Protocol):
    """Resources of a node besides its processors."""

    @property
    def memory(self) -> int | None: ...
    @property
    def gpus(self) -> Gpus: ...


def least_probability(allocation: Allocation, rules: DonationRules) -> float:
    """Probability with which a task must finish before its node is taken, to start there; above 1: never, 0:
    always."""
    if rules.choose == "all" and allocation != "explicit":
        return 0.0
    return {"explicit": 2.0, "mixed": rules.fit, "transparent": rules.last_fit}[allocation]


def release_probability(need: float, wait: float, rules: DonationRules) -> float:
    """Probability with which a held task must finish on a donated node to be started there anyway.

    Started from scratch until it finishes, at the same odds each time, it takes need / probability seconds at
    most; a formal request that starts in `wait` seconds has done it after wait + need. The result is at least
    `last_fit`.
    """
    if wait <= 0:
        return 2.0
    return max(rules.last_fit, need / (need + wait))


def demanded_probability(demand: DonationDemand, rules: DonationRules, now: float) -> float:
    """Probability with which the shortest task of a demand must finish before its node is taken."""
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


_NONE = 1e-6  # fewer nodes are none


class NodesToCome(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that will have become idle after some time, in expectation."""

    nodes: float
    """Idle then, for at least `age`."""
    wait: float
    """Seconds after which that many, all at once, would give as many node-seconds until then."""
    age: float
    """Seconds for which a node must have been idle before tasks are started there."""
    lasting: float
    """Mean seconds for which it stays idle from then on."""


def nodes_to_come(
    hazard: Hazard, idleness: Idleness, seconds: float, needs: float, probability: float
) -> NodesToCome | None:
    """The nodes to come within some seconds; None: none is expected to be of use by then.

    Never more than there were in the past: the pieces of the hazard are long, and so are its oldest nodes.

    Args:
        hazard: as learned from `idleness`.
        needs: seconds of a task.
        probability: with which a task must finish before its node is taken, to be started there.
    """
    ages = (edge for edge in EDGES if room(hazard, edge, math.inf, probability) >= needs)
    age = next(ages, math.inf)
    if age >= seconds:
        return None
    nodes, node_seconds = hazard.idle_until(age, seconds)
    expected = min(idleness.begins * nodes, idleness.usual(age))
    if expected < _NONE:
        return None
    return NodesToCome(
        nodes=expected,
        wait=min(seconds, max(age, seconds - node_seconds / nodes)),
        age=age,
        lasting=nodes / hazard.survival(0.0, age),
    )


DAY = 86400.0


def closes(hours: Sequence[Hours], now: float, midnight: float) -> float:
    """Epoch seconds until which nodes may be used from `now` on: `math.inf`: always; `now`: not at all."""
    if not hours:
        return math.inf
    end = now
    for _ in range(len(hours) + 1):  # parts that touch are one
        longer = max((_end(part, end, midnight) for part in hours), default=end)
        if longer <= end:
            return end
        if longer - now >= DAY:
            return math.inf
        end = longer
    return end


def _end(part: Hours, at: float, midnight: float) -> float:
    """End of the part of the day in which `at` lies; `at` itself if it does not lie in it."""
    into = round(at - midnight - part.begin, 3) % DAY  # the end of one part is the begin of the next
    length = (part.end - part.begin) % DAY or DAY
    return at - into + length if into < length else at
