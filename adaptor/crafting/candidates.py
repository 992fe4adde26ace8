"""Possible requests, each in a free slot with its throughput, and the last step of Algorithm 2."""

from __future__ import annotations

import math

import msgspec

from adaptor.crafting.fits import TINY, RequestShape
from adaptor.crafting.profile import Profile
from adaptor.model import FreeSlot, Request


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A possible request in a free slot."""

    work: Work
    """Work for which it is made."""
    slot: FreeSlot
    request: Request
    slots: int
    """Tasks that run at the same time."""
    rounds: int
    """Tasks that each of these slots runs one after another."""
    throughput: float
    """Finished tasks per second of turn-around time, the wait in the queue included (De Rose §4.3)."""

    @property
    def merit(self) -> tuple[float, float]:
        """Larger is better: throughput, then an earlier start."""
        return self.throughput, -self.slot.start

    @property
    def tasks(self) -> int:
        return self.slots * self.rounds


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The remaining tasks of one shape, for which candidates are made."""

    shape: RequestShape
    now: float
    remaining: int

    def candidate(self, slot: FreeSlot, processors: int) -> Candidate | None:
        """The request with the best throughput on up to `processors` of a free slot; None: none fits.

        It is the widest request with a task for every task slot, with as many rounds as fit and the
        remaining tasks need. If the runtime exceeds maxTr, it is a request of maxTr.
        """
        shape = self.shape
        p = min(shape.widest, shape.fit(processors), shape.processors_for(self.remaining))
        if p <= 0:
            return None
        longest = shape.longest_tr(slot.duration)
        rounds = shape.rounds(longest)
        if rounds == 0 and longest < shape.rules.limits.max_tr:
            return None
        slots = shape.slots(p)
        return self.shaped(slot, p, max(1, min(rounds, -(-self.remaining // slots))))

    def shaped(self, slot: FreeSlot, p: int, rounds: int) -> Candidate:
        """The request of p processors for `rounds` rounds."""
        slots = self.shape.slots(p)
        tr = self.shape.tr_for(rounds, self.shape.longest_tr(slot.duration))
        finished = min(self.remaining, slots * rounds)
        return Candidate(
            work=self,
            slot=slot,
            request=self.shape.request(p, tr, self.shape.least_in(slot, self.now)),
            slots=slots,
            rounds=rounds,
            throughput=finished / (slot.start + tr - self.now),
        )

    def candidate_within(self, slot: FreeSlot, profile: Profile, least: float = 0.0) -> Candidate | None:
        """A candidate like that of `candidate`, on processors that the profile has free during the whole
        request.

        Fewer processors may need more rounds and thus more time, in which still fewer may be free: shrink
        until the request fits. Fewer never have more throughput.

        Args:
            least: throughput that it must exceed; else None is returned.
        """
        processors = slot.processors
        while (candidate := self.candidate(slot, processors)) and candidate.throughput > least:
            free = profile.minimum(slot.start, slot.start + candidate.request.tr)
            if free >= candidate.request.p:
                return candidate
            processors = free
        return None


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
    """The candidates with at most one slot per remaining task (rounded up to whole nodes if the site gives
    those)."""
    excess = sum(candidate.slots for candidate in chosen) - work.remaining
    kept: list[Candidate] = []
    for candidate in sorted(chosen, key=lambda candidate: candidate.merit):
        if excess >= candidate.slots:
            excess -= candidate.slots
        elif excess > 0:
            p = candidate.work.shape.processors_for(candidate.slots - excess)
            kept.append(candidate.work.shaped(candidate.slot, p, candidate.rounds))
            excess = 0
        else:
            kept.append(candidate)
    return kept


def _less_time(chosen: list[Candidate], work: Work) -> list[Candidate]:
    """Keep only the rounds needed to finish all remaining tasks at the earliest possible instant."""
    if sum(candidate.tasks for candidate in chosen) <= work.remaining:
        return chosen
    finish = finish_of(chosen, work)
    rounds = [_rounds_until(finish, candidate, work) for candidate in chosen]
    surplus = (
        sum(candidate.slots * count for candidate, count in zip(chosen, rounds, strict=True)) - work.remaining
    )
    for index in sorted(range(len(chosen)), key=lambda index: chosen[index].merit):
        if rounds[index] and chosen[index].slots <= surplus:
            rounds[index] -= 1
            surplus -= chosen[index].slots
    return [
        candidate.work.shaped(candidate.slot, candidate.request.p, count)
        for candidate, count in zip(chosen, rounds, strict=True)
        if count
    ]


def finish_of(chosen: list[Candidate], work: Work) -> float:
    """The first instant at which the chosen requests have finished the remaining tasks, by bisection."""
    shape = work.shape
    ends = (candidate.slot.start + shape.rules.pad + candidate.rounds * shape.runtime for candidate in chosen)
    early, late = work.now, max(ends)
    while late - early > 1e-3:
        middle = (early + late) / 2
        done = sum(candidate.slots * _rounds_until(middle, candidate, work) for candidate in chosen)
        if done >= work.remaining:
            late = middle
        else:
            early = middle
    return late


def _rounds_until(time: float, each: Candidate, work: Work) -> int:
    """Rounds of a request that have ended at `time`."""
    busy = time - each.slot.start - work.shape.rules.pad
    return max(0, min(each.rounds, math.floor((busy + TINY) / work.shape.runtime)))
