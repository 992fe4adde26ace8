"""Attempts whose folders and files are being opened: the output folder of each bag in a thread of its own.

A folder on a file system that hangs keeps the attempts that need it, and no other ones.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, Protocol

from adaptor.protocol.messages import AttemptKey, BagContext
from adaptor.worker.file_thread import Call, FileThread
from adaptor.worker.output import OutputFolder, TaskFiles
from adaptor.worker.slots import HeldTask
from adaptor.worker.start_errors import CannotStartError

MOMENT = 1.0
"""Seconds for which the worker waits for a file system that has answered so far."""
LONGEST = 120.0
"""Seconds after which an attempt fails whose files could not be opened; file servers restart in less."""
LOOK_INTERVAL = 0.1
AHEAD = 16
"""Attempts at most whose files are opened before they start; each has three descriptors."""


class Output(Protocol):
    """Opens the files of a bag's attempts. Every method may hang as the file system does."""

    @property
    def has_spare(self) -> bool: ...
    def open(self, held: HeldTask) -> TaskFiles: ...
    def name(self, names: tuple[str, str], key: AttemptKey) -> None: ...
    def discarded(self, held: HeldTask) -> None: ...
    def ended(self, key: AttemptKey, *, spare: bool) -> None: ...
    def tidy(self) -> None: ...


class Opening:
    """One attempt that waits for its files."""

    def __init__(
        self, held: HeldTask, environment: dict[str, str], call: Call[TaskFiles], until: float
    ) -> None:
        self.held = held
        self.environment = environment
        self._call = call
        self._until = until

    def over(self, now: float) -> bool:
        """Whether its files are open, cannot be opened, or were waited for long enough."""
        return self._call.ended or now >= self._until

    def files(self) -> TaskFiles:
        """Raises CannotStartError or ShortageError."""
        if self._call.ended:
            return self._call.value()
        self._call.drop()
        folders = dict.fromkeys((self.held.cwd, self.held.bag.output))
        raise CannotStartError(
            f"{' or '.join(folders)}: the task's folder or its output folder could not be opened: "
            f"the file system has not answered for {LONGEST:.0f} s"
        )

    def drop(self) -> None:
        self._call.drop()


class _Folder:
    """An output folder, its thread, and the call for which the worker has waited in vain, if any."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.thread = FileThread()
        self.later: deque[Callable[[], None]] = deque()
        """What has become of files; the next call of the thread takes it in."""
        self.prepared: dict[AttemptKey, Call[TaskFiles]] = {}
        """Attempts that will start soon; their files are being opened, or are open."""
        self._hanging: Call[Any] | None = None

    @property
    def untidy(self) -> bool:
        """Whether empty files may be left that no start has used."""
        return bool(self.later) or self.output.has_spare

    def prepare(self, many: Sequence[HeldTask]) -> None:
        """Have the files of attempts opened, one attempt after the other."""
        calls = [Call(partial(self._open, held), TaskFiles.close) for held in many]
        self.prepared.update(zip((held.key for held in many), calls, strict=True))
        self.thread.carry_out(calls)

    def open(self, held: HeldTask) -> Call[TaskFiles]:
        """Have an attempt's files opened, unless they are already.

        What was missing ahead of the start may be there by now.
        """
        ahead = self.prepared.pop(held.key, None)
        if ahead is not None and not (self.answers(ahead) and ahead.failed):
            return ahead
        self.prepare([held])
        return self.prepared.pop(held.key)

    def tidy(self) -> None:
        """In the thread."""
        self.take_in()
        self.output.tidy()

    def take_in(self) -> None:
        """In the thread."""
        while self.later:
            self.later.popleft()()

    def _open(self, held: HeldTask) -> TaskFiles:
        """In the thread. Raises CannotStartError or ShortageError."""
        self.take_in()
        return self.output.open(held)

    def answers(self, call: Call[Any]) -> bool:
        """Wait a moment for a call; returns whether it has ended."""
        hangs = self._hanging is not None and not self._hanging.ended
        if call.wait(0 if hangs else MOMENT):
            return True
        if not hangs:
            self._hanging = call
        return False


class Openings:
    """`now` is monotonic seconds throughout."""

    def __init__(self, output_of: Callable[[BagContext], Output] = OutputFolder) -> None:
        """`output_of`: makes the object that opens the files of a bag."""
        self._output_of = output_of
        self._folders: dict[tuple[int, str], _Folder] = {}
        self._untidy: set[_Folder] = set()
        self._waiting: dict[AttemptKey, Opening] = {}

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._waiting

    def keys(self) -> list[AttemptKey]:
        return list(self._waiting)

    def prepare(self, queue: Iterable[HeldTask]) -> None:
        """Begin to open the files of the attempts that start next, so that `open` need not wait for them.

        Several at once: to wake a thread costs as much as to open the files.
        """
        heads = [(held, self._folder(held)) for held in islice(queue, AHEAD)]
        fresh = [(held, folder) for held, folder in heads if held.key not in folder.prepared]
        if len(fresh) >= AHEAD // 2:
            for folder, group in groupby(fresh, itemgetter(1)):
                folder.prepare([held for held, _ in group])

    def discard(self, held: HeldTask) -> None:
        """An attempt needs no files after all; it may have been prepared."""
        folder = self._folder(held)
        call = folder.prepared.pop(held.key, None)
        if call is not None:
            call.drop()
            folder.later.append(partial(folder.output.discarded, held))
            self._untidy.add(folder)

    def open(self, held: HeldTask, environment: dict[str, str]) -> Opening | None:
        """Open the files of an attempt; None: that takes longer, and `take_over` will return it."""
        folder = self._folder(held)
        call = folder.open(held)
        opening = Opening(held, environment, call, time.monotonic() + LONGEST)
        if folder.answers(call):
            return opening
        self._waiting[held.key] = opening
        return None

    def take_over(self, now: float) -> list[Opening]:
        """Take out those that are over."""
        over = [opening for opening in self._waiting.values() if opening.over(now)]
        for opening in over:
            del self._waiting[opening.held.key]
        return over

    def next_look(self) -> float:
        return time.monotonic() + LOOK_INTERVAL if self._waiting else float("inf")

    def forget(self, key: AttemptKey) -> bool:
        """Give up an attempt. Returns False if it does not wait here."""
        opening = self._waiting.pop(key, None)
        if opening is None:
            return False
        opening.drop()
        self.ended(opening.held, spare=False)
        return True

    def ended(self, held: HeldTask, *, spare: bool) -> None:
        """See `OutputFolder.ended`. It wakes no thread: the next call takes it in."""
        folder = self._folder(held)
        folder.later.append(partial(folder.output.ended, held.key, spare=spare))
        self._untidy.add(folder)

    def name(self, held: HeldTask, names: tuple[str, str]) -> None:
        """See `OutputFolder.name`. The worker does not wait for it."""
        folder = self._folder(held)
        folder.later.append(partial(folder.output.name, names, held.key))
        folder.thread.call(folder.take_in)

    def release(self, held: HeldTask, names: tuple[str, str]) -> None:
        """Unnamed files are not needed any more; what is in them is the output of this attempt."""
        self.name(held, names)
        self.ended(held, spare=False)

    def tidy(self) -> None:
        """Remove the empty files of ended attempts, if their file systems answer in a moment.

        Where attempts are prepared, those that are prepared next use them.
        """
        idle = {folder for folder in self._untidy if not folder.prepared}
        self._untidy -= idle
        calls = [(folder, folder.thread.call(folder.tidy)) for folder in idle if folder.untidy]
        for folder, call in calls:
            folder.answers(call)

    def _folder(self, held: HeldTask) -> _Folder:
        place = (held.bag.bag, held.bag.output)
        if place not in self._folders:
            self._folders[place] = _Folder(self._output_of(held.bag))
        return self._folders[place]
