"""The tasks of a worker: a shortage of processes, and failures that the end of the pilot explains."""

from __future__ import annotations

import os
import time
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.processes.identity import Process
from adaptor.processes.trees import trees_of
from adaptor.protocol.messages import AttemptKey, Ending, Lease, Result
from adaptor.worker.tasks import CHUNK, Outbox, WorkerTasks, is_suspect
from tests.worker.attempts import failing, start, tend_until

FAILED = Result(AttemptKey(1, 1, 1), Ending.SIGNALLED, signal=15)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (FAILED, True),
        (Result(AttemptKey(1, 1, 1), Ending.EXITED, exit_code=1), True),
        (Result(AttemptKey(1, 1, 1), Ending.EXITED, exit_code=0), False),
        (Result(AttemptKey(1, 1, 1), Ending.ENDED, signal=15), False),
        (Result(AttemptKey(1, 1, 1), Ending.ABORTED, signal=15), False),
    ],
)
def test_only_failures_are_suspect(result: Result, expected: bool) -> None:
    assert is_suspect(result) is expected


def failed(tasks: WorkerTasks) -> float:
    """An attempt fails; returns monotonic seconds before its end was seen."""
    tasks.accept(Lease(FAILED.key, ["/bin/false"], 0.0))
    start(tasks)
    before = time.monotonic()
    tend_until(tasks, lambda: not tasks.slots.running)
    return before


def test_a_failure_counts_after_a_moment(tasks: WorkerTasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptor.worker.tasks.MOMENT", 1000.0)
    before = failed(tasks)
    tasks.timers.run(before + 999.0)
    assert not tasks.outbox.has_unsent
    assert tasks.holding == tasks.running == [FAILED.key], "the daemon must not give it to another worker"
    assert not tasks.idle
    tasks.timers.run(time.monotonic() + 1000.0)
    assert [result.ending for result in tasks.outbox.results()] == [Ending.EXITED]
    assert tasks.idle


def test_the_end_of_the_pilot_explains_it(tasks: WorkerTasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptor.worker.tasks.MOMENT", 1000.0)
    failed(tasks)
    tasks.end_all(time.monotonic(), time.monotonic())
    (explained,) = tasks.outbox.results()
    assert (explained.ending, explained.exit_code) == (Ending.ENDED, 1)
    tasks.timers.run(time.monotonic() + 2000.0)
    assert len(tasks.outbox) == 1


def test_a_shortage_is_waited_out(tasks: WorkerTasks, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        tasks.accept(Lease(AttemptKey(1, number, 1), ["/bin/true"], 0.0))
    monkeypatch.setattr("adaptor.worker.tasks._PAUSE", 60.0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_spawn", failing(BlockingIOError(11, "Resource temporarily unavailable")))
        start(tasks)
    assert {key.task for key in tasks.slots.queue} == {1, 2}  # in the order in which their files were open
    start(tasks)
    assert not tasks.started
    tasks.timers.run(time.monotonic() + 60.0)
    start(tasks)
    assert {key.task for key in tasks.started} == {1, 2}
    tend_until(tasks, lambda: len(tasks.outbox) == 2)
    assert tasks.idle


def test_one_look_at_the_processes_does_for_all_attempts_of_an_order(
    tasks: WorkerTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading all of /proc takes milliseconds, and a cancelled bag may have hundreds of attempts here."""
    keys = [AttemptKey(1, number, 1) for number in range(1, 4)]
    for key in keys:
        tasks.accept(Lease(key, ["/bin/sleep", "300"], 0.0))
    start(tasks)
    running = list(tasks.slots.running)
    looks = []

    def counted(leaders: Collection[int]) -> dict[int, list[Process]]:
        looks.append(len(leaders))
        return trees_of(leaders)

    monkeypatch.setattr("adaptor.worker.runner.trees_of", counted)
    tasks.abort([*keys, AttemptKey(1, 99, 1)], time.monotonic() + 60)
    assert looks == [len(running)] == [2]
    tend_until(tasks, lambda: not tasks.slots.running)
    ended = [result.key for result in tasks.outbox.results() if result.ending is Ending.ABORTED]
    assert set(ended) == set(running)


def result(task: int) -> Result:
    return Result(AttemptKey(1, task, 1), Ending.EXITED, exit_code=0)


def tasks_of(results: list[Result]) -> list[int]:
    return [each.key.task for each in results]


def test_a_result_is_sent_once_and_again_when_nobody_answers() -> None:
    outbox = Outbox()
    outbox.add(result(1))
    assert tasks_of(outbox.batch(0.0, again_after=3.0)) == [1]
    assert not outbox.has_unsent
    assert outbox.batch(2.9, again_after=3.0) == []
    assert tasks_of(outbox.batch(3.0, again_after=3.0)) == [1]
    assert outbox.batch(4.0, again_after=3.0) == []
    outbox.acknowledge([AttemptKey(1, 1, 1), AttemptKey(9, 9, 9)])
    assert not outbox
    assert outbox.batch(100.0, again_after=3.0) == []


def test_a_backlog_goes_in_chunks() -> None:
    outbox = Outbox()
    for n in range(2 * CHUNK + 1):
        outbox.add(result(n))
    sizes = [len(outbox.batch(0.0, 3.0)) for _ in range(4)]
    assert sizes == [CHUNK, CHUNK, 1, 0]
    assert len(outbox) == 2 * CHUNK + 1


def test_everything_counts_as_sent() -> None:
    outbox = Outbox()
    outbox.add(result(1))
    outbox.batch(0.0, 3.0)
    outbox.add(result(2))
    assert tasks_of(outbox.everything(2.0)) == [1, 2]
    assert not outbox.has_unsent
    assert outbox.batch(4.0, 3.0) == []
    assert tasks_of(outbox.batch(5.0, 3.0)) == [1, 2]


@given(st.lists(st.tuples(st.sampled_from(["add", "batch", "all", "ack"]), st.integers(0, 5)), max_size=50))
def test_what_was_added_and_not_acknowledged_is_kept(actions: list[tuple[str, int]]) -> None:
    outbox, kept = Outbox(), set()
    for now, (action, n) in enumerate(actions):
        if action == "add":
            outbox.add(result(n))
            kept.add(n)
        elif action == "batch":
            assert set(tasks_of(outbox.batch(now, 3.0))) <= kept
        elif action == "all":
            assert set(tasks_of(outbox.everything(now))) == kept
        else:
            outbox.acknowledge([AttemptKey(1, n, 1)])
            kept.discard(n)
        assert set(tasks_of(outbox.results())) == kept
        assert {n for n in range(6) if AttemptKey(1, n, 1) in outbox} == kept
        assert len(outbox) == len(outbox.results())
