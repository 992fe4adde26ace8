"""Data that only the live page shows: the observed queue, and what attempts did, in sums.

Each list is capped, so that a page stays small however many tasks, jobs and pilots there are.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from adaptor.api.question import Question

AttemptUse = Literal["result", "running", "failed", "cut", "cancelled", "replica"]
"""Result of an attempt: the result of its task; not ended yet; its own failure; ended from outside (walltime,
preemption, a lost worker); cancelled; ended because another attempt was faster."""


class QueueStep(msgspec.Struct, frozen=True, array_like=True):
    """Processors that other users' jobs hold from `time` on; the rest is free."""

    time: float
    running: int
    planned: int


class OwnStart(msgspec.Struct, frozen=True, array_like=True):
    """Start of an own queued pilot, by the scheduler or else by conservative backfilling."""

    pilot: int
    start: float


class QueuePicture(msgspec.Struct, frozen=True, kw_only=True):
    """A site's queue as the daemon last observed it, without any name."""

    site: str
    partition: str = ""  # by its name at the site, where requests choose one; empty: the site has only one
    observed: float | None
    """Epoch seconds of the reading; None: it was never read. The queue is read while tasks wait."""
    processors: int
    steps: list[QueueStep]  # from `observed` on; the last step has no end
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


class AttemptSpan(msgspec.Struct, frozen=True, array_like=True):
    """One attempt in a pilot."""

    pilot: int
    bag: int
    task: int
    processors: int
    started: float
    ended: float | None  # None: it runs
    use: AttemptUse


class BusyTime(msgspec.Struct, frozen=True, array_like=True):
    """Processors of a pilot that attempts of one use held on average, in equal parts of time."""

    pilot: int
    use: AttemptUse
    begin: float
    width: float  # seconds of a part
    processors: list[float]


class Picture(msgspec.Struct, frozen=True):
    queues: list[QueuePicture]
    learned: list[LearnedRuntime]
    running: list[AttemptSpan]  # the attempts that have run longest, at most 2,000


class GetPicture(Question[Picture], frozen=True):
    """Ask for what the daemon last observed of the queues, has learned of the bags, and runs; no scheduler is
    asked."""


class Activity(msgspec.Struct, frozen=True):
    spans: list[AttemptSpan]  # empty if there are more than were asked for
    busy: list[BusyTime]  # empty if `spans` has them one by one


class GetActivity(Question[Activity], frozen=True):
    """Ask for the attempts in these pilots that have ended: one by one, or if there are more than `most`, in
    `bins` parts of each pilot's time."""

    kept = True

    pilots: list[int]
    most: int = 2000
    bins: int = 200
