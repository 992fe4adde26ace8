"""A possible request: a free slot of the queue, and what a request in it would achieve."""

from __future__ import annotations

import msgspec

from adaptor.crafting.profile import Profile
from adaptor.crafting.shape import RequestShape
from adaptor.model import FreeSlot, Request


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A request in a free slot, which its reason names."""

    slot: FreeSlot
    request: Request
    slots: int
    """Tasks that run at the same time."""
    rounds: int
    """Tasks that each of these slots runs after each other."""
    throughput: float
    """Finished tasks per second of the requested turn-around time, waiting included (De Rose §4.3)."""

    @property
    def merit(self) -> tuple[float, float]:
        """What makes one candidate better than another: throughput, then an earlier start."""
        return self.throughput, -self.slot.start

    @property
    def tasks(self) -> int:
        return self.slots * self.rounds


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What candidates are made for: tasks of one shape that remain at an instant."""

    shape: RequestShape
    now: float
    remaining: int

    def candidate(self, slot: FreeSlot, processors: int) -> Candidate | None:
        """The request with the best throughput in a slot of which so many processors may be used.

        That is the widest that has a task for every slot, with as many rounds as fit and the remaining
        tasks need. Where the runtime is more than maxTr allows, a request of maxTr is the best there
        is. None where nothing fits.
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
        """The request of p processors for so many rounds."""
        slots = self.shape.slots(p)
        tr = self.shape.tr_for(rounds, self.shape.longest_tr(slot.duration))
        finished = min(self.remaining, slots * rounds)
        return Candidate(
            slot=slot,
            request=Request(p, tr),
            slots=slots,
            rounds=rounds,
            throughput=finished / (slot.start + tr - self.now),
        )

    def candidate_within(self, slot: FreeSlot, profile: Profile) -> Candidate | None:
        """As `candidate`, with what the profile still has free during the request.

        Fewer processors may need more rounds and so more time, in which less may be free: shrink until
        the request fits.
        """
        processors = slot.processors
        while candidate := self.candidate(slot, processors):
            free = profile.minimum(slot.start, slot.start + candidate.request.tr)
            if free >= candidate.request.p:
                return candidate
            processors = free
        return None
