"""The real worker leaves: told by a signal, by the daemon, by the pilot's end, or for want of work."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from adaptor.protocol.messages import Ending, Leaving, Orders, Result
from adaptor.worker.tasks import MOMENT
from tests.living import PATIENCE, hold, is_alive, read_pids
from tests.worker.fake_daemon import Harness, key, task, wait_for

STUBBORN = "trap '' TERM; echo $$ > {pid}; while :; do sleep 1; done"


@pytest.mark.parametrize("why", [Leaving.SIGNAL, Leaving.TOLD, Leaving.TIME_UP], ids=lambda why: why.name)
def test_a_worker_that_leaves_hands_everything_back(harness: Harness, why: Leaving) -> None:
    left = 10 if why is Leaving.TIME_UP else 3600
    worker = harness.started(ADAPTOR_PILOT_END=time.time() + left)
    harness.lease(*(task(n, "sleep 300") for n in range(5)))
    harness.running(key(0), key(1))
    if why is Leaving.SIGNAL:
        worker.send_signal(signal.SIGTERM)
    elif why is Leaving.TOLD:
        harness.daemon.send(Orders(leave="the bag is done"))
    assert harness.exit_code(worker) == 0
    endings = [harness.daemon.results[key(n)].ending for n in range(5)]
    assert endings == [Ending.ENDED] * 2 + [Ending.RETURNED] * 3
    assert harness.daemon.goodbyes[-1].why is why
    assert not list(harness.pilot.glob("unsent-*"))
    assert ("the bag is done" in harness.log()) is (why is Leaving.TOLD)


def test_a_worker_leaves_at_the_end_of_what_is_paid_for(harness: Harness) -> None:
    worker = harness.started(ADAPTOR_PILOT_END=time.time() + 3600)
    harness.lease(task(1, "sleep 300"))
    harness.running(key(1))
    harness.daemon.send(Orders(unpaid=3600.0))
    assert harness.exit_code(worker) == 0
    assert harness.daemon.results[key(1)].ending is Ending.ENDED
    assert harness.daemon.goodbyes[-1].why is Leaving.TIME_UP
    assert "paid time is up" in harness.log()


def test_a_worker_whose_pilot_is_paid_for_longer_stays(harness: Harness) -> None:
    worker = harness.started(ADAPTOR_PILOT_END=time.time() + 3600)
    harness.daemon.send(Orders(unpaid=3600.0 - 12))
    harness.daemon.send(Orders(unpaid=0.0))
    harness.lease(task(1, "sleep 13"))
    harness.daemon.until(lambda: key(1) in harness.daemon.results)
    assert harness.daemon.results[key(1)].exit_code == 0
    harness.daemon.send(Orders(leave="enough"))
    assert harness.exit_code(worker) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_other_signals_to_leave(harness: Harness, number: int) -> None:
    worker = harness.started()
    worker.send_signal(number)
    assert harness.exit_code(worker) == 0
    assert harness.daemon.goodbyes[-1].why is Leaving.SIGNAL


def test_tasks_that_ignore_sigterm_are_killed_within_the_grace_time(harness: Harness) -> None:
    pids = harness.folder / "pid"
    worker = harness.started()
    harness.lease(task(1, STUBBORN.format(pid=pids)))
    harness.running(key(1))
    pid = read_pids(pids, 1)[0]
    worker.send_signal(signal.SIGTERM)
    assert harness.exit_code(worker) == 0
    result = harness.daemon.results[key(1)]
    assert (result.ending, result.signal) == (Ending.ENDED, signal.SIGKILL)
    assert not is_alive(pid)


def test_a_task_that_ends_well_after_being_told_to_end_is_not_done(harness: Harness) -> None:
    pids = harness.folder / "pid"
    worker = harness.started()
    harness.lease(task(1, f"trap 'exit 0' TERM; echo $$ > {pids}; while :; do sleep 0.05; done"))
    read_pids(pids, 1)
    worker.send_signal(signal.SIGTERM)
    assert harness.exit_code(worker) == 0
    assert harness.daemon.results[key(1)].ending is Ending.ENDED


def test_a_task_that_the_scheduler_signals_before_the_worker_has_not_failed(harness: Harness) -> None:
    pids = harness.folder / "pid"
    worker = harness.started()
    harness.lease(
        task(1, f"echo $$ >> {pids}; sleep 300"),
        task(2, f"trap 'exit 9' TERM; echo $$ >> {pids}; sleep 300 & wait"),
    )
    tasks = read_pids(pids, 2)
    hold(psutil.Process(worker.pid))  # so that it sees its own signal last, however slow this machine is
    for pid in tasks:
        os.killpg(pid, signal.SIGTERM)
    harness.daemon.until(lambda: all(not is_alive(pid) for pid in tasks))
    worker.send_signal(signal.SIGTERM)
    worker.send_signal(signal.SIGCONT)
    assert harness.exit_code(worker) == 0
    assert {harness.daemon.results[key(n)].ending for n in (1, 2)} == {Ending.ENDED}


def test_a_signal_that_waits_is_seen_before_a_failure_is_believed(harness: Harness) -> None:
    """Several attempts: a busy machine may hold up this test until the worker has believed in the failure."""
    endings = (ending_after_a_hold(harness, number) for number in range(1, 10))
    assert Ending.ENDED in endings


def ending_after_a_hold(harness: Harness, number: int) -> Ending:
    """A task is terminated, the worker notices, is not run for a while, and then finds a signal waiting."""
    harness.daemon.reports.clear()
    worker = harness.started()
    pids = harness.folder / f"pid-{number}"
    harness.lease(task(number, f"echo $$ > {pids}; sleep 300"))
    (pid,) = read_pids(pids, 1)
    os.killpg(pid, signal.SIGTERM)
    harness.daemon.until(lambda: not psutil.pid_exists(pid))  # the worker has noticed
    hold(psutil.Process(worker.pid))
    moment_over = time.monotonic() + MOMENT
    while (left := moment_over - time.monotonic()) > 0:
        harness.daemon.serve(left)
    worker.send_signal(signal.SIGTERM)
    worker.send_signal(signal.SIGCONT)
    assert harness.exit_code(worker) == 0
    return harness.daemon.results[key(number)].ending


def test_leases_that_cross_the_goodbye_are_handed_back(harness: Harness) -> None:
    pids = harness.folder / "pid"
    worker = harness.started()
    harness.lease(task(1, STUBBORN.format(pid=pids)))
    read_pids(pids, 1)
    harness.daemon.send(Orders(leave="now"))
    harness.lease(task(2, "true"))
    assert harness.exit_code(worker) == 0
    assert harness.daemon.results[key(2)].ending is Ending.RETURNED


def test_a_task_that_cannot_finish_in_time_is_not_started(harness: Harness) -> None:
    harness.started(ADAPTOR_PILOT_END=time.time() + 600)
    harness.lease(task(1, "true", needs=3600), task(2, "true", needs=60))
    assert harness.result(key(2)).exit_code == 0
    result = harness.result(key(1))
    assert result.ending is Ending.RETURNED
    assert result.error == "it needs 3600 s, more than the pilot has left"


def test_a_worker_without_work_leaves(harness: Harness) -> None:
    worker = harness.started()
    harness.lease(task(1, "sleep 1"))
    harness.running(key(1))
    harness.give_terms(idle_timeout=0.5)
    assert harness.exit_code(worker) == 0
    assert harness.daemon.results[key(1)].exit_code == 0
    assert harness.daemon.goodbyes[-1].why is Leaving.IDLE


def test_results_without_an_answer_are_put_down(harness: Harness) -> None:
    worker = harness.started()
    harness.daemon.acknowledging = False
    harness.lease(task(1, "true"), task(2, "exit 4"))
    harness.result(key(1))
    harness.result(key(2))
    harness.daemon.close()
    worker.send_signal(signal.SIGTERM)
    assert harness.exit_code(worker) == 0
    path = harness.pilot / f"unsent-n1-{worker.pid}.msgpack"
    assert path.stat().st_mode & 0o777 == 0o600
    results = msgspec.msgpack.decode(path.read_bytes(), type=list[Result])
    assert {result.key: result.exit_code for result in results} == {key(1): 0, key(2): 4}


def test_nothing_that_a_task_has_started_outlives_it(harness: Harness) -> None:
    pids = harness.folder / "pids"
    harness.started()
    fled = (
        f"setsid sh -c 'echo $$ >> {pids}; setsid sh -c \"echo \\$\\$ >> {pids}; sleep 300\" & sleep 300' &"
    )
    harness.lease(
        task(
            1, f"{fled} sleep 300 & echo $! >> {pids}; while [ $(wc -l < {pids}) -lt 3 ]; do sleep 0.05; done"
        )
    )
    assert harness.result(key(1)).exit_code == 0
    left = read_pids(pids, 3)
    harness.daemon.until(lambda: all(not is_alive(pid) for pid in left))


def test_what_a_running_task_has_started_lives_on(harness: Harness) -> None:
    pids = harness.folder / "pids"
    go = harness.folder / "go"
    harness.started()
    helper = f"(setsid sh -c 'echo $$ > {pids}; sleep 300' &)"
    harness.lease(
        task(1, f"{helper}; {wait_for(go)}"),
        task(2, "sleep 0.1"),
        task(3, "sleep 0.1 & exit 0"),
    )
    pid = read_pids(pids, 1)[0]
    harness.result(key(2))
    harness.result(key(3))
    assert is_alive(pid)
    go.touch()
    harness.result(key(1))
    harness.daemon.until(lambda: not is_alive(pid))


def test_what_hides_its_origin_is_gone_with_the_worker(harness: Harness) -> None:
    pids = harness.folder / "pids"
    worker = harness.started()
    hidden = f"env -i setsid sh -c 'echo $$ > {pids}; exec /bin/sleep 300' &"
    harness.lease(task(1, "sleep 300"), task(2, f"({hidden}) ; while [ ! -s {pids} ]; do sleep 0.05; done"))
    harness.result(key(2))
    pid = read_pids(pids, 1)[0]
    assert is_alive(pid)  # it might be the other task's
    worker.send_signal(signal.SIGTERM)
    assert harness.exit_code(worker) == 0
    assert not is_alive(pid)


def test_started_wrongly(harness: Harness) -> None:
    worker = harness.start(ADAPTOR_PILOT=None)
    assert worker.wait(PATIENCE) == 78


def test_the_log_is_private(harness: Harness, tmp_path: Path) -> None:
    harness.started()
    log = harness.pilot / "worker-n1.log"
    assert log.stat().st_mode & 0o777 == 0o600
    assert "welcomed at tcp://127.0.0.1:" in log.read_text()
