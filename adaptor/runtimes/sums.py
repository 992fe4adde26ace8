"""Runtimes of a bag's tasks, in running sums: no step looks at single tasks."""

from __future__ import annotations

import math

import msgspec


class RuntimeSums(msgspec.Struct, kw_only=True):
    """The runtimes of tasks, finished and running, in seconds; the attempts in a journal rebuild it."""

    finished: int = 0
    total: float = 0.0
    squares: float = 0.0
    """The sum of the squared runtimes."""
    running: int = 0
    starts: float = 0.0
    """The sum of the instants at which the running tasks started."""

    def add(self, runtime: float) -> None:
        """A task finished that was not counted as running."""
        self.finished += 1
        self.total += runtime
        self.squares += runtime * runtime

    def start(self, at: float) -> None:
        self.running += 1
        self.starts += at

    def finish(self, started: float, runtime: float) -> None:
        self.stop(started)
        self.add(runtime)

    def stop(self, started: float) -> None:
        """A running task was interrupted: it will start again."""
        self.running -= 1
        self.starts -= started
        if not self.running:
            self.starts = 0.0

    @property
    def mean(self) -> float:
        """Mean of the finished tasks; 0 before the first (A²HA Fig. 3, line 4)."""
        return self.total / self.finished if self.finished else 0.0

    def running_mean(self, now: float) -> float:
        """Mean age of the running tasks (Fig. 7, line 4); 0 if none runs."""
        return max(0.0, now - self.starts / self.running) if self.running else 0.0

    def corrected_mean(self, now: float) -> float:
        """The average where the running tasks have run longer than the finished ones took (Fig. 7).

        Lines 11 and 12 divide the sum of two means by the number of tasks, which is no time. What is meant
        is taken to be the mean over all tasks, finished and running: sums, divided by their number.
        """
        running = self.running_mean(now)
        if running <= self.mean:
            return self.mean
        return (self.total + self.running * running) / (self.finished + self.running)

    @property
    def deviation(self) -> float:
        """Standard deviation of a sample; 0 before the second finished task."""
        if self.finished < 2:
            return 0.0
        spread = self.squares - self.total * self.total / self.finished
        return math.sqrt(max(0.0, spread) / (self.finished - 1))

    @property
    def residual(self) -> float:
        """Mean time left of a task at a random instant of it: E[T²] / 2 E[T]."""
        return self.squares / (2 * self.total) if self.total else 0.0
