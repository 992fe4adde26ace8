"""The jobs of a simulated cluster that its trace knows nothing of."""

from __future__ import annotations

import msgspec
import numpy as np

from adaptor.simulation.kernels import Array


class OutsideJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was submitted from outside the trace, in seconds of the trace."""

    id: int
    processors: int
    tr: int
    submitted: int
    started: int | None
    """None while it waits, and for ever where it was cancelled before."""
    ended: int | None

    @property
    def reached_limit(self) -> bool:
        return self.started is not None and self.ended == self.started + self.tr


class OutsideJobs:
    """All of a cluster's, known by the numbers that follow those of the trace."""

    def __init__(self, first: int) -> None:
        self.table = np.zeros((4, 6), np.int64)
        """A row for each, in the columns of `kernels`; rows beyond them are empty."""
        self._first = first
        self._count = 0

    def fork(self) -> OutsideJobs:
        twin = OutsideJobs(self._first)
        twin.table, twin._count = self.table.copy(), self._count
        return twin

    def add(self, now: int, processors: int, tr: int, run: int) -> int:
        """A job that waits from now on; its number."""
        if self._count == len(self.table):
            self.table = doubled(self.table)
        self.table[self._count] = now, run, tr, processors, -1, -1
        self._count += 1
        return self._first + self._count - 1

    def row(self, job: int) -> Array:
        """A view of its row. Raises KeyError: no such job from outside."""
        index = job - self._first
        if not 0 <= index < self._count:
            raise KeyError(job)
        row: Array = self.table[index]
        return row

    def job(self, job: int) -> OutsideJob:
        """Raises KeyError: no such job from outside."""
        submitted, _, tr, processors, started, ended = self.row(job).tolist()
        return OutsideJob(
            id=job,
            processors=processors,
            tr=tr,
            submitted=submitted,
            started=started if started >= 0 else None,
            ended=ended if ended >= 0 else None,
        )


def doubled(table: Array) -> Array:
    """Twice as many rows, the new ones empty."""
    return np.concatenate([table, np.zeros_like(table)])
