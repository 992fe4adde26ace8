"""Runtime of a task on a site, and its meaning for a processor that runs one task after another."""

from __future__ import annotations

import functools
import math

import msgspec

from adaptor.errors import UsageError
from adaptor.runtimes.known import KnownRuntimes
from adaptor.runtimes.normal import above, density

_ASKED = 1024
"""Answers of `last_end` that are kept: each program for another deadline asks the same of all offers."""
FEW = 30  # tasks on one processor, up to which the renewal function is summed


class TaskTime(msgspec.Struct, frozen=True):
    """Mean and standard deviation of the runtime of a task on one site, in seconds."""

    mean: float
    deviation: float = 0.0

    def __post_init__(self) -> None:
        """Raises UsageError: no such runtime can be, or tasks that never finish."""
        if not (math.isfinite(self.mean) and self.mean > 0):
            raise UsageError(f"the mean runtime of a task must be finite and above 0 s, not {self.mean:g} s")
        if not (math.isfinite(self.deviation) and self.deviation >= 0):
            raise UsageError(f"the deviation of runtimes must be 0 s or more, not {self.deviation:g} s")

    def learned(self, known: KnownRuntimes, now: float, weight: int = 0) -> TaskTime:
        """The runtime of the next tasks where this one is assumed, and counts for `weight` finished tasks."""
        return TaskTime(*known.normal(now, self.mean, self.deviation, weight))

    def completed(self, seconds: float, fresh: bool) -> float:
        """Tasks that one processor is expected to start from now on and to end within `seconds`.

        A fresh one follows the renewal function of normal runtimes, the sum of P(k tasks take no longer);
        one in the middle of a task completes `seconds / mean` (Ricciardi & Hwang, eq. 1), the first of
        which it has started before.
        """
        if seconds <= 0:
            return 0.0
        steady = seconds / self.mean
        if not fresh:
            return max(0.0, steady - 1)
        if steady > FEW:  # the asymptote; by then the sum is on it
            return steady + ((self.deviation / self.mean) ** 2 - 1) / 2
        spread = max(self.deviation, 1e-9 * self.mean)
        most = math.ceil(steady + 6 * spread / self.mean * math.sqrt(steady + 1)) + 1
        return sum(above((k * self.mean - seconds) / (spread * math.sqrt(k))) for k in range(1, most + 1))

    def started(self, seconds: float, fresh: bool) -> float:
        """Tasks that one processor is expected to start within `seconds`."""
        if seconds < 0:
            return 0.0
        return 1 + self.completed(seconds, fresh) if fresh else seconds / self.mean

    def ended(self, seconds: float) -> float:
        """Probability that the task found running at a random instant has ended `seconds` later.

        The residual life of a renewal process, for normal runtimes: its tail is the integral of theirs
        over the mean, (σ/μ)(φ(z) - zΦ(-z)) with z = (x - μ)/σ.
        """
        if seconds <= 0:
            return 0.0
        if self.deviation < 1e-9 * self.mean:
            return min(1.0, seconds / self.mean)
        z = (seconds - self.mean) / self.deviation
        beyond = density(z) - z * above(z)
        return min(1.0, max(0.0, 1.0 - self.deviation / self.mean * beyond))

    def last_end(self, processors: int, confidence: float) -> float:
        """Seconds from the last start on these processors until all of their tasks have ended.

        With this probability, to a thousandth of the mean.
        """
        return _last_end(self, processors, confidence)

    def ending(self, processors: int, confidence: float = 0.5) -> float:
        """Seconds by which the bag ends later than if its work could flow between the processors.

        From the last start on, each processor has half a task left on average (more where they vary), yet
        all wait for the last.
        """
        half = self.mean * (1 + (self.deviation / self.mean) ** 2) / 2
        return max(0.0, self.last_end(processors, confidence) - half)


@functools.lru_cache(maxsize=_ASKED)
def _last_end(task: TaskTime, processors: int, confidence: float) -> float:
    """Seconds until the last of the tasks on all processors has ended, with this confidence; found by
    bisection."""
    low, high = 0.0, task.mean + 10 * task.deviation
    while high - low > 1e-3 * task.mean:
        middle = (low + high) / 2
        if task.ended(middle) ** processors < confidence:
            low = middle
        else:
            high = middle
    return high
