"""Tasks that run out of memory: by the kernel's count in a control group, and by the worker's own limit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.protocol.messages import Ending, Lease
from adaptor.resources import TaskSize
from adaptor.worker.memory import OomKills, oom_kill_counter
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
    limit = time.monotonic() + 20
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
