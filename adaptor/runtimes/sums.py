"""What is known of a bag's task runtimes, in running sums: no step looks at single tasks."""

from __future__ import annotations

import math

import msgspec


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """All that `Runtimes` knows; a journal of attempts is enough to rebuild it."""

    finished: int = 0
    total: float = 0.0
    squares: float = 0.0
    running: int = 0
    starts: float = 0.0
    """The sum of the instants at which the running tasks started."""


class Runtimes:
    """The runtimes of a bag's tasks, finished and running; times are seconds."""

    def __init__(self, known: Sums | None = None) -> None:
        known = known or Sums()
        self.finished, self.running = known.finished, known.running
        self._total, self._squares, self._starts = known.total, known.squares, known.starts

    @property
    def sums(self) -> Sums:
        """What is known now, to go on from later."""
        return Sums(
            finished=self.finished,
            total=self._total,
            squares=self._squares,
            running=self.running,
            starts=self._starts,
        )

    def start(self, at: float) -> None:
        self.running += 1
        self._starts += at

    def finish(self, started: float, runtime: float) -> None:
        self.stop(started)
        self.finished += 1
        self._total += runtime
        self._squares += runtime * runtime

    def stop(self, started: float) -> None:
        """A running task was interrupted: it will start anew."""
        self.running -= 1
        self._starts -= started
        if not self.running:
            self._starts = 0.0

    @property
    def mean(self) -> float:
        """Of the finished tasks; 0 before the first (A²HA Fig. 3, line 4)."""
        return self._total / self.finished if self.finished else 0.0

    def running_mean(self, now: float) -> float:
        """How long the running tasks have run (Fig. 7, line 4); 0 where none runs."""
        return max(0.0, now - self._starts / self.running) if self.running else 0.0

    def corrected_mean(self, now: float) -> float:
        """The average where the running tasks have run longer than the finished ones took (Fig. 7).

        Lines 11 and 12 divide the sum of two means by the number of tasks, which is no time. What is meant
        is taken to be the mean over all tasks, finished and running: sums, divided by their number.
        """
        running = self.running_mean(now)
        if running <= self.mean:
            return self.mean
        return (self._total + self.running * running) / (self.finished + self.running)

    @property
    def deviation(self) -> float:
        """Of a sample; 0 before the second finished task."""
        if self.finished < 2:
            return 0.0
        spread = self._squares - self._total * self._total / self.finished
        return math.sqrt(max(0.0, spread) / (self.finished - 1))

    @property
    def residual(self) -> float:
        """How much of a task is still to run at a random instant of it, in the mean: E[T²] / 2 E[T]."""
        return self._squares / (2 * self._total) if self._total else 0.0
