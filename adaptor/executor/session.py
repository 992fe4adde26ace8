"""One open bag of calls: a thread that sends them, and one that brings their results to the futures."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import BrokenExecutor, Future
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from adaptor.api import Add, TaskEvent, TaskInput
from adaptor.cli.daemon_process import ensure_daemon, find_daemon
from adaptor.client.bags import Client
from adaptor.client.environment import captured
from adaptor.errors import AdaptorError
from adaptor.executor import call_files
from adaptor.executor.pickling import drop, file_of, outcome_of
from adaptor.protocol.state_directory import state_directory

_starting = threading.Lock()


def ensure(sites: Collection[str] | None = None) -> None:
    """Start a daemon where none runs.

    `sites`: those of a bag that will be opened; None: no bag will be.

    Raises:
        LoginNodeError: calls would run on a login node, and no site is named.
        AdaptorError: none could be started.
    """
    if _in_task():
        if find_daemon() is None:
            raise AdaptorError(
                f"no daemon answers at {state_directory()}, and a task starts none, which would use the node"
                " outside its pilot; ADAPTOR_DIR names the daemon's state directory, which nodes must share"
            )
        return
    with _starting:  # not by two threads at once
        ensure_daemon(None, until_idle=True, sites=sites)


def client() -> Client:
    """A client that starts the daemon again where it has gone; a task waits for it instead."""
    return Client(start=None if _in_task() else ensure)


def _in_task() -> bool:
    """Whether this process is part of a task, so that its daemon may be on another machine."""
    return "ADAPTOR_TASK_ID" in os.environ


def inherited() -> dict[str, str]:
    """The environment of calls: this one's, and where their own executors find the daemon."""
    return {**captured(os.environ)[0], "ADAPTOR_DIR": str(state_directory())}


R = TypeVar("R")


class CallFuture(Future[R]):
    """A `concurrent.futures.Future` whose `cancel` asks the daemon whether the call has started."""

    def __init__(self, on_cancel: Callable[[CallFuture[Any]], bool]) -> None:
        super().__init__()
        self.task: int | None = None  # the number of its task, once it is on its way to the daemon
        self.withdrawn = False  # whether it was cancelled before it was sent
        self._ask_to_cancel = on_cancel
        self._lock = threading.Lock()
        self._notified = False  # whether those who wait know that it was cancelled, or that it has begun

    def cancel(self) -> bool:
        """Cancel the call unless it has started; returns whether it is cancelled now."""
        if self.done():
            return self.cancelled()
        return self._ask_to_cancel(self)

    def be_cancelled(self) -> None:
        if super().cancel():
            with self._lock:
                first, self._notified = not self._notified, True
            if first:
                self.set_running_or_notify_cancel()

    def begin(self) -> bool:
        """Mark the call as running before its result is set. Returns False if it was cancelled."""
        with self._lock:
            if self._notified:
                return False
            self._notified = True
            return self.set_running_or_notify_cancel()


_MOST, _MOST_BYTES = 1_000, 8 * 1024 * 1024  # calls in one message, at most
_LOOK = 1.0  # seconds between two looks whether the program has come to its end


class Session:
    """Session of an open bag, which ends once no call can join it and all have results."""

    def __init__(
        self, connect: Callable[[], Client], bag: int, key: str, folder: Path, initializer: bytes = b""
    ) -> None:
        """
        Args:
            connect: makes a client.
            key: by which the bag was opened.
            folder: where the files of long calls and results are.
            initializer: of the bag's interpreter; its file is removed at the end.
        """
        self.bag = bag
        self._key = key
        self.folder = folder
        self._connect = connect
        self._initializer = initializer
        self._news = threading.Condition()
        self._unsent: deque[tuple[CallFuture[Any], TaskInput]] = deque()
        self._batch: Add | None = None  # calls that the daemon has not answered yet
        self._post: Callable[[Add], None] | None = None
        """Sends a batch ahead of the thread that waits for the answer."""
        self._sent: dict[int, tuple[CallFuture[Any], str]] = {}
        """Future and file of the call of each task."""
        self._next = 0  # the number of the next task: no other program appends to the bag
        self._closing = False
        self._broken: BaseException | None = None
        self._threads = [
            threading.Thread(target=run, name=f"adaptor {name} {bag}", daemon=False)
            for name, run in (("sends", self._send_all), ("receives", self._receive_all))
        ]
        for thread in self._threads:
            thread.start()

    # --- for the threads of its user ------------------------------------------------------------

    def submit(self, future: CallFuture[Any], task: TaskInput) -> None:
        """Queue a call. Raises BrokenExecutor, or RuntimeError: the session takes no more calls."""
        with self._news:
            if self._broken is not None:
                raise BrokenExecutor(str(self._broken)) from self._broken
            if self._closing:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._unsent.append((future, task))
            if self._post is not None and self._batch is None and (batch := self._take()) is not None:
                self._batch = batch
                self._post(batch)  # it leaves without a change of threads
            self._news.notify_all()

    def cancel(self, future: CallFuture[Any]) -> bool:
        """Cancel a call unless it has started; returns whether it is cancelled now."""
        numbers = self._withdraw([future])
        if numbers and not self._cancel_waiting(numbers):
            return future.cancelled()
        future.be_cancelled()
        return True

    def cancel_all(self, futures: Iterable[CallFuture[Any]]) -> None:
        """Cancel many calls unless they have started; their futures tell what came of it."""
        many = [future for future in futures if not future.done()]
        numbers = self._withdraw(many)
        for future in many:
            if future.withdrawn:
                future.be_cancelled()
        if numbers:
            self._cancel_waiting(numbers)

    def abort(self, futures: Iterable[CallFuture[Any]], *, enough: bool = False) -> None:
        """Cancel many, and end those that run. `enough`: their tasks are done with that."""
        many = [future for future in futures if not future.done()]
        numbers = self._withdraw(many)
        if enough:  # before the daemon says that they are done, without a result
            for future in many:
                future.be_cancelled()
        if numbers:
            with self._connect() as client:
                client.cancel(self.bag, numbers, enough=enough)
        for future in many:
            future.be_cancelled()

    def close(self, *, cancel: bool = False) -> None:
        """Take no more calls; `cancel`: and cancel those that have not started."""
        with self._news:
            futures = self._open_futures()
        if cancel:
            self.cancel_all(futures)
        with self._news:
            self._closing = True
            self._news.notify_all()

    def wait(self) -> None:
        """Wait until all calls have ended."""
        for thread in self._threads:
            thread.join()

    def _open_futures(self) -> list[CallFuture[Any]]:
        """All without a result; the caller holds the lock."""
        return [future for future, _ in (*self._unsent, *self._sent.values())]

    def _withdraw(self, futures: Sequence[CallFuture[Any]]) -> list[int]:
        """Keep those from being sent that are not sent yet; returns the tasks of the others."""
        with self._news:
            for future in futures:
                future.withdrawn = future.task is None
            numbers = [future.task for future in futures if future.task is not None]
            self._news.wait_for(
                lambda: self._broken or self._batch is None or max(numbers, default=-1) < self._batch.first
            )
        return numbers

    def _cancel_waiting(self, tasks: list[int]) -> int:
        """The number of tasks that are cancelled by it."""
        with self._connect() as client:
            return client.cancel(self.bag, tasks, unstarted=True)

    # --- sending --------------------------------------------------------------------------------

    def _send_all(self) -> None:
        try:
            with self._connect() as client:
                self._post = client.poster()
                while (batch := self._next_batch()) is not None:
                    client.ask(batch)
                    del batch  # the next one may be long in coming
                    with self._news:
                        self._batch = None
                        self._news.notify_all()
                client.close_bag(self.bag)
        except BaseException as error:
            self._break(error)

    def _next_batch(self) -> Add | None:
        """Calls that have come together, once there are any; None: no more will come."""
        with self._news:
            while True:
                self._batch = self._batch or self._take()
                if self._batch is not None or self._closing:
                    return self._batch
                self._news.wait(_LOOK)
                if not threading.main_thread().is_alive():  # the program ends when its calls have ended
                    self._closing = True

    def _take(self) -> Add | None:
        """Number what has come together; None: there is nothing."""
        calls: list[TaskInput] = []
        room = _MOST_BYTES
        while self._unsent and len(calls) < _MOST and room > 0:
            future, task = self._unsent.popleft()
            if not future.withdrawn:
                future.task = self._next + len(calls)
                self._sent[future.task] = (future, file_of(task.call))
                calls.append(task)
                room -= len(task.call or b"") + sum(map(len, chain(*(task.environment or {}).items())))
            elif file := file_of(task.call):
                call_files.remove(self.folder, file)
        first, self._next = self._next, self._next + len(calls)
        return Add(self.bag, self._key, first, calls) if calls else None

    # --- receiving ------------------------------------------------------------------------------

    def _receive_all(self) -> None:
        try:
            with self._connect() as client:
                for told in client.follow(self.bag):
                    for event in told.tasks:
                        if event.state in ("done", "failed", "cancelled"):
                            self._settle(event)
                    if self._broken is not None:
                        client.cancel(self.bag)
                        break
            if file := file_of(self._initializer):
                call_files.remove(self.folder, file)
            call_files.remove_folder(self.folder)
        except BaseException as error:
            self._break(error)

    def _settle(self, event: TaskEvent) -> None:
        with self._news:
            future, file = self._sent.pop(event.task, (None, ""))
        if future is None:
            return
        if file:
            call_files.remove(self.folder, file)
        if event.state == "cancelled":
            future.be_cancelled()
        elif not future.begin():
            drop(event.answer, self.folder)
        else:
            outcome = outcome_of(self.bag, event, self.folder)
            if outcome.error is not None:
                future.set_exception(outcome.error)
            else:
                future.set_result(outcome.value)
            if outcome.broken and outcome.error is not None:
                self._break(outcome.error)

    def _break(self, error: BaseException) -> None:
        """Fail all futures with the error, as no more results can come."""
        with self._news:
            self._broken, self._closing = error, True
            futures = self._open_futures()
            self._batch = None
            self._unsent.clear()
            self._sent.clear()
            self._news.notify_all()
        for future in futures:
            if future.begin():
                future.set_exception(BrokenExecutor(f"bag {self.bag}: {error}"))
