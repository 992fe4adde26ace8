"""A real cluster as a campaign sees it: what faults do to it, what its queue shows, what its records say."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import psutil

PATIENCE = 10.0
"""Seconds for a command of the scheduler; a fault may keep it from answering."""
MINE, ELEMENTS = "mine", 8
"""The name of held arrays of the user's own, and the jobs in each."""


@dataclass(frozen=True)
class Job:
    """One of our requests in the queue."""

    id: str
    tag: str
    processors: int
    minutes: float
    """Its time limit."""
    donated: bool = False
    leaves: bool = False
    """Whether it ends at this moment, and counts no more."""


@dataclass(frozen=True)
class Held:
    """Processors that an ended request held, by the scheduler's records."""

    tag: str
    seconds: float
    processors: int | None
    """Processors at its start; it may have given some back. None: not known."""


class Cluster(abc.ABC):
    """`controller`: slurmctld or pbs_server. Raises ClusterError or TimeoutExpired where none answers."""

    name: str
    """Name of its site."""
    nodes: tuple[str, ...]
    site: str
    """The lines of a site's configuration that name the scheduler."""
    environment: dict[str, str]
    """Variables of a client of this cluster."""
    address: str = "127.0.0.1"
    """At which its nodes reach a daemon on this machine."""

    @abc.abstractmethod
    def start_controller(self) -> None: ...

    @abc.abstractmethod
    def stop_controller(self, *, kill: bool = False) -> None:
        """In good order, or with `kill` SIGKILL; jobs go on running."""

    @abc.abstractmethod
    def controller(self) -> psutil.Process | None:
        """None while it does not run."""

    @abc.abstractmethod
    def start_node(self, node: str) -> None:
        """Its daemon, which takes up the jobs that still run."""

    @abc.abstractmethod
    def kill_node_daemon(self, node: str) -> None:
        """SIGKILL; its jobs go on running."""

    @abc.abstractmethod
    def stop_node(self, node: str) -> None:
        """End its daemon and all that runs there, as a power cut does."""

    @abc.abstractmethod
    def node_daemon(self, node: str) -> psutil.Process | None:
        """None while it does not run."""

    @abc.abstractmethod
    def drain(self, node: str) -> None:
        """No further job starts there."""

    @abc.abstractmethod
    def resume(self, node: str) -> None:
        """Bring it back into service, unless somebody has done so."""

    @abc.abstractmethod
    def cancel(self, job: str) -> None:
        """Cancel a job as an operator does."""

    @abc.abstractmethod
    def queue(self) -> list[Job]:
        """All of our requests."""

    @abc.abstractmethod
    def records(self) -> Iterable[Held]:
        """Records of requests that were started and have ended."""

    def cut(self, node: str) -> None:
        """Nothing reaches it or leaves it; what runs there runs on. For nodes with a network of their own."""
        raise NotImplementedError

    def connect(self, node: str) -> None:
        raise NotImplementedError

    def back_up(self) -> None:
        """Keep what the controller knows now."""
        raise NotImplementedError

    def restore(self) -> None:
        """Have the controller know what was kept; then give the numbers of jobs that it does not know any
        more to held jobs of the user's own."""
        raise NotImplementedError

    def touched(self) -> list[str]:
        """Jobs of the user's own, among these, that do not wait any more."""
        return []

    def answer_wrongly(self, draw: float) -> tuple[str, str]:
        """From now on; gives the command, and what it answers. `draw`: from 0 to 1, which."""
        raise NotImplementedError

    def answer_rightly(self, command: str) -> None:
        raise NotImplementedError

    def limit_account(self, draw: float) -> tuple[str, str]:
        """Gives what was limited, and how, as `lift_limit` takes it. `draw`: from 0 to 1, which."""
        raise NotImplementedError

    def lift_limit(self, of: str, limit: str) -> None:
        raise NotImplementedError

    def stop_accounting(self) -> None:
        """SIGKILL to what keeps the records, where that is another daemon than the controller."""
        raise NotImplementedError

    def start_accounting(self) -> None:
        raise NotImplementedError

    def steps(self) -> Iterator[psutil.Process]:
        """Daemons of the scheduler that serve one pilot each, where it has such."""
        yield from ()


def is_ours(tag: str) -> bool:
    """Whether this is the name of one of our requests."""
    return tag.startswith("adaptor-")


def minutes(limit: str) -> float:
    """Minutes in a time limit of the form [[days-]hours:]minutes:seconds."""
    days, _, clock = limit.rpartition("-")
    seconds = 0
    for part in clock.split(":"):
        seconds = 60 * seconds + int(part)
    return 1440 * int(days or 0) + seconds / 60
