"""The peak memory of a task: the kernel's figure for one process, and samples of its whole tree."""

from __future__ import annotations

import contextlib
import resource
import time
from pathlib import Path

from adaptor.processes.trees import trees_of

INTERVAL = 1.0
"""Seconds between two samples, at least."""
SHARE = 0.01
"""The part of a processor that sampling may use; with many processes it samples less often."""


class MemoryMeter:
    """Peaks of the running trees, by the process id of their leader."""

    def __init__(self) -> None:
        self._floor = 0
        self._seen: dict[int, int] = {}
        self.next_sample = 0.0
        """Monotonic seconds."""

    def sample(self, leaders: set[int]) -> None:
        """Sample the resident memory of these trees."""
        import psutil  # 24 ms that a worker's start does not have

        began = time.monotonic()
        for leader, processes in trees_of(leaders).items():
            total = 0
            for process in processes:
                with contextlib.suppress(psutil.Error):  # it may end at any moment
                    total += psutil.Process(process.pid).memory_info().rss
            self._seen[leader] = max(total, self._seen.get(leader, 0))
        now = time.monotonic()
        self.next_sample = now + max(INTERVAL, (now - began) / SHARE)

    def peak(self, leader: int, maxrss: int) -> int:
        """Bytes of a leader that has ended. `maxrss`: the kernel's figure (kilobytes, getrusage(2)).

        The kernel's figure starts at the peak of the forking process, this one. If it is larger than that,
        it is the task's own; else a sample counts; without a sample it is an upper bound.
        """
        sampled = self._seen.pop(leader, 0)
        size = maxrss * 1024
        if sampled and not self._exceeds_own(size):
            return sampled
        return max(sampled, size)

    def _exceeds_own(self, size: int) -> bool:
        if size > self._floor:
            self._floor = own_peak()
        return size > self._floor


def own_peak() -> int:
    """The largest resident memory of this process so far, in bytes."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
