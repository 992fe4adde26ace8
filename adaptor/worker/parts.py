"""Tasks on several nodes: the file that names them, and the nodes on which their command does not run.

Such a node is kept until the daemon aborts the lease there. Then what the task has started on it, through the
scheduler or ssh, is ended: it descends from no worker, but carries the path of the task's node file.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from adaptor.private_files import write_private
from adaptor.processes.environment import all_processes, variables_of
from adaptor.processes.identity import Process
from adaptor.processes.trees import send
from adaptor.protocol.messages import AttemptKey, Ending, Result
from adaptor.worker.environment import NODEFILE
from adaptor.worker.output import CannotStartError
from adaptor.worker.timers import Timers

_LOOK = 0.2  # seconds between two looks for processes of a task that is to end


class NodeFiles:
    """The node files of this pilot's tasks, in its folder, which all its nodes share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, key: AttemptKey) -> Path:
        return self._folder / f"nodes-{key.bag}.{key.task}.{key.attempt}"

    def write(self, key: AttemptKey, nodes: Sequence[str]) -> Path:
        """One name a line. Raises CannotStartError."""
        path = self.path(key)
        try:
            write_private(path, "".join(f"{node}\n" for node in nodes).encode())
        except OSError as error:
            raise CannotStartError(f"{path}: its node file cannot be written: {error.strerror}") from error
        return path

    def remove(self, key: AttemptKey) -> None:
        self.path(key).unlink(missing_ok=True)

    def processes(self, key: AttemptKey) -> list[Process]:
        """All on this machine that the attempt has started, in whatever tree."""
        path = str(self.path(key))
        own = os.getpid()
        return [
            process
            for process in all_processes()
            if process.pid != own and variables_of(process.pid).get(NODEFILE) == path
        ]

    def kill(self, key: AttemptKey) -> None:
        """Whatever of the attempt still runs on this machine."""
        for process in self.processes(key):
            send(process, signal.SIGKILL)


class Parts:
    """The leases for which this node is kept. `now` and `kill_at` are monotonic seconds."""

    def __init__(self, files: NodeFiles, timers: Timers, ended: Callable[[Result], None]) -> None:
        """`ended` gets the result of a part when nothing of it runs here any more."""
        self._files = files
        self._ended = ended
        self._look = timers.new(self._find_ended)
        self._began: dict[AttemptKey, tuple[float, float]] = {}  # epoch and monotonic seconds
        self._ending: dict[AttemptKey, tuple[Ending, float]] = {}

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._began

    def begin(self, key: AttemptKey) -> None:
        self._began[key] = (time.time(), time.monotonic())

    def loads(self, now: float) -> list[tuple[AttemptKey, float]]:
        """Attempts with the seconds for which the node has been kept."""
        return [(key, now - began) for key, (_, began) in self._began.items()]

    def end(self, keys: Iterable[AttemptKey], ending: Ending, kill_at: float) -> None:
        """Ask what the tasks run here to end, and kill it at `kill_at`."""
        for key in keys:
            if key in self._began and key not in self._ending:
                self._ending[key] = (ending, kill_at)
                self._look.set(0.0)
                for process in self._files.processes(key):
                    send(process, signal.SIGTERM)

    def end_all(self, ending: Ending, kill_at: float) -> None:
        self.end(list(self._began), ending, kill_at)

    def _find_ended(self, now: float) -> None:
        for key, (ending, kill_at) in list(self._ending.items()):
            if now >= kill_at or not self._files.processes(key):
                self._files.kill(key)
                del self._ending[key]
                started, began = self._began.pop(key)
                self._ended(Result(key, ending, started=started, wall=now - began))
        if self._ending:
            self._look.set(now + _LOOK)
