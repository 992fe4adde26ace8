"""What only the live page shows, as frozen types: the observed queue, and what attempts did, in sums.

Times are epoch seconds, durations seconds. Each list is capped, so that a page stays small however many
tasks, jobs and pilots there are.
"""

from __future__ import annotations

from typing import Literal

import msgspec

AttemptUse = Literal["result", "running", "failed", "cut", "replica"]
"""What became of an attempt: the result of its task; not ended yet; its own failure; ended from outside
(walltime, preemption, cancellation, a lost worker); ended because another attempt was faster."""


class QueueStep(msgspec.Struct, frozen=True, array_like=True):
    """What other users' jobs hold from `time` on, in processors; the rest is free."""

    time: float
    running: int
    planned: int


class OwnStart(msgspec.Struct, frozen=True, array_like=True):
    """When the scheduler, or conservative backfilling in its place, starts an own pilot that is queued."""

    pilot: int
    start: float


class QueuePicture(msgspec.Struct, frozen=True, kw_only=True):
    """A site's queue as the daemon last observed it, without any name."""

    site: str
    partition: str = ""
    """By its name at the site, where requests choose one; empty: the site has only one."""
    observed: float | None
    """None: it was never read. It is read while tasks wait."""
    processors: int
    steps: list[QueueStep]
    """From `observed` on; the last step has no end."""
    starts: list[OwnStart]

    @property
    def place(self) -> str:
        """The site, with its partition where it has several."""
        return f"{self.site}/{self.partition}" if self.partition else self.site


class LearnedRuntime(msgspec.Struct, frozen=True, kw_only=True):
    """The estimate behind tr for a bag that has not ended."""

    bag: int
    site: str
    estimate: float


class Span(msgspec.Struct, frozen=True, array_like=True):
    """One attempt in a pilot."""

    pilot: int
    bag: int
    task: int
    processors: int
    started: float
    ended: float | None
    """None: it runs."""
    use: AttemptUse


class BusyTime(msgspec.Struct, frozen=True, array_like=True):
    """Processors of a pilot that attempts of one use held on average, in equal parts of time."""

    pilot: int
    use: AttemptUse
    begin: float
    width: float
    """Seconds of a part."""
    processors: list[float]


class RuntimeBin(msgspec.Struct, frozen=True, array_like=True):
    """Attempts that became results whose runtime is in [low, high)."""

    low: float
    high: float
    count: int


class DoneStep(msgspec.Struct, frozen=True, array_like=True):
    """Tasks with a result by `time`."""

    time: float
    done: int


class FailureView(msgspec.Struct, frozen=True, kw_only=True):
    """Failed tasks of a bag that ended alike, with the newest as the example."""

    exit_code: int | None
    signal: int | None
    error: str | None
    count: int
    task: int
    attempt: int
    ended: float | None
    node: str | None
    stderr: str | None
    """The file, if a batch script names it."""


class TaskSums(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a bag in sums."""

    bag: int
    runtimes: list[RuntimeBin]
    progress: list[DoneStep]
    failures: list[FailureView]
    """The most frequent ones."""
    other_failures: int
    """Failed tasks that are in none of `failures`."""
