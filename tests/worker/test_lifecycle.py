"""When a worker without tasks leaves, and when it reports what."""

from __future__ import annotations

import math

import msgspec

from adaptor.protocol.messages import Ending, Lease, Leaving, Welcome
from adaptor.worker.lifecycle import GAP, LAST_SECONDS, IdleTimer, Reporter, grace_left, leave_at
from adaptor.worker.tasks import WorkerTasks
from tests.worker.attempts import KEY, start, tend_until

TERMS = Welcome(heartbeat=1, idle_timeout=10, grace_time=5, patience=100)


def test_without_work_it_leaves_after_the_idle_timeout() -> None:
    timer = IdleTimer()
    timer.note(0.0, idle=True, connected=True)
    timer.note(9.0, idle=True, connected=True)
    assert timer.ends(TERMS) == 10.0
    assert timer.reason_to_leave(9.9, TERMS) is None
    assert timer.reason_to_leave(10.0, TERMS) is Leaving.IDLE


def test_work_starts_the_wait_anew() -> None:
    timer = IdleTimer()
    timer.note(0.0, idle=True, connected=True)
    timer.note(5.0, idle=False, connected=True)
    assert timer.ends(TERMS) == math.inf
    assert timer.reason_to_leave(1000.0, TERMS) is None
    timer.note(7.0, idle=True, connected=True)
    assert timer.ends(TERMS) == 17.0


def test_without_the_daemon_its_patience_counts() -> None:
    timer = IdleTimer()
    timer.note(0.0, idle=True, connected=True)
    timer.note(8.0, idle=True, connected=False)
    assert timer.reason_to_leave(50.0, TERMS) is None
    assert timer.reason_to_leave(108.0, TERMS) is Leaving.ALONE
    timer.note(50.0, idle=True, connected=True)
    assert timer.ends(TERMS) == 60.0


def test_the_last_seconds_of_a_pilot() -> None:
    assert leave_at(100.0, 60.0) == 100.0 - LAST_SECONDS
    assert leave_at(100.0, 1.0) == 99.0
    assert leave_at(math.inf, 10.0) == math.inf
    assert grace_left(97.0, 100.0, 10.0) == 3.0
    assert grace_left(0.0, math.inf, 10.0) == 10.0
    assert grace_left(200.0, 100.0, 10.0) == 0.0


def test_news_are_reported_soon_and_heartbeats_in_time(tasks: WorkerTasks) -> None:
    reporter = Reporter(tasks, heartbeat=10.0)
    assert reporter.next_due(0.0) <= 0.0
    assert reporter.compose(100.0).free_processors == 2
    assert reporter.next_due(100.0) == 110.0
    tasks.accept(Lease(KEY, ["/bin/true"], 0.0))
    assert reporter.next_due(101.0) == reporter.next_due(101.0 + GAP / 2) == 101.0 + GAP
    start(tasks)
    report = reporter.compose(101.0)
    assert (report.started, report.free_processors, report.queued, report.load) == ([KEY], 1, 0, [])
    assert reporter.next_due(101.0) == 111.0
    tend_until(tasks, lambda: tasks.outbox.has_unsent)
    report = reporter.compose(102.0)
    assert [result.ending for result in report.results] == [Ending.EXITED]
    assert (report.started, report.free_processors) == ([], 2)


def test_a_result_goes_at_once_with_its_start_unless_others_wait_behind_it(tasks: WorkerTasks) -> None:
    reporter = Reporter(tasks, heartbeat=10.0)
    reporter.compose(100.0)
    tasks.accept(Lease(KEY, ["/bin/true"], 0.0))
    start(tasks)
    tend_until(tasks, lambda: tasks.outbox.has_unsent)
    now = 100.0 + GAP / 10
    assert reporter.next_due(now) == now
    tasks.accept(Lease(msgspec.structs.replace(KEY, task=KEY.task + 1), ["/bin/true"], 0.0))
    assert reporter.next_due(now) == 100.0 + GAP
    report = reporter.compose(now)
    assert (report.started, [result.key for result in report.results]) == ([KEY], [KEY])


def test_a_worker_that_leaves_offers_no_room(tasks: WorkerTasks) -> None:
    report = Reporter(tasks, heartbeat=10.0).compose(0.0, leaving=True)
    assert (report.free_processors, report.free_memory, report.queued) == (0, 0, 0)
