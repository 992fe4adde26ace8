"""The real worker keeps the guard rails of a bag: time-outs, and the signal before the pilot's end."""

from __future__ import annotations

import signal
import time

from adaptor.guard_rails import EarlySignal
from adaptor.protocol.messages import Ending, Leaving
from tests.living import is_alive, read_pids
from tests.worker.fake_daemon import Harness, key, task

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
