"""Possible requests: each a free slot of the queue with the throughput of a request in it."""

from __future__ import annotations

import msgspec

from adaptor.crafting.profile import Profile
from adaptor.crafting.shape import RequestShape
from adaptor.model import FreeSlot, Request


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A possible request in a free slot."""

    work: Work
    """For which it is made."""
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
            request=Request(p, tr),
            slots=slots,
            rounds=rounds,
            throughput=finished / (slot.start + tr - self.now),
        )

    def candidate_within(self, slot: FreeSlot, profile: Profile) -> Candidate | None:
        """As `candidate`, on the processors that the profile has free during the whole request.

        Fewer processors may need more rounds and thus more time, in which still fewer may be free: shrink
        until the request fits.
        """
        processors = slot.processors
        while candidate := self.candidate(slot, processors):
            free = profile.minimum(slot.start, slot.start + candidate.request.tr)
            if free >= candidate.request.p:
                return candidate
            processors = free
        return None
