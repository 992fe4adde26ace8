"""Guard rails against mistakes in a bag: limits on time and failures, signals. Frozen types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import msgspec

from adaptor.units import format_duration

QUICK = 10.0
"""Seconds. An attempt that ended within them has hardly done any of its work."""
LEAST_CANARY = 20  # tasks of the smallest bag that a canary watches
ALIKE = 10
"""Attempts that fail alike within `QUICK` seconds each, without one that does not, before the bag pauses."""
SETTLED = 1.0
"""Seconds after its start at which a task can be expected to catch signals; one before would end it."""
KNOWN_FROM = 10  # tasks that must have finished before a time-out in parts of their mean runtime holds


class TimeLimit(msgspec.Struct, frozen=True):
    """Time after which the worker ends a task: one of both is given."""

    seconds: float | None = None
    part: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """Part of the time that a task is expected to take (3.0 for 300%)."""

    def __str__(self) -> str:
        return format_duration(self.seconds) if self.seconds is not None else f"{100 * (self.part or 0):g}%"

    def of(self, expected: float | None, finished: int, total: float) -> float | None:
        """Seconds after which a task is ended; None: not known yet.

        Args:
            expected: seconds that the user expects a task to take; None: the user has not said.
            finished: tasks with a result.
            total: the sum of their runtimes, seconds.
        """
        if self.seconds is not None or self.part is None:
            return self.seconds
        if expected is not None:
            return self.part * expected
        return self.part * total / finished if finished >= KNOWN_FROM else None


class MostFails(msgspec.Struct, frozen=True):
    """Number of failed tasks at which the bag pauses: one of both is given."""

    tasks: Annotated[int, msgspec.Meta(ge=1)] | None = None
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    """Share of all tasks of the bag (0.05 for 5%)."""

    def __str__(self) -> str:
        return f"{100 * self.share:g}%" if self.share is not None else str(self.tasks)

    def of(self, total: int) -> int:
        """The number for a bag of `total` tasks: at this number of failures it pauses."""
        return self.tasks or max(1, math.ceil((self.share or 0.0) * total - 1e-9))


class EarlySignal(msgspec.Struct, frozen=True):
    """The signal that a task gets before the end of its pilot, or before its time-out."""

    name: str
    """Name of the signal, such as SIGUSR1."""
    seconds: float
    """Seconds between the signal and that end."""

    def due_at(self, began: float, ends: float) -> float:
        """Time of the signal for a task that began at `began` and that its worker ends at `ends`."""
        return max(ends - self.seconds, began + SETTLED)

    def survived_by(self, line: str) -> str:
        """A shell line whose shell outlives the signal, which its whole process group gets.

        The programs that it starts get the signal as it is: a shell resets its traps for them.
        """
        return f"trap : {self.name.removeprefix('SIG')}\n{line}"

    def __str__(self) -> str:
        return f"{self.name.removeprefix('SIG')}@{self.seconds:g}"


def is_shell(words: Sequence[str]) -> bool:
    """Whether the words by which lines are run name a shell; another program, such as python3, has a language
    of its own. Empty: the usual shell."""
    return not words or any(word.rpartition("/")[2].endswith("sh") for word in words)


def canary_tries(total: int) -> int | None:
    """Number of first attempts of a bag that must all fail until it pauses; None: the bag is too small."""
    return max(ALIKE, math.isqrt(total - 1) + 1) if total >= LEAST_CANARY else None
