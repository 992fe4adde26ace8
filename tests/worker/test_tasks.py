"""The tasks of a worker: a shortage of processes, and failures that the end of the pilot explains."""

from __future__ import annotations

import os
import time
from collections.abc import Collection

import pytest

from adaptor.processes.identity import Process
from adaptor.processes.trees import trees_of
from adaptor.protocol.messages import AttemptKey, Ending, Lease, Result
from adaptor.worker.tasks import MOMENT, SuspectFailures, Tasks, is_suspect
from tests.worker.attempts import failing, tend_until

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


def test_a_failure_counts_after_a_moment() -> None:
    suspects = SuspectFailures()
    assert suspects.due() == float("inf")
    suspects.add(FAILED, 10.0)
    assert suspects.keys() == [FAILED.key]
    assert suspects.due() == 10.0 + MOMENT
    assert suspects.take_due(10.0 + MOMENT / 2) == []
    assert suspects.take_due(10.0 + MOMENT) == [FAILED]
    assert len(suspects) == 0


def test_the_end_of_the_pilot_explains_it() -> None:
    suspects = SuspectFailures()
    suspects.add(FAILED, 10.0)
    (explained,) = suspects.take_as_ended()
    assert (explained.ending, explained.signal) == (Ending.ENDED, 15)
    assert len(suspects) == 0


def test_a_shortage_is_waited_out(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    for number in (1, 2):
        tasks.accept(Lease(AttemptKey(1, number, 1), ["/bin/true"], 0.0))
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_spawn", failing(BlockingIOError(11, "Resource temporarily unavailable")))
        tasks.start(now, 0.0)
    assert [key.task for key in tasks.slots.queue] == [1, 2]
    tasks.start(now + 0.5, 0.0)
    assert not tasks.started
    tasks.start(now + 1.0, 0.0)
    assert [key.task for key in tasks.started] == [1, 2]
    tend_until(tasks, lambda: len(tasks.outbox) == 2)
    assert tasks.idle


def test_one_look_at_the_processes_does_for_all_attempts_of_an_order(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading all of /proc takes milliseconds, and a cancelled bag may have hundreds of attempts here."""
    keys = [AttemptKey(1, number, 1) for number in range(1, 4)]
    for key in keys:
        tasks.accept(Lease(key, ["/bin/sleep", "300"], 0.0))
    tasks.start(time.monotonic(), time.time() + 600)
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
