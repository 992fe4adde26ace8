"""A job of the local site: the notes on it, as types, and what they say together."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from adaptor.processes.identity import Identity
from adaptor.reports import JobState
from backends.local.planning import Share


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """`<id>.job.json`: what was submitted."""

    id: int
    tag: str
    p: int
    tr: int
    holds: Share
    """What it takes from the site."""
    memory: int
    """Bytes that its worker may use."""
    submitted: float
    directory: str
    """The pilot's folder."""
    worker: tuple[str, ...]
    environment: dict[str, str]
    grace: float
    """Seconds between SIGTERM and SIGKILL."""
    marker: str
    """The value of `ADAPTOR_SUPERVISED` in the environment of its processes."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """`<id>.start.json`: who claimed the job, and when."""

    started: float
    supervisor: Identity | None
    """None: it was cancelled before it started."""
    devices: tuple[str, ...] | None = None
    """The GPUs that it holds, by their ids; None: the site has none."""


class End(msgspec.Struct, frozen=True, kw_only=True):
    """`<id>.end.json`: how it ended."""

    ended: float
    state: JobState
    exit_code: int | None = None
    """Of the worker; negative: the signal that ended it."""
    reason: str = ""


class Entry(msgspec.Struct, frozen=True):
    """All notes on one job."""

    job: Job
    start: Start | None = None
    end: End | None = None

    @property
    def state(self) -> JobState:
        if self.end is not None:
            return self.end.state
        if self.start is None:
            return JobState.QUEUED
        return JobState.CANCELLED if self.start.supervisor is None else JobState.RUNNING

    @property
    def started(self) -> float | None:
        return self.start.started if self.start is not None and self.start.supervisor else None

    @property
    def ended(self) -> float | None:
        """When it ended; None while it is queued or running."""
        if self.end is not None:
            return self.end.ended
        return self.start.started if self.start is not None and self.start.supervisor is None else None

    @property
    def limit(self) -> float:
        """When its time is up; `math.inf` before it starts."""
        return math.inf if self.started is None else self.started + self.job.tr

    @property
    def reason(self) -> str:
        if self.end is not None:
            return self.end.reason
        if self.state is JobState.CANCELLED:
            return "cancelled before it started"
        return "waits for processors" if self.start is None else ""

    @property
    def nodes(self) -> tuple[str, ...]:
        supervisor = self.start.supervisor if self.start is not None else None
        return () if supervisor is None else (supervisor["host"],)


def as_note(record: Job | Start | End) -> dict[str, Any]:
    return dict(msgspec.to_builtins(record))
