"""The largest memory of a task: what the kernel saw of one process, what was sampled of its tree."""

from __future__ import annotations

import contextlib
import resource
import time
from pathlib import Path

from adaptor.processes.descendants import descendants_by_top

INTERVAL = 1.0
"""Seconds between two samples, at least."""
SHARE = 0.01
"""Of a processor that sampling may use; on a crowded node it samples less often."""


class MemoryMeter:
    """Peaks of the running trees, by the number of their leader."""

    def __init__(self) -> None:
        self._floor = 0
        self._seen: dict[int, int] = {}
        self.next_sample = 0.0
        """Monotonic seconds."""

    def sample(self, leaders: set[int]) -> None:
        """Look at the resident memory of these trees now."""
        began = time.monotonic()
        for leader, processes in descendants_by_top(leaders).items():
            total = 0
            for process in processes:
                with contextlib.suppress(Exception):  # it may end at any moment
                    total += process.memory_info().rss
            self._seen[leader] = max(total, self._seen.get(leader, 0))
        now = time.monotonic()
        self.next_sample = now + max(INTERVAL, (now - began) / SHARE)

    def peak(self, leader: int, maxrss: int) -> int:
        """Bytes of a leader that has ended. `maxrss`: the kernel's figure (kilobytes, getrusage(2)).

        That figure starts at the peak of the process that forked, this one, so it says something of
        the task only when it is larger; else a sample counts; else it is an upper bound.
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
