"""Output files are opened by a thread of each folder, ahead of their starts where attempts are short."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from adaptor.bag_spec import Bundle
from adaptor.protocol.messages import AttemptKey, BagContext, Ending, Lease
from adaptor.worker import openings
from adaptor.worker import tasks as tasks_module
from adaptor.worker.openings import AHEAD
from adaptor.worker.output import LONGEST, CannotStartError, OutputFolder, TaskFiles
from adaptor.worker.slots import HeldTask
from adaptor.worker.tasks import WorkerTasks
from adaptor.worker.timers import Timers
from tests.living import PATIENCE
from tests.worker.attempts import start, tend_until, turn

HUNG = AttemptKey(1, 1, 1)
FINE = AttemptKey(2, 1, 1)


class Hang:
    """Keeps the files of one output folder from being opened until it is over."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.over = threading.Event()
        self.closed: list[TaskFiles] = []


@pytest.fixture
def hang(bag: BagContext, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hang]:
    made = Hang(bag.output)
    really, really_close = OutputFolder.open, TaskFiles.close

    def open(self: OutputFolder, held: HeldTask) -> TaskFiles:
        if held.bag.output == made.path:
            made.over.wait()
        return really(self, held)

    def close(self: TaskFiles) -> None:
        really_close(self)
        made.closed.append(self)

    monkeypatch.setattr(OutputFolder, "open", open)
    monkeypatch.setattr(TaskFiles, "close", close)
    yield made
    made.over.set()


@pytest.fixture
def two_bags(tasks: WorkerTasks, bag: BagContext, tmp_path: Path, hang: Hang) -> WorkerTasks:
    """The task of the first bag waits for its file system, the one of the second was started."""
    tasks.know(msgspec.structs.replace(bag, bag=2, output=str(tmp_path / "fine")))
    tasks.accept(Lease(HUNG, "echo done", 0.0))
    tasks.accept(Lease(FINE, "echo done", 0.0))
    tasks.start(time.monotonic())
    tend_until(tasks, lambda: tasks.started)
    return tasks


def test_the_others_go_on_and_it_starts_when_its_file_system_answers(
    two_bags: WorkerTasks, bag: BagContext, hang: Hang
) -> None:
    assert two_bags.started == two_bags.running == [FINE]
    assert set(two_bags.holding) == {HUNG, FINE}
    tend_until(two_bags, lambda: FINE in two_bags.outbox)
    hang.over.set()
    tend_until(two_bags, lambda: HUNG in two_bags.outbox)
    assert two_bags.started == [FINE, HUNG]
    assert Path(bag.output, "1.out").read_text() == "done\n"
    assert two_bags.idle


def test_it_fails_after_a_while_and_says_where(two_bags: WorkerTasks, bag: BagContext, hang: Hang) -> None:
    turn(two_bags, time.monotonic() + LONGEST)
    (result,) = (each for each in two_bags.outbox.results() if each.key == HUNG)
    assert result.ending is Ending.NOT_STARTED
    assert f"{bag.output}: the task's folder or its output folder could not be opened" in (result.error or "")
    hang.over.set()
    tend_until(two_bags, lambda: len(hang.closed) == 2, LONGEST)  # what was opened too late is closed


def test_a_copy_of_what_a_bag_stages_is_waited_for_longer(bag: BagContext, hang: Hang) -> None:
    timers = Timers()
    many = openings.Openings(timers)
    staging = msgspec.structs.replace(bag, bundle=Bundle("digest", (), 0, 0))
    held = HeldTask(Lease(HUNG, "true", 0.0), staging)
    now = time.monotonic()
    assert many.open(held, now) is None
    timers.run(now + LONGEST)
    assert not many.ready()
    timers.run(now + openings.LONGEST_STAGING)
    assert many.ready() == [HUNG]
    with pytest.raises(
        CannotStartError, match="or what it stages was not copied: the file system has not answered"
    ):
        many.open(held, now)


@pytest.mark.parametrize("leaving", [True, False])
def test_it_goes_back_uncharged_when_it_is_no_longer_wanted(
    two_bags: WorkerTasks, bag: BagContext, hang: Hang, leaving: bool
) -> None:
    if leaving:
        two_bags.end_all(time.monotonic(), time.monotonic())
    else:
        two_bags.abort([HUNG], time.monotonic())
    (result,) = (each for each in two_bags.outbox.results() if each.key == HUNG)
    assert result.ending is Ending.RETURNED
    tend_until(two_bags, lambda: two_bags.idle)


def test_a_folder_that_hangs_is_not_waited_for(bag: BagContext, hang: Hang) -> None:
    many = openings.Openings(Timers())
    keys = [AttemptKey(1, n, 1) for n in range(200)]
    held = {key: HeldTask(Lease(key, "true", 0.0), bag) for key in keys}
    assert [many.open(each, time.monotonic()) for each in held.values()] == [None] * 200
    hang.over.set()
    found: list[AttemptKey] = []
    limit = time.monotonic() + PATIENCE
    while len(found) < 200:
        assert select.select([many.fd], [], [], limit - time.monotonic())[0], "the worker sleeps on"
        for ready in many.ready():
            files = many.open(held[ready], time.monotonic())
            assert files is not None
            files.close()
            found.append(ready)
    assert found == keys


def test_output_that_cannot_be_settled_is_waited_for_once(
    bag: BagContext, hang: Hang, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each result would be late by a moment otherwise."""
    monkeypatch.setattr(openings, "MOMENT", 0.01)
    many = openings.Openings(Timers())
    held = HeldTask(Lease(HUNG, "true", 0.0), bag)
    many.open(held, time.monotonic())
    many.ended(held, alone=True)
    many.tidy()
    monkeypatch.setattr(openings, "MOMENT", threading.TIMEOUT_MAX)
    many.ended(held, alone=True)
    many.tidy()


def test_work_is_done_in_order_also_by_the_threads_after_the_first(
    bag: BagContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle thread ends, and the next work starts another."""
    monkeypatch.setattr(openings, "_IDLE", 0.01)
    monkeypatch.setattr(openings, "MOMENT", 20.0)
    others = set(threading.enumerate())
    many = openings.Openings(Timers())
    for n in range(3):
        held = HeldTask(Lease(AttemptKey(1, n, 1), "true", 0.0), bag)
        while (files := many.open(held, time.monotonic())) is None:
            assert select.select([many.fd], [], [], 20)[0]
            many.ready()
        files.close()
        many.ended(held, alone=True)
        many.tidy()
        assert not list(Path(bag.output).iterdir())
        for thread in set(threading.enumerate()) - others:
            thread.join(PATIENCE)


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
    limit = time.monotonic() + PATIENCE
    while len(tasks.outbox) < 2 * MANY:
        assert time.monotonic() < limit
        turn(tasks)
        tasks.start(time.monotonic())
        tasks.openings.tidy()
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
    tend_until(tasks, lambda: tasks.openings.tidy() or len(names(bag)) == 4)  # those of the two that run
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
    tasks.openings.tidy()
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
    tasks.runner.open_ahead(tasks.slots.queue.values())
    tend_until(tasks, lambda: (Path(bag.output) / "2.out").exists())
    limit = time.monotonic() + PATIENCE
    while len(tasks.outbox) < MANY:
        assert time.monotonic() < limit
        turn(tasks)
        tasks.start(time.monotonic())
    assert {result.ending for result in tasks.outbox.results()} == {Ending.EXITED}
