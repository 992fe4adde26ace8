"""Facts of the broker about donated nodes, and about tasks that were preempted there. Pure."""

from __future__ import annotations

import math

import msgspec

from adaptor.donation.idleness import IdleLearner

UNLEARNED = IdleLearner().hazard  # assumed idle periods of a site before any was seen


class DonatedNode(msgspec.Struct, frozen=True, kw_only=True):
    """The node of a pilot that uses it while it is donated. Epoch seconds."""

    since: float
    """Epoch seconds since which it has been idle, apart from us."""
    until: float = math.inf
    """Epoch seconds at which a local job is planned there, or the hours of donation end."""
    closes: float = math.inf
    """Epoch seconds at which the hours of donation end."""


class Preempted(msgspec.Struct, frozen=True):
    """Preemptions of a task on donated nodes."""

    times: int = 0
    """Number of times that its node was taken while it ran."""
    ran: float = 0.0
    """The longest time in seconds that it ran in vain."""

    def again(self, ran: float) -> Preempted:
        return Preempted(self.times + 1, max(self.ran, ran))


NEVER_PREEMPTED = Preempted()
