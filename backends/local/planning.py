"""When waiting jobs start on one machine: first come, first served, with conservative backfilling. Pure.

Each waiting job, in order, is planned at the first instant at which all that it needs is free for its whole
time limit, running jobs being thought to hold theirs until their limits (Mu'alem and Feitelson 2001,
"conservative backfilling"). So a later job may overtake an earlier one, but never delays it.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Sequence

import msgspec


class QueueShare(msgspec.Struct, frozen=True):
    """What a job holds, or the machine has."""

    processors: int
    memory: int = 0
    """Bytes; 0 of a job that does not say what it needs, which is not counted."""
    gpus: int = 0

    def __add__(self, other: QueueShare) -> QueueShare:
        return QueueShare(
            self.processors + other.processors, self.memory + other.memory, self.gpus + other.gpus
        )

    def fits(self, machine: QueueShare) -> bool:
        return (
            self.processors <= machine.processors
            and self.memory <= machine.memory
            and self.gpus <= machine.gpus
        )


NOTHING = QueueShare(0)


def starts(
    now: float,
    machine: QueueShare,
    running: Iterable[tuple[float, QueueShare]],
    waiting: Sequence[tuple[float, QueueShare]],
) -> list[float]:
    """When each waiting job starts.

    Args:
        running: the end of each job, and what it holds.
        waiting: the time limit in seconds of each job, and what it needs: no more than the machine has.
    """
    plan = _Plan(now)
    for end, share in running:
        plan.hold(now, end, share)
    found = []
    for limit, share in waiting:
        start = plan.earliest(limit, share, machine)
        plan.hold(start, start + limit, share)
        found.append(start)
    return found


class _Plan:
    """What is held from each instant on, until the next."""

    def __init__(self, now: float) -> None:
        self._times = [now]
        self._held = [NOTHING]

    def hold(self, start: float, end: float, share: QueueShare) -> None:
        first, last = self._cut(start), self._cut(end)
        for place in range(first, last):
            self._held[place] += share

    def _cut(self, time: float) -> int:
        """The place of the interval that begins then."""
        place = bisect.bisect_left(self._times, time)
        if place == len(self._times) or self._times[place] != time:
            self._times.insert(place, time)
            self._held.insert(place, self._held[place - 1])
        return place

    def earliest(self, limit: float, share: QueueShare, machine: QueueShare) -> float:
        start = self._times[0]
        for place, held in enumerate(self._held):
            if self._times[place] >= start + limit:
                break
            if not (held + share).fits(machine):
                start = self._times[place + 1] if place + 1 < len(self._times) else math.inf
        return start
