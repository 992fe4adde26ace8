"""Processors in use by jobs that we do not see.

The scheduler hides them (Slurm's `PrivateData=jobs`, PBS's `query_other_jobs = False`), or they came
between two of our questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from adaptor.model import QueueState, RunningJob

HIDDEN = "hidden"
"""The id that stands for such jobs."""


def with_hidden(jobs: list[RunningJob], allocated: int) -> list[RunningJob]:
    """The jobs that we see and, where more processors are allocated than theirs, one for all others."""
    hidden = allocated - sum(job.processors for job in jobs)
    return [*jobs, RunningJob(HIDDEN, hidden, math.inf)] if hidden > 0 else jobs


def hidden_processors(state: QueueState) -> int:
    return sum(job.processors for job in state.running if job.id == HIDDEN)


class SecondLook:
    """Looks again when more is hidden than the last time: only what is so still is hidden from us."""

    def __init__(self) -> None:
        self._hidden = 0

    def state(self, look: Callable[[], QueueState]) -> QueueState:
        """What `look` sees; whatever that raises passes."""
        state = look()
        if hidden_processors(state) > self._hidden:
            state = look()
        self._hidden = hidden_processors(state)
        return state
