"""What tasks have and may have of memory, on processors and GPUs, and tasks that run out of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from adaptor.protocol.messages import Ending, Lease
from adaptor.resources import TaskSize
from adaptor.worker.memory import GpuMemoryMeter, OomKills, memory_limit, oom_kill_counter
from tests.living import PATIENCE
from tests.worker.fake_daemon import Harness, key, task

MIB = 1 << 20
HOLD = "import time; x = bytearray({}); time.sleep({})"


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group of this process's own, for 150 MiB."""
    above = oom_kill_counter()
    if above is None or above.name != "memory.oom_control":
        pytest.skip("no control group of version 1 counts kills for lack of memory here")
    group = above.parent / f"adaptor-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(150 * MIB))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    yield group
    limit = time.monotonic() + PATIENCE
    while True:
        try:
            group.rmdir()
            return
        except OSError:
            assert time.monotonic() < limit, "processes are left in the group"
            time.sleep(0.1)


def test_the_worker_knows_that_the_kernel_killed_a_task_for_lack_of_memory(
    harness: Harness, small_group: Path
) -> None:
    start = f"echo $$ > {small_group}/cgroup.procs; exec {sys.executable} -m adaptor.worker"
    worker = subprocess.Popen(["/bin/sh", "-c", start], env=harness.environment())
    harness.workers.append(worker)
    harness.daemon.until(lambda: harness.daemon.reports)
    large = ["python3", "-c", HOLD.format(400 * MIB, 0)]
    harness.lease(task(1, large), task(2, f"python3 -c '{large[2]}'; exit $?"))
    assert harness.result(key(1)).ending is Ending.OUT_OF_MEMORY
    shell = harness.result(key(2))
    assert (shell.ending, shell.exit_code) == (Ending.OUT_OF_MEMORY, 137)
    harness.lease(task(3, "kill -9 $$"))
    assert harness.result(key(3)).ending is Ending.SIGNALLED, "nobody's memory was short"
    harness.stop()


def test_each_kill_accounts_for_one_attempt(tmp_path: Path) -> None:
    counter = tmp_path / "memory.events"
    counter.write_text("oom 9\noom_kill 3\noom_group_kill 0\n")
    kills = OomKills(counter)
    assert not kills.take()
    counter.write_text("oom 9\noom_kill 5\n")
    assert [kills.take() for _ in range(3)] == [True, True, False]
    counter.write_text("oom 9\noom_kill 8\n")
    kills.forget()
    assert not kills.take()
    counter.unlink()
    assert not kills.take()
    assert not OomKills(None).take()


def test_the_worker_ends_a_task_beyond_its_memory_where_the_bag_says_so(harness: Harness) -> None:
    harness.started()
    code = HOLD.format(150 * MIB, 60)
    small = Lease(key(1), ["python3", "-c", code], 0.0, task=TaskSize(memory=50 * MIB))
    large = Lease(key(2), ["python3", "-c", HOLD.format(20 * MIB, 3)], 0.0, task=TaskSize(memory=300 * MIB))
    harness.lease(small, large, bags=[harness.bag(limit_memory=True)])
    result = harness.result(key(1))
    assert result.ending is Ending.OUT_OF_MEMORY
    assert 50 * MIB < result.peak_memory < 400 * MIB
    assert harness.result(key(2)).ending is Ending.EXITED


def cgroup(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def limit(tmp_path: Path, lines: str, files: dict[str, str]) -> int | None:
    (tmp_path / "self").write_text(lines)
    cgroup(tmp_path / "fs", files)
    return memory_limit(tmp_path / "self", tmp_path / "fs")


def test_the_tightest_limit_above_a_process_counts(tmp_path: Path) -> None:
    files = {"job/step/memory.max": "max\n", "job/memory.max": "1000\n", "memory.max": "5000\n"}
    assert limit(tmp_path, "0::/job/step\n", files) == 1000


def test_the_limit_of_version_1(tmp_path: Path) -> None:
    files = {
        "memory/slurm/job/memory.limit_in_bytes": "2000\n",
        "memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    assert limit(tmp_path, "4:memory:/slurm/job\n3:cpuset:/\n", files) == 2000


def test_no_limit(tmp_path: Path) -> None:
    assert limit(tmp_path, "0::/job\n", {"job/memory.max": "max\n"}) is None
    assert memory_limit(tmp_path / "nothing", tmp_path) is None


def test_a_counter_is_found_in_both_versions(tmp_path: Path) -> None:
    told = tmp_path / "cgroup"
    one = tmp_path / "memory" / "slurm" / "job_7" / "memory.oom_control"
    two = tmp_path / "slurm" / "job_7" / "memory.events"
    for file in (one, two):
        file.parent.mkdir(parents=True)
        file.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    told.write_text("4:memory:/slurm/job_7\n0::/\n")
    assert oom_kill_counter(told, tmp_path) == one
    told.write_text("0::/slurm/job_7\n")
    assert oom_kill_counter(told, tmp_path) == two
    told.write_text("0::/elsewhere\n")
    assert oom_kill_counter(told, tmp_path) is None
    assert oom_kill_counter(tmp_path / "none", tmp_path) is None


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
