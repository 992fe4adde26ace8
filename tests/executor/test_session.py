"""A session over a bag in memory: what comes in an odd order, cancels, and a daemon that goes."""

from __future__ import annotations

import contextlib
import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, wait
from pathlib import Path
from typing import Any, cast

import pytest

import adaptor
from adaptor.api import Add, BagEvents, TaskEvent, TaskInput
from adaptor.client.bags import Client
from adaptor.errors import AdaptorError, NoDaemonError
from adaptor.executor.pickling import LARGE, CallError, file_of, task_of
from adaptor.executor.resources import CallTerms
from adaptor.executor.session import CallFuture, Session
from adaptor.protocol.messages import UNPREPARED, VALUE
from tests.living import until

SOON = 60.0
"""Seconds for what must happen, on a busy machine too."""


class FakeBag:
    """Stands for the daemon. `may_append`, `may_end`: what it waits for before it answers."""

    def __init__(self, folder: Path) -> None:
        """`folder`: for large calls and results."""
        self.folder = folder
        self.may_append, self.may_end = threading.Event(), threading.Event()
        self.heard_end = threading.Event()
        self.appended: list[TaskInput] = []
        self.posted: list[Add] = []
        self.enough: set[int] = set()
        self.cancelled: set[int] = set()
        self.started: set[int] = set()
        self.cancelled_whole = False
        self.gone = False
        self.refuses = False
        """Whether it is gone for the one who appends, and whoever follows does not hear of it."""
        self._closed = threading.Event()
        self._told = 0
        self._news = threading.Condition()

    def __enter__(self) -> FakeBag:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def poster(self) -> Callable[[Add], None]:
        return self.posted.append

    def ask(self, question: Add) -> None:
        if self.gone or self.refuses:
            raise NoDaemonError("it has gone")
        with self._news:
            assert question.first == len(self.appended)
            self.appended += question.tasks
            self._news.notify_all()
        assert self.may_append.wait(SOON)

    def cancel(
        self,
        bag: int,
        tasks: Sequence[int] | None = None,
        *,
        unstarted: bool = False,
        enough: bool = False,
    ) -> int:
        if tasks is None:
            self.cancelled_whole = True
            return 0
        self.enough |= set(tasks) if enough else set()
        fresh = set(tasks) - (self.started if unstarted else set()) - self.cancelled
        self.cancelled |= fresh
        return len(fresh)

    def close_bag(self, bag: int) -> None:
        with self._news:
            self._closed.set()
            self._news.notify_all()

    def follow(self, bag: int) -> Iterator[BagEvents]:
        while True:
            with self._news:
                done = self._news.wait_for(
                    lambda: self._told < len(self.appended) or self._closed.is_set() or self.gone, SOON
                )
            assert done
            if self._told < len(self.appended):
                assert self.may_end.wait(SOON)
            if self.gone:
                raise NoDaemonError("it has gone")
            tasks = [self._event(number) for number in range(self._told, len(self.appended))]
            self._told = len(self.appended)
            yield self._events(tasks)
            self.heard_end.set()
            if self._closed.is_set() and self._told == len(self.appended):
                return

    def go(self) -> None:
        """The daemon ends and does not come back."""
        with self._news:
            self.gone = True
            self._news.notify_all()

    def _event(self, number: int) -> TaskEvent:
        state = "cancelled" if number in self.cancelled else "done"
        payload = self.appended[number].call or b""
        file = file_of(payload)
        function, args, kwargs = pickle.loads((self.folder / file).read_bytes() if file else payload[1:])
        value = function(*args, **kwargs)
        answer = value if isinstance(value, bytes) else VALUE + pickle.dumps(value)
        if len(answer) > LARGE:
            (self.folder / "answer").write_bytes(answer[1:])
            answer = VALUE.upper() + b"answer"
        return TaskEvent(number, number, state, 1, 0, None, None, 0.0, 0.0, None, answer)

    def _events(self, tasks: list[TaskEvent]) -> BagEvents:
        counts = {"done": 0, "failed": 0, "cancelled": 0, "total": 0, "last": 0, "bag": 1}
        return BagEvents(**counts, more=False, open=True, ended=False, output="", tasks=tasks)


@pytest.fixture
def bag(tmp_path: Path) -> FakeBag:
    return FakeBag(tmp_path / "out")


@pytest.fixture
def session(bag: FakeBag) -> Iterator[Session]:
    made = Session(lambda: cast(Client, bag), 1, "key", bag.folder)
    yield made
    bag.may_append.set()
    bag.may_end.set()
    made.close()
    made.wait()


def submit(session: Session, *call: Any) -> CallFuture[Any]:
    future: CallFuture[Any] = CallFuture(session.cancel)
    session.submit(future, task_of("f", (call[0], call[1:], {}), session.folder, CallTerms()))
    return future


def test_a_result_counts_before_its_call_is_written_down_for_good(bag: FakeBag, session: Session) -> None:
    future = submit(session, abs, -7)
    bag.may_end.set()
    assert future.result(SOON) == 7
    assert not bag.may_append.is_set()


def test_a_call_alone_leaves_at_once_and_others_together(bag: FakeBag, session: Session) -> None:
    until(lambda: session._post is not None, "its thread is there", pause=0.01)
    for _ in range(4):
        submit(session, int)
    assert [len(question.tasks) for question in bag.posted] == [1]
    bag.may_append.set()
    until(lambda: len(bag.appended) == 4, "the others have left too", pause=0.01)
    bag.may_end.set()


def test_each_future_gets_its_own_result(bag: FakeBag, session: Session) -> None:
    bag.may_append.set()
    bag.may_end.set()
    futures = [submit(session, divmod, n, 7) for n in range(500)]
    assert [future.result(SOON) for future in futures] == [divmod(n, 7) for n in range(500)]


def test_large_calls_and_results_go_by_files_that_do_not_stay(bag: FakeBag, session: Session) -> None:
    bag.may_append.set()
    text = "x" * LARGE
    future = submit(session, str.upper, text)
    until(lambda: future.task is not None, "it is numbered", pause=0.01)
    assert len(list(bag.folder.iterdir())) == 1
    bag.may_end.set()
    assert future.result(SOON) == text.upper()
    session.close()
    session.wait()
    assert not bag.folder.exists()


def test_a_call_that_was_not_sent_is_never_sent(bag: FakeBag, session: Session) -> None:
    first = submit(session, int)
    until(lambda: bag.appended, "it is on its way, and keeps the second one back", pause=0.01)
    second = submit(session, int)
    assert second.cancel()
    assert second.cancelled()
    bag.may_append.set()
    bag.may_end.set()
    assert first.result(SOON) == 0
    session.close()
    session.wait()
    assert len(bag.appended) == 1


def test_only_what_has_not_started_is_cancelled(bag: FakeBag, session: Session) -> None:
    bag.may_append.set()
    futures = [submit(session, int) for _ in range(3)]
    until(lambda: all(future.task is not None for future in futures), "all are numbered", pause=0.01)
    bag.started.add(0)
    assert [future.cancel() for future in futures] == [False, True, True]
    assert futures[1].cancel()
    bag.may_end.set()
    assert futures[0].result(SOON) == 0
    with pytest.raises(CancelledError):
        futures[2].result(SOON)
    assert wait(futures, SOON).not_done == set()


def test_the_end_of_the_daemon_is_that_of_all_futures(bag: FakeBag, session: Session) -> None:
    bag.may_append.set()
    future = submit(session, int)
    bag.go()
    bag.may_end.set()
    with pytest.raises(BrokenExecutor, match="it has gone"):
        future.result(SOON)
    with pytest.raises((BrokenExecutor, RuntimeError)):
        submit(session, int)


@pytest.mark.parametrize("who", ["sender", "receiver"])
def test_it_is_that_of_calls_on_their_way_too(bag: FakeBag, session: Session, who: str) -> None:
    if who == "sender":
        bag.refuses = True
    future = submit(session, int)
    if who == "receiver":
        until(lambda: bag.appended, "it is on its way", pause=0.01)
        bag.go()
        bag.may_end.set()
    with pytest.raises(BrokenExecutor, match="it has gone"):
        future.result(SOON)
    bag.go()


def test_close_with_cancel_leaves_what_has_started(bag: FakeBag, session: Session) -> None:
    bag.may_append.set()
    futures = [submit(session, int) for _ in range(5)]
    until(lambda: all(future.task is not None for future in futures), "all are numbered", pause=0.01)
    bag.started.add(2)
    session.close(cancel=True)
    bag.may_end.set()
    session.wait()
    assert [future.cancelled() for future in futures] == [True, True, False, True, True]
    with pytest.raises(RuntimeError, match="after shutdown"):
        submit(session, int)


def test_what_runs_is_ended_too_if_asked(bag: FakeBag, session: Session) -> None:
    bag.may_append.set()
    futures = [submit(session, int) for _ in range(3)]
    until(lambda: all(future.task is not None for future in futures), "all are numbered", pause=0.01)
    bag.started |= {0, 1}
    session.abort(futures[:2])
    assert [future.cancelled() for future in futures] == [True, True, False]
    assert bag.cancelled == {0, 1}
    bag.may_end.set()
    assert futures[2].result(SOON) == 0


def test_calls_that_have_done_enough_are_cancelled_here_first(bag: FakeBag, session: Session) -> None:
    """The daemon says that they are done, and has no result of theirs."""
    bag.may_append.set()
    future = submit(session, int)
    until(lambda: future.task is not None, "it is numbered", pause=0.01)
    session.abort([future], enough=True)
    bag.may_end.set()
    assert future.cancelled()
    assert bag.enough == {0}


class Exits:
    """Ends the program that unpickles it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return sys.exit, (3,)


def test_a_result_that_ends_whoever_unpickles_it_fails_alone(bag: FakeBag, session: Session) -> None:
    bag.may_append.set()
    bag.may_end.set()
    bad, good = submit(session, Exits), submit(session, abs, -7)
    with pytest.raises(CallError, match="cannot be unpickled: SystemExit"):
        bad.result(SOON)
    assert good.result(SOON) == 7


def test_a_callback_that_ends_the_thread_leaves_no_future_waiting(bag: FakeBag, session: Session) -> None:
    bag.may_append.set()
    first, second = submit(session, int), submit(session, int)
    first.add_done_callback(lambda _future: sys.exit(3))
    bag.may_end.set()
    assert first.result(SOON) == 0
    with contextlib.suppress(BrokenExecutor):
        assert second.result(SOON) == 0


def test_an_initializer_that_raises_breaks_the_executor(bag: FakeBag, session: Session) -> None:
    bag.may_append.set()
    texts = ("ValueError", "ValueError: seven", "line 1")
    futures = [submit(session, bytes, UNPREPARED + pickle.dumps(texts)) for _ in range(3)]
    bag.may_end.set()
    for future in futures:
        with pytest.raises(BrokenExecutor, match="the initializer failed: ValueError: seven"):
            future.result(SOON)
    with pytest.raises(BrokenExecutor):
        submit(session, int)
    session.wait()
    assert bag.cancelled_whole


def test_a_task_starts_no_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADAPTOR_TASK_ID", "3")
    monkeypatch.setenv("ADAPTOR_DIR", str(tmp_path / "state"))
    with pytest.raises(AdaptorError, match="a task starts none"):
        adaptor.Executor()
    assert not list((tmp_path / "state").iterdir())
