"""The files of queued attempts are opened ahead of their starts where attempts are short."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

from adaptor.protocol.messages import AttemptKey, BagContext, Ending, Lease
from adaptor.worker import tasks as tasks_module
from adaptor.worker.openings import AHEAD
from adaptor.worker.tasks import WorkerTasks
from tests.worker.attempts import start, tend_until, turn

MANY = 2 * AHEAD


def accept(tasks: WorkerTasks, command: str) -> list[AttemptKey]:
    keys = [AttemptKey(1, n, 1) for n in range(1, MANY + 1)]
    for key in keys:
        tasks.accept(Lease(key, command, 0.0))
    return keys


def one_ends(tasks: WorkerTasks, bag: BagContext) -> None:
    """Two start, one of them ends, and the next one starts."""
    accept(tasks, f"until mkdir {bag.cwd}/taken || test -e {bag.cwd}/over; do sleep 0.01; done 2>/dev/null")
    start(tasks)
    tend_until(tasks, lambda: len(tasks.outbox) == 1)
    start(tasks)


def names(bag: BagContext) -> set[str]:
    return {path.name for path in Path(bag.output).iterdir()}


def descriptors() -> set[str]:
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # of the look itself, and of other threads
            found.add(os.readlink(link))
    return found


def test_every_attempt_has_its_own_output(tasks: WorkerTasks, bag: BagContext) -> None:
    for key in accept(tasks, "unused"):
        tasks.give_back(key)
    for n in range(1, MANY + 1):
        tasks.accept(Lease(AttemptKey(1, n, 2), f"echo {n}", 0.0))
    limit = time.monotonic() + 20
    while len(tasks.outbox) < 2 * MANY:
        assert time.monotonic() < limit
        turn(tasks)
        tasks.start(time.monotonic())
        tasks.tidy()
    assert {name: Path(bag.output, name).read_text() for name in names(bag)} == {
        f"{n}.2.out": f"{n}\n" for n in range(1, MANY + 1)
    }


def test_what_was_opened_for_attempts_that_go_back_is_closed_and_removed(
    tasks: WorkerTasks, bag: BagContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks_module, "_SHORT", 60.0)
    one_ends(tasks, bag)
    tend_until(tasks, lambda: len(names(bag)) >= AHEAD)
    tasks.return_queue()
    tend_until(tasks, lambda: tasks.tidy() or len(names(bag)) == 4)  # those of the two that run
    opened = {path for path in descriptors() if path.startswith(bag.output)}
    assert opened == set()
    assert [result.ending for result in tasks.outbox.results()].count(Ending.RETURNED) == MANY - 3
    Path(bag.cwd, "over").touch()
    tend_until(tasks, lambda: tasks.idle)


def test_nothing_is_opened_ahead_where_attempts_take_longer(
    tasks: WorkerTasks, bag: BagContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks_module, "_SHORT", 0.0)
    one_ends(tasks, bag)
    tasks.tidy()
    assert len(names(bag)) == 4
    tasks.return_queue()
    Path(bag.cwd, "over").touch()
    tend_until(tasks, lambda: tasks.idle)


def test_a_folder_that_was_missing_ahead_may_be_there_at_the_start(
    tasks: WorkerTasks, bag: BagContext
) -> None:
    """The first two make what the others start in, as they could without anything opened ahead."""
    made = f"{bag.cwd}/made"
    for n in range(1, MANY + 1):
        first = n <= 2
        command = f"mkdir -p {made}" if first else "true"
        tasks.accept(Lease(AttemptKey(1, n, 1), command, 0.0, cwd=None if first else made))
    tasks.runner.prepare(tasks.slots.queue.values())
    tend_until(tasks, lambda: (Path(bag.output) / "2.out").exists())
    limit = time.monotonic() + 20
    while len(tasks.outbox) < MANY:
        assert time.monotonic() < limit
        turn(tasks)
        tasks.start(time.monotonic())
    assert {result.ending for result in tasks.outbox.results()} == {Ending.EXITED}
