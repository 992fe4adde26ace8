"""Watch of the queue while something runs: the limits must hold at every instant."""

from __future__ import annotations

import abc
import threading
import time
from types import TracebackType
from typing import TypeVar

import msgspec

from tests.clusters.slurm import ThrowawaySlurm

Self = TypeVar("Self", bound="Watch")


class Watch(abc.ABC):
    """Notes something every half second, in a thread of its own, until left."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self: Self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    @abc.abstractmethod
    def note(self) -> None:
        """One look."""

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            self.note()


class Seen(msgspec.Struct):
    """One look at the queue: our jobs as (state, processors, minutes)."""

    at: float
    jobs: list[tuple[str, int, int]]


class QueueWatch(Watch):
    """Watch of the adaptor's own jobs."""

    def __init__(self, cluster: ThrowawaySlurm) -> None:
        super().__init__()
        self._cluster = cluster
        self.seen: list[Seen] = []

    def look(self) -> Seen:
        text = self._cluster.run(["squeue", "-h", "-r", "-o", "%j|%T|%C|%l"], check=False)
        jobs = []
        for line in text.splitlines():
            name, state, processors, limit = line.split("|")
            if name.startswith("adaptor-") and state != "COMPLETING":
                minutes, _, _ = limit.rpartition(":")
                hours, _, rest = minutes.rpartition(":")
                jobs.append((state, int(processors), int(hours or 0) * 60 + int(rest)))
        return Seen(time.time(), jobs)

    def note(self) -> None:
        self.seen.append(self.look())
