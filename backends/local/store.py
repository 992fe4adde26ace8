"""The state directory of a local site: its lock and the notes on its jobs."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import math
import os
import re
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from adaptor.file_format import newer
from adaptor.processes.identity import Identity
from adaptor.processes.notes import END, FORMAT, JOB, START, note_path, write_once
from adaptor.protocol.decoding import decoded
from adaptor.reports import JobState
from adaptor.resources import Part
from backends.base import SchedulerError


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Note `<id>.job.json`: the submitted job."""

    id: int
    tag: str
    p: int
    tr: int
    holds: Part  # resources that it takes from the site
    memory: int  # bytes that its worker may use
    submitted: float
    directory: str  # the pilot's folder
    worker: tuple[str, ...]
    environment: dict[str, str]
    grace: float  # seconds between SIGTERM and SIGKILL
    marker: str  # the value of `ADAPTOR_SUPERVISED` in the environment of its processes


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """`<id>.start.json`: who claimed the job, and when."""

    started: float
    supervisor: Identity | None  # None: it was cancelled before it started
    devices: tuple[str, ...] | None = None  # the GPUs that it holds, by their ids; None: the site has none


class JobEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Note `<id>.end.json`: the end of the job."""

    ended: float
    state: JobState
    exit_code: int | None = None  # of the worker; negative: the signal that ended it
    reason: str = ""


class JobEntry(msgspec.Struct, frozen=True):
    """All notes on one job."""

    job: Job
    start: Start | None = None
    end: JobEnd | None = None

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
        """Epoch seconds at which the job ended; None: it is queued or running."""
        if self.end is not None:
            return self.end.ended
        return self.start.started if self.start is not None and self.start.supervisor is None else None

    @property
    def limit(self) -> float:
        """Epoch seconds at which the job's time is up; `math.inf` before it starts."""
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


def as_note(record: Job | Start | JobEnd) -> dict[str, Any]:
    return dict(msgspec.to_builtins(record))


_log = logging.getLogger(__name__)

_NOTE = re.compile(r"(\d+)\.(job|start|end)\.json(\.damaged)?")
_LOCK_PAUSE = 0.01
_Record = TypeVar("_Record", Job, Start, JobEnd)


class Store:
    """Notes of the local site's jobs.

    Every method but `locked` is to be called under the lock. All may raise SchedulerError.
    """

    def __init__(self, directory: Path, patience: float) -> None:
        """`patience`: seconds to wait for the lock. Makes the directory (0700) where it is missing."""
        self._directory = directory
        self._patience = patience
        self._ended: dict[int, JobEntry] = {}  # notes never change: an ended job is read once
        self._newest = 0
        with _reported(f"{directory}: the local site's folder cannot be made"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[int]:
        """The site's lock; yields its file descriptor.

        Closing it is all that is done to release it, so a supervisor that was given it keeps it.
        """
        with _reported(f"{self._directory}: the local site's lock cannot be had"):
            handle = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            give_up = time.monotonic() + self._patience
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > give_up:
                        raise SchedulerError(
                            f"{self._directory}: another process has held the local site's lock "
                            f"for more than {self._patience:g} s; `fuser {self._directory / 'lock'}` names it"
                        ) from None
                    time.sleep(_LOCK_PAUSE)
            yield handle
        finally:
            os.close(handle)

    def note(self, id: int, kind: str) -> Path:
        return note_path(self._directory, id, kind)

    def entries(self) -> tuple[list[JobEntry], list[int]]:
        """All jobs in order of their ids, and the ids of those just set aside as damaged."""
        kinds = self._kinds()
        damaged: list[int] = []
        entries: list[JobEntry] = []
        for id in sorted(id for id, there in kinds.items() if JOB in there):
            entry = self._ended.get(id) or self._read(id, kinds[id])
            if entry is None:
                damaged.append(id)
                continue
            entries.append(entry)
            if entry.ended is not None:
                self._ended[id] = entry
        return entries, damaged

    def _kinds(self) -> dict[int, set[str]]:
        kinds: dict[int, set[str]] = {}
        problem = f"{self._directory}: the local site's folder cannot be read"
        with _reported(problem), os.scandir(self._directory) as listing:
            names = [item.name for item in listing]
        for name in names:
            match = _NOTE.fullmatch(name)
            if match:
                self._newest = max(self._newest, int(match[1]))
                if not match[3]:
                    kinds.setdefault(int(match[1]), set()).add(match[2])
        return kinds

    def _read(self, id: int, kinds: set[str]) -> JobEntry | None:
        try:
            return JobEntry(
                _decode(self.note(id, JOB), Job),
                _decode(self.note(id, START), Start) if START in kinds else None,
                _decode(self.note(id, END), JobEnd) if END in kinds else None,
            )
        except (OSError, msgspec.DecodeError) as error:
            _log.warning(
                "local job %d: a note on it in %s is damaged and was set aside as *.damaged: %s",
                id,
                self._directory,
                error,
            )
            with _reported(f"{self._directory}: a damaged note cannot be set aside"):
                for kind in kinds:
                    path = self.note(id, kind)
                    path.rename(path.with_name(f"{path.name}.damaged"))
            return None

    def next_id(self) -> int:
        """An id above every id that was ever seen here."""
        self._kinds()
        return self._newest + 1

    def write(self, id: int, kind: str, record: Job | Start | JobEnd) -> bool:
        """Write a note; False where there is one already."""
        try:
            write_once(self.note(id, kind), as_note(record))
        except FileExistsError:
            return False
        except OSError as error:
            raise SchedulerError(
                f"{self._directory}: local job {id} cannot be written down: {error}"
            ) from error
        return True

    def forget(self, ids: Collection[int]) -> None:
        """Remove the notes on jobs that have ended, and what a crash in the middle of that left behind."""
        strays = [id for id, there in self._kinds().items() if JOB not in there]
        with _reported(f"{self._directory}: the notes on old local jobs cannot be removed"):
            for id in (*ids, *strays):
                for kind in (JOB, START, END):  # without its first note a job is not there
                    self.note(id, kind).unlink(missing_ok=True)
                self._ended.pop(id, None)


def _decode(path: Path, kind: type[_Record]) -> _Record:
    """Read a note. Raises SchedulerError: a newer version has written it, so it is not damaged."""
    data = path.read_bytes()
    if problem := newer(data, FORMAT):
        raise SchedulerError(f"{path}: {problem}")
    return decoded(msgspec.json.Decoder(kind).decode, data)


@contextlib.contextmanager
def _reported(problem: str) -> Iterator[None]:
    """An OSError as a SchedulerError that says what could not be done."""
    try:
        yield
    except OSError as error:
        raise SchedulerError(f"{problem}: {error}") from error
