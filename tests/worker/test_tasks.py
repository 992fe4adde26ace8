"""A machine without room for one more process, and a C library that cannot start sessions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adaptor.protocol.messages import AttemptKey, BagContext, Ending, Lease
from adaptor.worker.environment import NodeEnvironment
from adaptor.worker.execution import CannotStartError, ShortageError, execute
from adaptor.worker.reporting import GAP, Reporter
from adaptor.worker.runner import Runner
from adaptor.worker.slots import Held, Slots
from adaptor.worker.tasks import Tasks

KEY = AttemptKey(1, 1, 1)


@pytest.fixture
def bag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BagContext:
    monkeypatch.chdir(tmp_path)  # what is started changes the current folder
    return BagContext(1, str(tmp_path), str(tmp_path / "out"), {"PATH": "/usr/bin:/bin"}, 1, None)


@pytest.fixture
def tasks(bag: BagContext) -> Tasks:
    made = Tasks(Slots(2, 1000, time.time() + 1000), Runner(NodeEnvironment({}, None)))
    made.know(bag)
    return made


def tend_until(tasks: Tasks, condition: Callable[[], Any]) -> None:
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit, "it did not happen in time"
        tasks.tend(time.monotonic())
        time.sleep(0.005)


def failing(error: OSError) -> Callable[..., int]:
    def spawn(*args: object, **more: object) -> int:
        raise error

    return spawn


def test_the_output_folder_may_be_made_by_another_worker_meanwhile(
    bag: BagContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    spawn = os.posix_spawn
    missed: list[int] = []

    def too_late(*args: Any, **more: Any) -> int:
        if not missed:
            missed.append(1)
            Path(bag.output).mkdir()
            raise FileNotFoundError(2, "No such file or directory")
        return spawn(*args, **more)

    monkeypatch.setattr(os, "posix_spawn", too_late)
    child = execute(Held(Lease(KEY, ["/bin/true"], 0.0), bag), {})
    assert os.waitpid(child.pid, 0)[1] == 0


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


def test_a_library_without_setsid_serves_too(bag: BagContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "posix_spawn", failing(NotImplementedError()))  # type: ignore[arg-type]
    child = execute(Held(Lease(KEY, "echo $0; pwd; echo $X >&2", 0.0), bag), {"X": "1", "PATH": "/bin"})
    assert os.getsid(child.pid) == child.pid
    assert os.waitpid(child.pid, 0)[1] == 0
    child.reaped()
    assert Path(bag.output, "1.out").read_text() == f"/bin/sh\n{bag.cwd}\n"
    assert Path(bag.output, "1.err").read_text() == "1\n"


def test_a_shortage_is_told_from_a_fault(bag: BagContext, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(Lease(KEY, ["/bin/true"], 0.0), bag)
    Path(bag.output).mkdir()
    monkeypatch.setattr(os, "posix_spawn", failing(OSError(12, "Cannot allocate memory")))
    with pytest.raises(ShortageError):
        execute(held, {})
    monkeypatch.setattr(os, "posix_spawn", failing(OSError(26, "Text file busy")))
    with pytest.raises(CannotStartError, match="/bin/true: cannot be executed: Text file busy"):
        execute(held, {})


def test_output_that_cannot_be_written(bag: BagContext) -> None:
    Path(bag.output, "1.out").mkdir(parents=True)
    with pytest.raises(
        CannotStartError, match=r"1\.out: the task's output cannot be written: Is a directory"
    ):
        execute(Held(Lease(KEY, ["/bin/true"], 0.0), bag), {})


def test_news_are_reported_soon_and_heartbeats_in_time(tasks: Tasks) -> None:
    reporter = Reporter(tasks, heartbeat=10.0)
    assert reporter.next_due() <= 0.0
    assert reporter.compose(100.0).free_processors == 2
    assert reporter.next_due() == 110.0
    tasks.accept(Lease(KEY, ["/bin/true"], 0.0))
    assert reporter.next_due() == 100.0 + GAP
    tasks.start(time.monotonic(), 0.0)
    report = reporter.compose(101.0)
    assert (report.started, report.free_processors, report.queued, report.load) == ([KEY], 1, 0, [])
    assert reporter.next_due() == 111.0
    tend_until(tasks, lambda: tasks.outbox.has_unsent)
    report = reporter.compose(102.0)
    assert [result.ending for result in report.results] == [Ending.EXITED]
    assert (report.started, report.free_processors) == ([], 2)


def test_a_worker_that_leaves_offers_no_room(tasks: Tasks) -> None:
    report = Reporter(tasks, heartbeat=10.0).compose(0.0, leaving=True)
    assert (report.free_processors, report.free_memory, report.queued) == (0, 0, 0)
