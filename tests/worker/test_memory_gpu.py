"""The peak GPU memory of a task, by a library that is played."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from adaptor.worker.memory import GpuMemoryMeter

GIB = 2**30


class NVMLError(Exception):
    pass


class Library(ModuleType):
    """Two GPUs; `held`: by GPU the bytes of each process."""

    NVMLError = NVMLError

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.held: list[dict[int, int | None]] = [{}, {}]
        self.driver = True
        self.starts = 0

    def nvmlInit(self) -> None:
        self.starts += 1
        if not self.driver:
            raise NVMLError

    def nvmlDeviceGetCount(self) -> int:
        return len(self.held)

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:
        return number

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        if not self.driver:
            raise NVMLError
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in self.held[handle].items()]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    monkeypatch.setitem(sys.modules, "pynvml", made)
    return made


def test_the_peak_of_a_tree_on_all_its_gpus(library: Library) -> None:
    meter, trees = GpuMemoryMeter(), {10: [10, 11], 20: [20]}
    library.held = [{10: GIB, 20: 5 * GIB, 99: 7 * GIB}, {11: 2 * GIB}]
    meter.sample(trees)
    library.held = [{10: 2 * GIB, 20: None}, {}]
    meter.sample(trees)
    assert (meter.peak(10), meter.peak(20)) == (3 * GIB, 5 * GIB)
    assert meter.peak(10) == 0, "another process may get the same id"


def test_without_a_task_with_gpus_the_library_is_not_loaded(library: Library) -> None:
    GpuMemoryMeter().sample({})
    assert library.starts == 0


def test_without_a_driver_nothing_is_measured_and_nobody_asks_again(library: Library) -> None:
    library.driver = False
    meter = GpuMemoryMeter()
    meter.sample({10: [10]})
    meter.sample({10: [10]})
    assert (meter.peak(10), library.starts) == (0, 1)


def test_a_driver_that_fails_later_breaks_nothing(library: Library) -> None:
    meter = GpuMemoryMeter()
    library.held = [{10: GIB}]
    meter.sample({10: [10]})
    library.driver = False
    meter.sample({10: [10]})
    assert meter.peak(10) == GIB


def test_without_the_library_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    meter = GpuMemoryMeter()
    meter.sample({10: [10]})
    assert meter.peak(10) == 0
