"""A local site in a temporary folder, with tiny shell commands for workers."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.processes.trees import end_trees
from adaptor.reports import JobReport, JobState
from backends.base import PilotOrder
from backends.local.backend import LocalBackend
from tests.backends.expiring import expired, is_written
from tests.backends.orders import runnable
from tests.living import until

KILL_WAIT = 0.3
PATIENT = 3600.0
"""Seconds from SIGTERM to SIGKILL where a worker leaves by itself, however busy the machine is."""


def written_pid(path: Path) -> int:
    """A process id that a worker writes to a file."""
    until(lambda: is_written(path), f"{path.name} being written")
    return int(path.read_text())


class LocalSite:
    """A backend and what tests want to know of it."""

    def __init__(self, folder: Path, config: SiteConfig) -> None:
        self.folder = folder
        self.state = folder / "site"
        self.config = config
        self.backend = self.reopened()
        self._orders = 0

    def reopened(self, kill_wait: float = KILL_WAIT) -> LocalBackend:
        """The backend of a daemon that was started again."""
        return LocalBackend(self.config, self.state, kill_wait=kill_wait)

    def order(self, command: str, p: int = 1, tr: int = 60, tag: str | None = None) -> PilotOrder:
        self._orders += 1
        made = runnable(
            self.folder,
            f"pilot-{self._orders}",
            command,
            p,
            tr,
            environment={"ADAPTOR_PILOT": str(self._orders)},
        )
        return msgspec.structs.replace(made, tag=tag or f"test-{self._orders}")

    def submit(self, command: str, p: int = 1, tr: int = 60, tag: str | None = None) -> str:
        return self.backend.submit(self.order(command, p, tr, tag))

    def report(self, id: str) -> JobReport:
        (found,) = self.backend.jobs([id], "no such tag")
        return found

    def reaches(self, id: str, state: JobState) -> JobReport:
        """The report on a job once it is in this state."""
        until(lambda: self.report(id).state is state, f"job {id} being {state.value}")
        return self.report(id)

    def ended_at_its_limit(self, command: str, *files: str) -> tuple[int, JobReport]:
        """A job that has met its time limit when its worker had written these files; the limit in seconds."""

        def run(limit: int) -> tuple[int, JobReport]:
            return limit, self.reaches(self.submit(command, tr=limit), JobState.WALLTIME)

        return expired(run, lambda _: all(is_written(self.latest / name) for name in files))

    def wrote(self, name: str, *numbers: int) -> None:
        """Waits until the workers of these pilots have written a file."""
        for number in numbers:
            path = self.directory(number) / name
            until(lambda path=path: is_written(path), str(path))

    def supervisor(self, id: str) -> int:
        """The process id of a running job's supervisor."""
        pid = json.loads((self.state / f"{id}.start.json").read_bytes())["supervisor"]["pid"]
        assert isinstance(pid, int)
        return pid

    def directory(self, number: int = 1) -> Path:
        return self.folder / f"pilot-{number}"

    @property
    def latest(self) -> Path:
        """The directory of the pilot that was ordered last."""
        return self.directory(self._orders)

    def close(self) -> None:
        for note in self.state.glob("*.job.json*"):
            end_trees(f"{self.state}/{note.name.split('.')[0]}")
