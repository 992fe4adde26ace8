"""The peak GPU memory of a task, where NVIDIA's management library tells what each process holds."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any


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
        """`trees`: by leader: the process ids of its tree."""
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
