"""The three answers of Slurm out of which a site's state is made, read together."""

from __future__ import annotations

import time

import msgspec

from backends.slurm.questions import Questions
from backends.slurm.rows import NodeRow, QueueRow, Reservation


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked from the instant `now` on."""

    now: float
    nodes: list[NodeRow]
    jobs: list[QueueRow]
    reservations: list[Reservation]

    def other_reservations(self, own: str | None) -> list[Reservation]:
        """All but the one of this name."""
        return [held for held in self.reservations if held.name != own]


def read(questions: Questions) -> Reading:
    """Raises SchedulerError: no answer, or one that we do not understand."""
    now = time.time()
    return Reading(
        now=now,
        nodes=questions.nodes(),
        jobs=questions.queue(),
        reservations=questions.reservations(),
    )
