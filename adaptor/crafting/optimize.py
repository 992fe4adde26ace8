"""The last step of Algorithm 2: cut processors and time to what the remaining tasks need."""

from __future__ import annotations

import math

from adaptor.crafting.candidate import Candidate, Work
from adaptor.crafting.shape import TINY


def optimize(chosen: list[Candidate], work: Work) -> list[Candidate]:
    """`optimize(Chosen, numRemainingTasks)` of De Rose et al. 2008, Algorithm 2.

    "If the chosen set provides more processors than the number of tasks, requests in the chosen set
    will be issued with fewer processors" (§4.3.1). The paper says no more. Here the requests with the
    least throughput lose processors first. Then every tr is cut to the instant at which all remaining
    tasks are finished, if each free slot gets the next task at once. A request without a task is dropped.

    Candidates may be of several partitions: each is cut as its own `work` says.
    """
    return _less_time(_fewer_processors(chosen, work), work)


def _fewer_processors(chosen: list[Candidate], work: Work) -> list[Candidate]:
    """At most one slot per remaining task (rounded up to whole nodes where the site allocates those)."""
    excess = sum(each.slots for each in chosen) - work.remaining
    kept: list[Candidate] = []
    for each in sorted(chosen, key=lambda each: each.merit):
        if excess >= each.slots:
            excess -= each.slots
        elif excess > 0:
            p = each.work.shape.processors_for(each.slots - excess)
            kept.append(each.work.shaped(each.slot, p, each.rounds))
            excess = 0
        else:
            kept.append(each)
    return kept


def _less_time(chosen: list[Candidate], work: Work) -> list[Candidate]:
    """Keep only the rounds needed to finish all remaining tasks at the earliest possible instant."""
    if sum(each.tasks for each in chosen) <= work.remaining:
        return chosen
    finish = finish_of(chosen, work)
    rounds = [_rounds_until(finish, each, work) for each in chosen]
    surplus = sum(each.slots * count for each, count in zip(chosen, rounds, strict=True)) - work.remaining
    for index in sorted(range(len(chosen)), key=lambda index: chosen[index].merit):
        if rounds[index] and chosen[index].slots <= surplus:
            rounds[index] -= 1
            surplus -= chosen[index].slots
    return [
        each.work.shaped(each.slot, each.request.p, count)
        for each, count in zip(chosen, rounds, strict=True)
        if count
    ]


def finish_of(chosen: list[Candidate], work: Work) -> float:
    """The first instant at which the chosen requests have finished the remaining tasks, by bisection."""
    early, late = work.now, max(_end_of_round(each, each.rounds, work) for each in chosen)
    while late - early > 1e-3:
        middle = (early + late) / 2
        done = sum(each.slots * _rounds_until(middle, each, work) for each in chosen)
        if done >= work.remaining:
            late = middle
        else:
            early = middle
    return late


def _end_of_round(each: Candidate, rounds: int, work: Work) -> float:
    return each.slot.start + work.shape.rules.pad + rounds * work.shape.runtime


def _rounds_until(time: float, each: Candidate, work: Work) -> int:
    """Rounds of a request that have ended at `time`."""
    busy = time - each.slot.start - work.shape.rules.pad
    return max(0, min(each.rounds, math.floor((busy + TINY) / work.shape.runtime)))
