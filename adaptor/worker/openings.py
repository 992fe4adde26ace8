"""The folders and files of attempts are opened, settled and removed by a thread for each output folder.

The worker never waits for a file to be opened. A file system that hangs keeps the attempts that need it, and
no other ones.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice

from adaptor.protocol.messages import AttemptKey, BagContext
from adaptor.worker import umask
from adaptor.worker.output import LONGEST, CannotStartError, OutputFolder, ScriptOutput, TaskFiles
from adaptor.worker.slots import HeldTask
from adaptor.worker.timers import NEVER, Timers

MOMENT = 1.0
"""Seconds for which the worker waits until a file system that has answered so far has settled the output."""
LONGEST_STAGING = 1800.0
"""The same of a bag that stages something: 60 GB from a file server that many nodes read."""
AHEAD = 16
"""Attempts at most whose files are opened before they start; each has three descriptors. Without it,
/bin/true takes 1.3 × the CPU time of the worker and 1.2 to 1.4 × the wall time (`bench.worker_files`)."""
_IDLE = 10.0  # seconds without work after which a thread ends; the next work starts another


Output = OutputFolder | ScriptOutput  # opens the files of a bag's attempts


class _Opening:
    """The files of an attempt that starts, or will start soon."""

    def __init__(self, held: HeldTask) -> None:
        self.held = held
        self.until = NEVER
        """Monotonic seconds at which the attempt that waits for them fails; NEVER: it does not wait."""
        self.dropped = False  # whether they are not needed any more
        self.outcome: TaskFiles | Exception | None = None  # None: they are not open yet


class _Folder:
    """An output folder and its thread, which does in order what it is given."""

    def __init__(self, output: Output, mask: int | None) -> None:
        """`mask`: for the modes of its files; None: the worker's."""
        self.output = output
        self._mask = mask
        self.ahead: dict[AttemptKey, _Opening] = {}  # by attempts that will start soon
        self.later: list[Callable[[], None]] = []
        """Work for which the thread is not woken: it takes it with the next."""
        self._work: queue.SimpleQueue[list[Callable[[], None]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._runs = False
        self._settled = threading.Event()
        self._settled.set()

    def do(self, *work: Callable[[], None]) -> None:
        with self._lock:
            self._work.put([*self.later, *work])
            self.later = []
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._run, name="files", daemon=True).start()

    def settle(self) -> None:
        """Have all done, and wait a moment for it; if the file system hangs already, only have it done."""
        if self._settled.is_set():
            self._settled = threading.Event()
            self.do(self.output.tidy, self._settled.set)
            self._settled.wait(MOMENT)
        else:
            self.do(self.output.tidy)

    def _run(self) -> None:
        umask.keep(self._mask)
        while True:
            try:
                for work in self._work.get(timeout=_IDLE):
                    with contextlib.suppress(Exception):  # one attempt's output must not keep the others'
                        work()
            except queue.Empty:
                with self._lock:
                    if self._work.empty():
                        self._runs = False
                        return


class Openings:
    """The files of attempts, opened at their turn or ahead of it. `now` is monotonic seconds throughout."""

    def __init__(
        self,
        timers: Timers,
        output_of: Callable[[BagContext], Output] = OutputFolder,
        prepare: Callable[[BagContext], None] = lambda _bag: None,
    ) -> None:
        """
        Args:
            output_of: makes the object that opens the files of a bag.
            prepare: in a thread, makes ready what the attempts of a bag share; raises CannotStartError.
        """
        self._output_of = output_of
        self._prepare_bag = prepare
        self._folders: dict[tuple[int, str], _Folder] = {}
        self._untidy: set[_Folder] = set()
        self._waiting: dict[AttemptKey, _Opening] = {}  # by attempts whose turn to start has come
        self._opened: deque[tuple[_Opening, TaskFiles | Exception]] = deque()  # by the threads
        self.fd, self._bell = os.pipe()  # `fd` is readable when attempts that wait may start
        for end in (self.fd, self._bell):
            os.set_blocking(end, False)
        self._rang = False
        self._give_up = timers.new(self._give_up_late)

    @property
    def waiting(self) -> list[AttemptKey]:
        """The attempts that wait for their files."""
        return list(self._waiting)

    def open_ahead(self, many: Iterable[HeldTask]) -> None:
        """Begin to open the files of the attempts that start next, so that they need not wait for them.

        Several at once: waking a thread costs the time of opening the files. Not those of a script: what an
        element shares with others is emptied at its start, and no earlier.
        """
        plain = (held for held in many if held.bag.script is None)
        heads = [(held, self._folder(held)) for held in islice(plain, AHEAD)]
        fresh = [(held, folder) for held, folder in heads if held.key not in folder.ahead]
        if len(fresh) >= AHEAD // 2:
            for folder in dict.fromkeys(folder for _, folder in fresh):
                openings = [_Opening(held) for held, its in fresh if its is folder]
                folder.ahead.update((opening.held.key, opening) for opening in openings)
                folder.do(*(partial(self._open, folder.output, opening) for opening in openings))

    def open(self, held: HeldTask, now: float) -> TaskFiles | None:
        """Open the files of an attempt; None: they are not open yet, and it waits until `ready` returns it.

        Raises CannotStartError or ShortageError.
        """
        self._note_opened()
        opening = self._waiting.pop(held.key, None) or self._opening(held)
        if opening.outcome is None:
            opening.until = now + (LONGEST if held.bag.bundle is None else LONGEST_STAGING)
            self._note_opened()  # the thread wakes the worker only for those that wait already
        if opening.outcome is None:
            self._waiting[held.key] = opening
            self._give_up.advance(opening.until)
        elif isinstance(opening.outcome, Exception):
            raise opening.outcome
        return opening.outcome

    def _opening(self, held: HeldTask) -> _Opening:
        """The opening begun ahead, or a new one: what was missing ahead of the start may be there by now."""
        folder = self._folder(held)
        opening = folder.ahead.pop(held.key, None)
        if opening is None or isinstance(opening.outcome, Exception):
            opening = _Opening(held)
            folder.do(partial(self._open, folder.output, opening))
        return opening

    def ready(self) -> list[AttemptKey]:
        """Attempts that wait, and whose files are open, or cannot be opened: `open` returns at once."""
        if self._rang:
            self._rang = False
            with contextlib.suppress(BlockingIOError):
                os.read(self.fd, 4096)
        self._note_opened()
        return [key for key, opening in self._waiting.items() if opening.outcome is not None]

    def drop(self, held: HeldTask) -> None:
        """Note that an attempt needs no files after all; they may have been opened for it."""
        opening = self._waiting.pop(held.key, None) or self._folder(held).ahead.pop(held.key, None)
        if opening is None:
            return
        opening.dropped = True
        if isinstance(opening.outcome, TaskFiles):
            opening.outcome.close()
        self._later(held, lambda output: output.discarded(held))

    def ended(self, held: HeldTask, *, alone: bool) -> None:
        """Take back the files into which the attempt has written nothing, in the thread of their folder."""
        self._later(held, lambda output: output.ended(held.key, alone=alone))

    def name(self, held: HeldTask, names: tuple[str, str]) -> None:
        """Give unnamed files the names of an attempt, in the thread of their folder; the worker does not wait
        for it."""
        folder = self._folder(held)
        folder.do(partial(folder.output.name, names, held.key))

    def release(self, held: HeldTask, names: tuple[str, str]) -> None:
        """Let go of unnamed files as the output of this attempt, in the thread of their folder."""
        self._later(held, lambda output: output.released(names, held.key))

    def tidy(self) -> None:
        """Settle the output of ended attempts, if their file systems answer in a moment.

        Where files were opened ahead, the thread does it with the next of them.
        """
        idle = {folder for folder in self._untidy if not folder.ahead}
        self._untidy -= idle
        for folder in idle:
            folder.settle()
        self._note_opened()  # closes what was opened and is not used

    def _later(self, held: HeldTask, work: Callable[[Output], None]) -> None:
        folder = self._folder(held)
        folder.later.append(partial(work, folder.output))
        self._untidy.add(folder)

    def _folder(self, held: HeldTask) -> _Folder:
        place = (held.bag.bag, held.bag.output)
        if place not in self._folders:
            self._folders[place] = _Folder(self._output_of(held.bag), held.bag.umask)
        return self._folders[place]

    def _open(self, output: Output, opening: _Opening) -> None:
        """Open the files of an attempt, in a thread."""
        if opening.dropped:
            return
        outcome: TaskFiles | Exception
        try:
            self._prepare_bag(opening.held.bag)
            outcome = output.open(opening.held)
        except Exception as error:
            outcome = error
        self._opened.append((opening, outcome))
        if opening.until < NEVER:
            with contextlib.suppress(BlockingIOError):  # a full pipe wakes as well
                os.write(self._bell, b"!")
            self._rang = True

    def _note_opened(self) -> None:
        while self._opened:
            opening, outcome = self._opened.popleft()
            if not opening.dropped:
                opening.outcome = outcome
            elif isinstance(outcome, TaskFiles):
                outcome.close()

    def _give_up_late(self, now: float) -> None:
        for opening in self._waiting.values():
            if opening.until <= now and opening.outcome is None:
                opening.dropped = True
                folders = dict.fromkeys((opening.held.cwd, opening.held.bag.output))
                staged = ", or what it stages was not copied" if opening.held.bag.bundle is not None else ""
                waited = LONGEST_STAGING if staged else LONGEST
                opening.outcome = CannotStartError(
                    f"{' or '.join(folders)}: the task's folder or its output folder could not be opened"
                    f"{staged}: the file system has not answered for {waited:.0f} s"
                )
        waiting = (opening.until for opening in self._waiting.values() if opening.outcome is None)
        self._give_up.set(min(waiting, default=NEVER))
