"""Open bags for programs: open, append, follow, cancel, close, over restarts of the daemon.

    with Client() as client:
        spec = BagSpec(name="sweep", cwd="/home/me", output="/home/me/out-{bag}", environment={})
        bag = client.open_bag(spec)
        numbers = client.append(bag, [TaskInput(["./simulate", "1"]), TaskInput(["./simulate", "2"])])
        client.close_bag(bag)
        for events in client.follow(bag):
            for task in events.tasks:
                print(task.task, task.state, task.exit_code)

Each call is repeated until the daemon has answered it, and what it does is done once: a restart or a crash of
the daemon in between is not noticed, except by the time that it takes.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from adaptor import api
from adaptor.api import LONGEST_POLL, BagInput, TaskInput
from adaptor.api.question import A
from adaptor.bag_spec import BagSpec
from adaptor.client.asking import ANSWER_TIMEOUT, DaemonConnection, NoAnswerError, Outage
from adaptor.errors import AdaptorError, NoDaemonError
from adaptor.outputs.packing import numbers_of_others
from adaptor.protocol.state_directory import state_directory
from adaptor.resources import OwnNeeds

GONE = 300.0
"""Seconds after the last task until the open bag of a program closes that is gone and followed it."""
SUBMIT_TIMEOUT = 300.0  # seconds; a daemon on a slow file system may need them for a million tasks
BATCH = 5_000  # tasks in one message, at most: the daemon answers other clients between two of them


class ClientClosedError(AdaptorError):
    """The client was closed, perhaps by another thread, while it was asking."""


class Client:
    """A client of the daemon of one state directory. Threads may share it: each has its own connection."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        patience: float | None = None,
        start: Callable[[], object] | None = None,
        say: Callable[[str], None] = lambda _text: None,
        connection: DaemonConnection | None = None,
    ) -> None:
        """Connects with the first call.

        Args:
            directory: the state directory; None: as the command line finds it.
            patience: seconds for which a daemon may be away before a call fails; None: as `Outage` says.
            start: called where no daemon runs, to start one; None: none is started.
            say: gets a line where an answer takes long.
            connection: one to that daemon, for the thread that makes the client.
        """
        self.directory = state_directory() if directory is None else directory
        self._patience = patience
        self._start = start
        self._say = say
        self._here = threading.local()
        if connection is not None:
            self._here.connection = connection
        self._closed = threading.Event()
        self._was_there = False  # whether a daemon was ever there: then one that is away is waited for

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave; the bags go on, and open ones stay open. Calls of other threads end with ClientClosedError
        within a second of their next answer or outage."""
        self._closed.set()
        connection: DaemonConnection | None = getattr(self._here, "connection", None)
        if connection is not None:
            connection.close()
            del self._here.connection

    # --- bags ----------------------------------------------------------------------------------

    def open_bag(
        self, spec: BagSpec, tasks: Sequence[TaskInput] = (), budget: float | None = None, key: str = ""
    ) -> int:
        """Open a bag that takes more tasks, with its first ones; its number.

        `{bag}` in the spec's `output` becomes the number. `key`: as in `submit`.

        Raises:
            UsageError: no site could ever run it.
            NoDaemonError, NoAnswerError: no daemon answers.
        """
        given = BagInput(spec=spec, budget=budget, tasks=list(tasks))
        return self.submit(given, open=True, key=key).bag

    def submit(
        self,
        bag: BagInput,
        *,
        open: bool = False,
        resume: bool = False,
        key: str = "",
    ) -> api.Submitted:
        """Submit a bag: it is there as a whole or not at all, if either side ends in between.

        Args:
            open: whether tasks may be appended later.
            resume: whether tasks are left out that earlier bags of this name have done, or still have to run.
            key: by which the same bag is submitted once; empty: by a new one.

        Raises:
            UsageError: no site could ever run it.
            NoDaemonError, NoAnswerError: no daemon answers.
        """
        key, spec = key or new_key(), self._with_bundle(bag.spec)
        question = api.Open(key, spec, bag.budget, numbers_of_others(spec.output), file=bag.file)
        if known := self.ask(question, SUBMIT_TIMEOUT):
            return api.Submitted(known)
        for _ in self._added(0, key, bag.tasks, bag.file, SUBMIT_TIMEOUT):
            pass
        return self.ask(api.Publish(key, open, resume), SUBMIT_TIMEOUT)

    def append(self, bag: int, tasks: Sequence[TaskInput]) -> list[int]:
        """Append tasks to an open bag; their numbers. With the return they are written down for good.

        In `after` and `after_any` a task names others of this append by `id`, and those that the bag has
        already by `id` or by number.

        Raises:
            UsageError: there is no such bag, it is closed, a task names one that cannot be, or its needs
                contradict each other.
            NoDaemonError, NoAnswerError: no daemon answers; the tasks may be appended or not.
        """
        answers = self.appending(bag, tasks)
        return [answer.first + number for answer in answers for number in range(answer.tasks)]

    def appending(self, bag: int, tasks: Sequence[TaskInput], file: str = "") -> Iterator[api.Added]:
        """Append tasks as `append` does, some at a time: what the daemon says of each part of them.

        `file`: in which they are written, for messages.
        """
        return self._added(bag, new_key(), tasks, file)

    def _added(
        self, bag: int, key: str, tasks: Sequence[TaskInput], file: str, timeout: float = ANSWER_TIMEOUT
    ) -> Iterator[api.Added]:
        # Tasks that name each other are sent together.
        at_once = len(tasks) if any(task.after or task.after_any for task in tasks) else BATCH
        for begin in range(0, len(tasks), at_once or 1):
            some = list(tasks[begin : begin + at_once])
            yield self.ask(api.Add(bag, key, begin, some, file), timeout)

    def close_bag(self, bag: int) -> None:
        """Append no more: the bag ends with its last task. Nothing happens to a bag that is closed already.

        Raises:
            UsageError: there is no such bag.
            NoDaemonError, NoAnswerError: no daemon answers.
        """
        self.ask(api.Close([bag]))

    def cancel(
        self,
        bag: int,
        tasks: Sequence[int] | None = None,
        *,
        unstarted: bool = False,
        enough: bool = False,
    ) -> int:
        """Cancel unfinished tasks; the number of those that are cancelled by it.

        Args:
            tasks: None for all of them, and then the bag takes no more.
            unstarted: only those that have not started.
            enough: what they have done is all that is wanted of them: they end as done.

        Raises NoDaemonError, NoAnswerError: no daemon answers.
        """
        numbers = None if tasks is None else list(tasks)
        return self.ask(api.Cancel([bag], numbers, unstarted, enough))

    def retry(self, bag: int, tasks: Sequence[int] | None = None, needs: OwnNeeds | None = None) -> int:
        """Run failed and cancelled tasks (None: all of them) again; the number of those that are put back.

        `needs`: what replaces theirs; None in it: as before.

        Raises:
            UsageError: there is no such bag, or no node could ever hold a task with these needs; then none
                is put back.
            NoDaemonError, NoAnswerError: no daemon answers.
        """
        numbers = None if tasks is None else list(tasks)
        return self.ask(api.Retry([bag], numbers, needs))

    # --- events --------------------------------------------------------------------------------

    def events(
        self, since: Mapping[int, int], wait: float = LONGEST_POLL, most: int = 1000
    ) -> list[api.BagEvents]:
        """Changes in bags since these events (0: from the first on), one entry for each bag.

        Returns at once if there are changes, or if all these bags have ended; else after `wait` seconds with
        empty lists. `BagEvents.last` is where the next question goes on; it holds over restarts.

        Raises:
            UsageError: there is no such bag.
            NoDaemonError, NoAnswerError: no daemon answers.
        """
        question = api.GetEvents(dict(since), min(wait, LONGEST_POLL), most)
        return self.ask(question, question.wait + ANSWER_TIMEOUT)

    def follow(self, bag: int, since: int = 0) -> Iterator[api.BagEvents]:
        """The events of a bag as they come, until it has ended.

        Raises:
            UsageError: there is no such bag.
            NoDaemonError, NoAnswerError: no daemon answers.
        """
        following: api.GetEvents | None = api.GetEvents({bag: since}, LONGEST_POLL, follow=True)
        connection = DaemonConnection(self.directory)  # on which nothing else is asked meanwhile
        try:
            while following is not None:
                answer = self._patiently(partial(connection.follow, following, LONGEST_POLL + ANSWER_TIMEOUT))
                yield answer[0]
                following = following.after(answer)
        finally:
            connection.close()

    # --- questions -----------------------------------------------------------------------------

    def ask(self, question: api.Question[A], timeout: float = ANSWER_TIMEOUT) -> A:
        """The daemon's answer to a question that may be repeated.

        Raises:
            UsageError: the question is at fault.
            NoDaemonError, NoAnswerError: no daemon answers.
            ClientClosedError: the client was closed.
            AdaptorError: the daemon could not serve it.
        """
        return self._patiently(partial(self._connection.ask, question, timeout))

    def poster(self) -> Callable[[api.Question[Any]], None]:
        """A function that sends ahead, in any thread and without waiting, a question that this thread asks
        next."""
        return self._connection.post

    @property
    def _connection(self) -> DaemonConnection:
        """The connection of this thread."""
        connection: DaemonConnection | None = getattr(self._here, "connection", None)
        if connection is None:
            connection = self._here.connection = DaemonConnection(self.directory)
        return connection

    def _patiently(self, ask: Callable[[], A]) -> A:
        """The result of `ask`, over outages of the daemon. Raises as `Client.ask` does."""
        outage = Outage(self._patience, was_there=self._was_there or self._start is not None, say=self._say)
        while True:
            if self._closed.is_set():
                raise ClientClosedError("the client was closed")
            try:
                answer = ask()
                self._was_there = True
                return answer
            except NoDaemonError as silence:
                if self._start is not None:
                    self._start()
                pause = outage.pause(silence)
            except NoAnswerError as silence:
                self._was_there = True
                pause = outage.pause(silence)
            self._closed.wait(pause)

    def _with_bundle(self, spec: BagSpec) -> BagSpec:
        """Pack what a new bag stages. Raises UsageError: it cannot be packed."""
        if not spec.staged or spec.bundle is not None:
            return spec
        from adaptor.bundles.packing import pack

        return msgspec.structs.replace(spec, bundle=pack(spec.staged, self.directory, self._say))


def new_key() -> str:
    """A unique key for one append or one new bag."""
    return secrets.token_hex(16)
