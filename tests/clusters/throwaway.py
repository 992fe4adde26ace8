"""Common parts of throwaway clusters: daemons of their own in a temporary folder, gone in the end."""

from __future__ import annotations

import abc
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TypeVar

import psutil

from tests.clusters.pbs_network import Network
from tests.clusters.processes import dying_with_us, kill_all

Self = TypeVar("Self", bound="Throwaway")


class ClusterError(RuntimeError):
    """A throwaway cluster did not come up, or a command of it failed; it says the ends of the logs."""


class Throwaway(abc.ABC):
    """Starts on entering the `with` block (or by `start`), ends on leaving it (or by `stop`)."""

    LOGS: ClassVar[tuple[str, ...]]
    """Patterns of its logs below `root`."""

    def __init__(self, root: Path, patience: float) -> None:
        """`patience`: seconds in which every step of a start must be over."""
        self.root = root
        self.root.chmod(0o755)  # ordinary users of the cluster must reach its configuration
        self.patience = patience
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self: Self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Raises ClusterError: it did not come up in time."""
        try:
            self._come_up()
        except BaseException:
            self.stop()
            raise

    @abc.abstractmethod
    def _come_up(self) -> None:
        """Start the daemons, and wait until the nodes are in service."""

    @abc.abstractmethod
    def stop(self) -> None:
        """End every process of the cluster, its jobs included, and remove its folder."""

    def daemon(self, name: str) -> psutil.Process | None:
        """The process of one of its daemons; None while it does not run."""
        process = self._daemons.get(name)
        return psutil.Process(process.pid) if process is not None and process.poll() is None else None

    def _begin(self, name: str, command: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        """Start a daemon, which ends with this process."""
        with (self.root / f"{name}.out").open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                [*dying_with_us(), *command],
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _until(self, condition: Callable[[], bool], problem: str) -> None:
        """A command that fails meanwhile, or takes too long, is asked again."""
        deadline = time.monotonic() + self.patience
        while not _holds(condition):
            ended = [name for name, daemon in self._daemons.items() if daemon.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise ClusterError(f"{problem}; ended: {', '.join(ended) or 'none'}\n{self._log_ends()}")
            time.sleep(0.1)

    def _log_ends(self) -> str:
        logs = sorted(log for pattern in self.LOGS for log in self.root.glob(pattern))
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-800:]}" for log in logs)


class OnNetwork(Throwaway):
    """A cluster whose hosts are namespaces of a network."""

    network: Network

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.network.nodes

    def stop_node(self, node: str) -> None:
        """End a node's daemon and all that runs on the node, as a power cut does."""
        self._end(node)
        kill_all(self.network.processes(node))

    def stop(self) -> None:
        """End every process of the cluster, its jobs included, and remove its folder."""
        for name in list(self._daemons):
            self._end(name)
        self.network.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def _end(self, name: str) -> None:
        daemon = self._daemons.pop(name, None)
        if daemon is not None:
            daemon.kill()
            daemon.wait()


def _holds(condition: Callable[[], bool]) -> bool:
    try:
        return condition()
    except (ClusterError, subprocess.TimeoutExpired):
        return False


def play(unavailable: str | None, make: Callable[[], Throwaway], how_to: Callable[[Any], str]) -> int:
    """Run a cluster for a person, told `how_to` use it, until Ctrl-C or SIGTERM; the exit code."""
    if unavailable:
        print(unavailable, file=sys.stderr)
        return 1
    cluster = make()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        with cluster:
            print(how_to(cluster), flush=True)
            signal.pause()
    except KeyboardInterrupt:
        print("\nstopped")
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
