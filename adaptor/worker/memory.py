"""The memory of tasks: their peaks, from the kernel and from samples of their trees; and who ran out of it.

Tasks run in the control group of their worker, where schedulers limit memory (`ConstrainRAMSpace` of Slurm).
The kernel counts its kills there since Linux 4.13, in `memory.events` (version 2) or `memory.oom_control`
(version 1). Without such a file nothing is known, and a kill is a kill.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import resource
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from adaptor.processes.identity import Process
from adaptor.processes.trees import trees_of

INTERVAL = 1.0  # seconds between two samples, at least
SHARE = 0.01  # the part of a processor that sampling may use; with many processes it samples less often


class MemoryMeter:
    """Peaks of the running trees, by the process id of their leader."""

    def __init__(self) -> None:
        self._floor = 0
        self._seen: dict[int, int] = {}
        self.next_sample = 0.0  # monotonic seconds

    def sample(self, leaders: set[int]) -> dict[int, list[Process]]:
        """Sample the resident memory of these trees; returns them."""
        import psutil  # 24 ms that a worker's start does not have

        began = time.monotonic()
        trees = trees_of(leaders)
        for leader, processes in trees.items():
            total = 0
            for process in processes:
                with contextlib.suppress(psutil.Error):  # it may end at any moment
                    total += psutil.Process(process.pid).memory_info().rss
            self._seen[leader] = max(total, self._seen.get(leader, 0))
        now = time.monotonic()
        self.next_sample = now + max(INTERVAL, (now - began) / SHARE)
        return trees

    def seen(self, leader: int) -> int:
        """The largest resident memory of a running tree in any sample so far, bytes."""
        return self._seen.get(leader, 0)

    def peak(self, leader: int, maxrss: int) -> int:
        """Bytes of a leader that has ended. `maxrss`: the kernel's figure (kilobytes, getrusage(2)).

        The kernel's figure starts at the peak of the forking process, this one. If it is larger than that,
        it is the task's own; else a sample counts; without a sample it is an upper bound.
        """
        sampled = self._seen.pop(leader, 0)
        size = maxrss * 1024
        if sampled:
            if size > self._floor:
                self._floor = own_peak()
            if size <= self._floor:
                return sampled
        return max(sampled, size)


def held_by(processes: Iterable[Process]) -> int:
    """Bytes of resident memory, that which processes share counted once; a look that takes some time."""
    import psutil

    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += psutil.Process(process.pid).memory_full_info().pss
    return total


def own_peak() -> int:
    """The largest resident memory of this process so far, in bytes."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class GpuMemoryMeter:
    """Peaks of the running trees with GPUs, by the process id of their leader.

    The library (`nvidia-ml-py`, extra `gpu`) is loaded with the first sample. Where it, or the driver, is not
    there, nothing is measured.
    """

    def __init__(self) -> None:
        self._seen: Counter[int] = Counter()
        self._nvml: Any = None
        self._missing = False

    def sample(self, trees: Mapping[int, Collection[int]]) -> None:
        """Measure the memory of trees. `trees`: process ids of each tree, by its leader."""
        if not trees or not self._ready():
            return
        leaders = {pid: leader for leader, pids in trees.items() for pid in pids}
        held: Counter[int] = Counter()
        for pid, size in self._processes():
            if pid in leaders:
                held[leaders[pid]] += size
        self._seen |= held

    def peak(self, leader: int) -> int:
        """Bytes of a leader that has ended, on all GPUs together; 0: none was seen."""
        return self._seen.pop(leader, 0)

    def _ready(self) -> bool:
        if self._nvml is None and not self._missing:
            try:
                nvml = importlib.import_module("pynvml")
                nvml.nvmlInit()
                self._nvml = nvml
            except ImportError:
                self._missing = True
            except nvml.NVMLError:  # no driver, or no GPU of NVIDIA's
                self._missing = True
        return self._nvml is not None

    def _processes(self) -> Iterator[tuple[int, int]]:
        """Process ids of this machine with the bytes that each holds of a GPU."""
        try:
            for number in range(self._nvml.nvmlDeviceGetCount()):
                handle = self._nvml.nvmlDeviceGetHandleByIndex(number)
                for process in self._nvml.nvmlDeviceGetComputeRunningProcesses(handle):
                    yield process.pid, process.usedGpuMemory or 0
        except self._nvml.NVMLError:  # this GPU, or its driver, does not tell
            return


class OomKills:
    """Kills for lack of memory that no ended attempt has accounted for yet."""

    def __init__(self, counter: Path | None) -> None:
        """`counter`: the file that counts them; None: there is none."""
        self._counter = counter
        self._known = self._count()

    def take(self) -> bool:
        """Account for one kill; False: there is none."""
        if self._counter is None or self._count() <= self._known:
            return False
        self._known += 1
        return True

    def forget(self) -> None:
        """Forget kills so far, as no attempt runs: the killed process was no part of one, or has ended with
        one."""
        self._known = self._count()

    def _count(self) -> int:
        if self._counter is None:
            return 0
        with contextlib.suppress(OSError, ValueError, IndexError):
            for line in self._counter.read_text().splitlines():
                if line.startswith("oom_kill "):
                    return int(line.split()[1])
        return 0


_OF_PROCESS = Path("/proc/self/cgroup")
_ROOT = Path("/sys/fs/cgroup")


def memory_limit(of_process: Path = _OF_PROCESS, root: Path = _ROOT) -> int | None:
    """Bytes that the tightest memory group of this process allows; None: none does."""
    limits = []
    for version, top, group in _memory_groups(of_process, root):
        name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        folders = [folder for folder in (group, *group.parents) if folder.is_relative_to(top)]
        limits += [_limit(folder / name) for folder in folders]
    return min((limit for limit in limits if limit is not None), default=None)


def oom_kill_counter(of_process: Path = _OF_PROCESS, root: Path = _ROOT) -> Path | None:
    """The file that counts kills for lack of memory in this process's group; None: there is none."""
    for version, _, group in _memory_groups(of_process, root):
        file = group / ("memory.events" if version == 2 else "memory.oom_control")
        if file.is_file():
            return file
    return None


def _memory_groups(of_process: Path, root: Path) -> Iterator[tuple[int, Path, Path]]:
    """Version, top of the hierarchy and folder of each group that may limit memory (cgroups(7))."""
    try:
        lines = of_process.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        match = re.fullmatch(r"(\d+):([^:]*):/(.*)", line)
        if match is None:
            continue
        if match[1] == "0":
            yield 2, root, root / match[3]
        elif "memory" in match[2].split(","):
            yield 1, root / "memory", root / "memory" / match[3]


def _limit(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    # Version 1 says "no limit" by a number near 2**63.
    return int(text) if text.isdigit() and int(text) < 2**60 else None
