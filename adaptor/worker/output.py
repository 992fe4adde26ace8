"""The files that take a task's standard output and error."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from itertools import count

import msgspec

from adaptor.bag_spec import DEFAULT_OUTPUT
from adaptor.outputs.names import output_name
from adaptor.outputs.packing import Packer
from adaptor.protocol.messages import AttemptKey, BagContext
from adaptor.safe_open import NotOursError, open_folder, open_output
from adaptor.worker.slots import HeldTask
from adaptor.worker.start_errors import SHORTAGES, CannotStartError, ShortageError

_TOGETHER = 32
"""Attempts whose output is packed together, at least, while others start: each time waits for the disk."""
_MISSING = (errno.ENOENT, errno.ESTALE)


def output_names(key: AttemptKey) -> tuple[str, str]:
    """Standard output and error."""
    return output_name(key.task, key.attempt, "stdout"), output_name(key.task, key.attempt, "stderr")


class Unnamed(msgspec.Struct, frozen=True):
    """Output files that do not have the name of an attempt yet: calls that write nothing share them."""

    folder: int
    """Descriptor of the folder in which they are."""
    names: tuple[str, str]


class TaskFiles(msgspec.Struct, frozen=True):
    """Descriptors of what an attempt starts with."""

    cwd: int
    out: int
    err: int
    unnamed: Unnamed | None = None
    """None: the files have the attempt's names, or none at all."""

    @property
    def handles(self) -> list[int]:
        found = [self.cwd, self.out, self.err]
        return found if self.unnamed is None else [*found, self.unnamed.folder]

    def close(self) -> None:
        for handle in self.handles:
            os.close(handle)


class OutputFolder:
    """The output of one bag's tasks on this node. Every method may hang as its file system does.

    Empty files of ended attempts are renamed for the attempts that start next; the rest is removed. Making
    and removing a file costs far more than a rename (measured on ext4: 500 µs against 10 µs).
    """

    def __init__(self, bag: BagContext) -> None:
        self._path = bag.output
        # Others know this name beforehand. A folder that a person has named may be a group's.
        self._must_be_ours = os.path.basename(bag.output) == DEFAULT_OUTPUT.format(bag=bag.bag)  # noqa: PTH119
        self._spare: list[str] = []
        self._kept = bag.output_files != "none"
        self._packer = Packer(os.uname().nodename, os.getpid()) if bag.output_files == "packed" else None
        self._to_pack: list[str] = []
        self._unnamed_stem = f".call-{os.urandom(8).hex()}"
        self._numbers = count(1)
        self._unnamed: dict[AttemptKey, tuple[str, str]] = {}
        """What was opened for attempts that have not ended."""

    @property
    def has_spare(self) -> bool:
        """Whether `tidy` has files to remove or to pack."""
        return bool(self._spare or self._to_pack)

    def open(self, held: HeldTask) -> TaskFiles:
        """Open what an attempt starts with; the output folder is made where it is missing.

        The files of a call are unnamed: most calls are short and write nothing, and leave them to the next.

        Raises:
            CannotStartError: a folder or file is missing, a stranger's, or cannot be written.
            ShortageError: the worker cannot open one more file now.
        """
        cwd = open_cwd(held.cwd)
        try:
            if not self._kept:
                return TaskFiles(cwd, *_nowhere())
            if held.lease.call is None:
                out, err, folder = self._open_outputs(output_names(held.key))
                os.close(folder)
                return TaskFiles(cwd, out, err)
            names = self._unnamed[held.key] = self._unused_names()
            out, err, folder = self._open_outputs(names)
            return TaskFiles(cwd, out, err, Unnamed(folder, names))
        except BaseException:
            os.close(cwd)
            raise

    def name(self, names: tuple[str, str], key: AttemptKey) -> None:
        """Give unnamed files the names of an attempt, unless they have them already."""
        with contextlib.suppress(OSError), self._opened() as folder:
            for unnamed, name in zip(names, output_names(key), strict=True):
                with contextlib.suppress(OSError):
                    os.rename(unnamed, name, src_dir_fd=folder, dst_dir_fd=folder)

    def ended(self, key: AttemptKey, *, spare: bool) -> None:
        """Forget an attempt's files but for what it has written.

        Args:
            spare: whether no process holds the files open, so that another attempt may have them.
        """
        if not self._kept:
            return
        named = output_names(key)
        with contextlib.suppress(OSError), self._opened() as folder:
            names = [*named, *self._unnamed.pop(key, ())]
            empty = [name for name in names if _is_empty(name, folder)]
            if not spare:  # a process may still write into the others
                _remove(empty, folder)
                return
            self._spare += empty
            if self._packer is not None:
                self._to_pack += [name for name in named if name not in empty]
        if len(self._to_pack) >= _TOGETHER:
            self._pack()

    def discarded(self, held: HeldTask) -> None:
        """What was opened for an attempt is spare; it does not start, or starts with other files."""
        if not self._kept:
            return
        of_call = held.lease.call is not None
        names = self._unnamed.pop(held.key, ()) if of_call else output_names(held.key)
        with contextlib.suppress(OSError), self._opened() as folder:
            self._spare += [name for name in names if _is_empty(name, folder)]

    def tidy(self) -> None:
        """Pack what has ended, and remove the empty files that no start has used."""
        self._pack()
        if self._spare:
            with contextlib.suppress(OSError), self._opened() as folder:
                _remove(self._spare, folder)
            self._spare.clear()

    def _pack(self) -> None:
        """What cannot be packed, on a full disk for instance, stays in files of its own."""
        names, self._to_pack = self._to_pack, []
        if self._packer is not None and names:
            with contextlib.suppress(OSError), self._opened() as folder:
                self._packer.pack(names, folder)

    def _unused_names(self) -> tuple[str, str]:
        stem = f"{self._unnamed_stem}-{next(self._numbers)}"
        return f"{stem}.out", f"{stem}.err"

    def _open_outputs(self, names: tuple[str, str], *, again: bool = False) -> tuple[int, int, int]:
        """Two files and their folder. `again`: the folder vanished after it was opened."""
        handles: list[int] = []
        try:
            with self._made() as folder:
                for name in names:
                    there = self._use_spare(name, folder)
                    handles.append(open_output(name, folder, there=there))
                handles.append(os.dup(folder))
        except OSError as error:
            for handle in handles:
                os.close(handle)
            if error.errno in _MISSING and not again:
                return self._open_outputs(names, again=True)
            name = names[min(len(handles), 1)]
            raise cannot(f"{self._path}/{name}: the task's output cannot be written", error) from error
        out, err, opened = handles
        return out, err, opened

    def _use_spare(self, name: str, folder: int) -> bool:
        """Whether a spare file has this name now."""
        if not self._spare:
            return False
        try:
            os.rename(self._spare.pop(), name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            return False
        return True

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        folder = open_folder(self._path, ours=self._must_be_ours)
        try:
            yield folder
        finally:
            os.close(folder)

    @contextlib.contextmanager
    def _made(self) -> Iterator[int]:
        """The folder, open; made where it is missing. Another worker may be making it at the same time."""
        try:
            folder = self._open_or_make()
        except NotOursError as error:
            raise CannotStartError(
                f"{self._path}: not used as the output folder: {error.strerror}; "
                "submit the bag from a folder of your own, or name one by --output"
            ) from error
        except (OSError, ValueError) as error:
            raise cannot(f"{self._path}: the output folder cannot be made", error) from error
        try:
            yield folder
        finally:
            os.close(folder)

    def _open_or_make(self) -> int:
        try:
            return open_folder(self._path, ours=self._must_be_ours)
        except FileNotFoundError:
            os.makedirs(self._path, exist_ok=True)  # noqa: PTH103 (a path of text, for every start)
            return open_folder(self._path, ours=self._must_be_ours)


def _nowhere() -> tuple[int, int]:
    """For output that nobody keeps. Raises ShortageError."""
    try:
        out = os.open(os.devnull, os.O_WRONLY)
        return out, os.dup(out)
    except OSError as error:
        raise ShortageError(error.strerror) from error


def open_cwd(path: str) -> int:
    """A descriptor of the folder in which a task starts. Raises CannotStartError or ShortageError."""
    try:
        return os.open(path, os.O_PATH | os.O_DIRECTORY)
    except (OSError, ValueError) as error:
        raise cannot(f"{path}: the task's folder cannot be entered", error) from error


def cannot(what: str, error: OSError | ValueError) -> Exception:
    """The error for files that cannot be opened: a shortage of the worker, or the task's own fault."""
    if isinstance(error, OSError):
        if error.errno in SHORTAGES:
            return ShortageError(error.strerror)
        return CannotStartError(f"{what}: {error.strerror}")
    return CannotStartError(f"{what}: {error}")


def _is_empty(name: str, folder: int) -> bool:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == 0


def _remove(names: list[str], folder: int) -> None:
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
