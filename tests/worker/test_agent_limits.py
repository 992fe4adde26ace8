"""The real worker: time-outs and early signals, GPUs and processors, and what stands where output goes."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from adaptor.guard_rails import EarlySignal
from adaptor.protocol.messages import AttemptKey, Ending, Lease, Leaving
from adaptor.resources import TaskSize
from adaptor.worker.openings import AHEAD
from tests.living import is_alive, read_pids
from tests.worker.fake_daemon import Harness, key, task, wait_for

CHECKPOINTING = "trap 'echo checkpoint >> {log}; exit 75' USR1; echo $$ > {pid}; while :; do sleep 0.05; done"


def test_a_task_that_is_out_of_time_is_ended_with_all_its_processes(harness: Harness) -> None:
    pids = harness.folder / "pid"
    harness.started()
    hung = f"(trap '' TERM; echo $$ >> {pids}; while :; do sleep 1; done) & echo $$ >> {pids}; wait"
    harness.lease(task(1, hung), task(2, "echo quick"))
    found = read_pids(pids, 2)
    assert harness.result(key(2)).ending is Ending.EXITED
    harness.lease(timeouts={1: 0.5, 9: 0.1})
    result = harness.result(key(1))
    assert (result.ending, result.error) == (Ending.TIMED_OUT, "time-out after 0.5s")
    assert (result.exit_code, result.signal) == (None, None), "how it ended then says nothing of it"
    harness.daemon.until(lambda: not any(is_alive(pid) for pid in found))


def test_the_limit_of_a_lease_counts_in_place_of_that_of_its_bag(harness: Harness) -> None:
    harness.started()
    short, long = task(1, "sleep 300", timeout=0.5), task(2, "sleep 2", timeout=300.0)
    harness.lease(short, long, bags=[harness.bag(timeout=1.0)])
    assert harness.result(key(1)).error == "time-out after 0.5s"
    assert harness.result(key(2)).ending is Ending.EXITED


def test_the_limit_of_a_bag_holds_from_the_first_moment_on(harness: Harness) -> None:
    harness.started()
    harness.lease(task(1, "sleep 300"), bags=[harness.bag(timeout=0.5)])
    result = harness.result(key(1))
    assert (result.ending, result.error) == (Ending.TIMED_OUT, "time-out after 0.5s")


def test_a_task_gets_its_signal_before_the_end_of_the_pilot(harness: Harness) -> None:
    log, pids = harness.folder / "log", harness.folder / "pid"
    script = harness.folder / "checkpointing"
    script.write_text("#!/bin/sh\n" + CHECKPOINTING.format(log=log, pid=pids))
    script.chmod(0o700)
    bag = harness.bag(signal=EarlySignal("SIGUSR1", 15.0))
    harness.started(ADAPTOR_PILOT_END=time.time() + 22)
    harness.lease(task(1, f"cd / && {script}"), task(2, [str(script)]), bags=[bag])
    for number in (1, 2):
        result = harness.result(key(number))
        assert (result.ending, result.exit_code) == (Ending.EXITED, 75), "its shell outlives the signal too"
        assert result.started + result.wall < harness.daemon.hellos[0].deadline - 2
    assert log.read_text() == "checkpoint\n" * 2


def test_a_task_gets_its_signal_before_its_time_out(harness: Harness) -> None:
    log, pids = harness.folder / "log", harness.folder / "pid"
    harness.started()
    bag = harness.bag(signal=EarlySignal("SIGUSR1", 15.0))
    harness.lease(task(1, CHECKPOINTING.format(log=log, pid=pids), timeout=20.0), bags=[bag])
    result = harness.result(key(1))
    assert (result.ending, result.exit_code) == (Ending.EXITED, 75)
    assert log.read_text() == "checkpoint\n"


def test_a_worker_that_must_leave_early_gives_the_signal_first(harness: Harness) -> None:
    log, pids = harness.folder / "log", harness.folder / "pid"
    worker = harness.started()
    harness.give_terms(grace_time=15.0)
    plain = f"trap 'exit 3' TERM; echo $$ > {pids}2; while :; do sleep 0.05; done"
    harness.lease(
        task(1, CHECKPOINTING.format(log=log, pid=pids)),
        task(2, plain),
        bags=[harness.bag(signal=EarlySignal("SIGUSR1", 120.0))],
    )
    (first,) = read_pids(pids, 1)
    read_pids(harness.folder / "pid2", 1)
    worker.send_signal(signal.SIGTERM)
    assert harness.exit_code(worker) == 0
    assert harness.daemon.goodbyes[-1].why is Leaving.SIGNAL
    result = harness.daemon.results[key(1)]
    assert (result.ending, result.exit_code) == (Ending.ENDED, 75)
    assert harness.daemon.results[key(2)].exit_code == 3, "a shell without a trap outlives it, up to SIGTERM"
    assert not is_alive(first)


SHOW = 'echo "$CUDA_VISIBLE_DEVICES/$ADAPTOR_GPUS"; '
AFFINITY = [sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))"]


def outputs(harness: Harness, leases: list[Lease]) -> list[str]:
    harness.daemon.until(lambda: all(each.key in harness.daemon.results for each in leases))
    return [(harness.output / f"{each.key.task}.out").read_text().strip() for each in leases]


def test_each_task_finds_its_own_gpus(harness: Harness) -> None:
    harness.started(ADAPTOR_PROCESSORS=4, CUDA_VISIBLE_DEVICES="3,GPU-5a", ADAPTOR_GPU_TYPE="a100")
    (hello,) = harness.daemon.hellos
    assert (hello.gpus, hello.gpu_type) == (2, "a100")
    bags = [harness.bag(1, task=TaskSize(gpus=1, gpu_type="a100")), harness.bag(2)]
    go = harness.folder / "go"
    beside = SHOW + wait_for(go)
    whole = [
        Lease(AttemptKey(1, number, 1), beside, 0.0, environment={"CUDA_VISIBLE_DEVICES": "7"})
        for number in (0, 1)
    ]
    without = Lease(AttemptKey(2, 2, 1), SHOW, 0.0)
    harness.lease(*whole, without, bags=bags)
    harness.daemon.until(lambda: any(report.free_gpus == [0.0, 0.0] for report in harness.daemon.reports))
    harness.running(*(each.key for each in whole))
    go.touch()
    assert sorted(outputs(harness, whole)) == ["3/3", "GPU-5a/GPU-5a"]
    assert outputs(harness, [without]) == ["/"]


def test_tasks_beside_each_other_have_processors_of_their_own(harness: Harness) -> None:
    mine = os.sched_getaffinity(0)
    harness.started(ADAPTOR_PROCESSORS=len(mine))
    bags = [harness.bag(1), harness.bag(2, bind=False)]
    leases = [Lease(AttemptKey(1, number, 1), AFFINITY, 0.0) for number in range(len(mine))]
    free = Lease(AttemptKey(2, len(mine), 1), AFFINITY, 0.0)
    harness.lease(*leases, free, bags=bags)
    told = outputs(harness, leases)
    assert outputs(harness, [free]) == [" ".join(map(str, sorted(mine)))]
    assert {int(each) for text in told for each in text.split()} <= mine
    assert all(len(text.split()) == 1 for text in told), "each has one"


def test_tasks_of_a_moment_whose_files_are_opened_ahead_have_processors_of_their_own(
    harness: Harness,
) -> None:
    mine = os.sched_getaffinity(0)
    harness.started(ADAPTOR_PROCESSORS=len(mine))
    command = ["/bin/grep", "^Cpus_allowed_list:", "/proc/self/status"]
    leases = [Lease(AttemptKey(1, number, 1), command, 0.0) for number in range(4 * AHEAD)]
    harness.lease(*leases)
    told = {text.split()[1] for text in outputs(harness, leases)}
    assert told == {str(number) for number in mine}


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_text("precious\n")
    return path


def test_a_link_in_the_place_of_an_output_file_is_not_followed(harness: Harness, precious: Path) -> None:
    harness.output.mkdir()
    (harness.output / "1.out").symlink_to(precious)
    (harness.output / "2.err").symlink_to(precious.with_name("new"))
    harness.started()
    harness.lease(*(task(n, f"echo {n}; echo {n} >&2") for n in (1, 2, 3)))
    assert harness.result(key(3)).exit_code == 0
    for n, name in ((1, "1.out"), (2, "2.err")):
        result = harness.result(key(n))
        assert result.ending is Ending.NOT_STARTED
        assert f"{harness.output}/{name}: " in (result.error or "")
        assert "link" in (result.error or "")
    assert precious.read_text() == "precious\n"
    assert not precious.with_name("new").exists()


def test_another_name_of_a_file_is_not_written(harness: Harness, precious: Path) -> None:
    harness.output.mkdir()
    os.link(precious, harness.output / "1.out")
    harness.started()
    harness.lease(task(1, "echo out"))
    assert harness.result(key(1)).ending is Ending.NOT_STARTED
    assert precious.read_text() == "precious\n"


@pytest.mark.parametrize("reader", [False, True])
def test_a_fifo_stops_no_other_task(harness: Harness, reader: bool) -> None:
    harness.output.mkdir()
    fifo = harness.output / "1.out"
    os.mkfifo(fifo)
    handle = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK) if reader else None
    try:
        harness.started()
        harness.lease(*(task(n, f"echo {n}") for n in (1, 2)))
        assert harness.result(key(2)).exit_code == 0
        result = harness.result(key(1))
        assert result.ending is Ending.NOT_STARTED
        assert result.error == f"{fifo}: the task's output cannot be written: it is no plain file"
    finally:
        if handle is not None:
            os.close(handle)
