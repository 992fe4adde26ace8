"""The files that take a task's standard output and error, and why a task does not start."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from itertools import count

import msgspec

from adaptor.bag_spec import DEFAULT_OUTPUT
from adaptor.batch_script import BatchScript, element_of, output_files, script_of
from adaptor.outputs.packing import Packer, output_name
from adaptor.private_files import NotOursError, open_folder, open_output
from adaptor.protocol.messages import AttemptKey, BagContext
from adaptor.worker.slots import HeldTask

_TOGETHER = 32
"""Attempts whose output is packed together, at least, while others start: each time waits for the disk."""
_MISSING = (errno.ENOENT, errno.ESTALE)
SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE)
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
LONGEST = 120.0
"""Seconds after which an attempt fails whose files could not be opened; file servers restart in less."""


class CannotStartError(Exception):
    """The task cannot be executed; the message says why in one sentence."""

    def __init__(self, why: str, exit_code: int | None = None) -> None:
        """`exit_code`: a shell's: 127 where there is no such program, 126 where it cannot be executed."""
        super().__init__(why)
        self.exit_code = exit_code


class ShortageError(Exception):
    """The machine cannot start one more process now; the task is not at fault."""


class _Patience:
    """Patience with a disk that takes no file: a bag's tasks must not fail as fast as they start."""

    def __init__(self) -> None:
        self._refused: float | None = None
        """Monotonic seconds of the first refusal since it took a file, or since an attempt failed of it."""

    def taken(self) -> None:
        """Note that the disk has taken a file."""
        self._refused = None

    def cannot(self, what: str, error: OSError | ValueError) -> Exception:
        """The error of `cannot`; on a full or broken disk attempts wait, and after `LONGEST` one fails."""
        if not isinstance(error, OSError) or error.errno not in _OF_THE_DISK:
            return cannot(what, error)
        now = time.monotonic()
        self._refused = now if self._refused is None else self._refused
        if now - self._refused < LONGEST:
            return ShortageError(error.strerror)
        self._refused = None
        return cannot(what, error)


def output_names(key: AttemptKey) -> tuple[str, str]:
    """Names of the files of standard output and error."""
    return output_name(key.task, key.attempt, "stdout"), output_name(key.task, key.attempt, "stderr")


class Unnamed(msgspec.Struct, frozen=True):
    """Output files that do not have the name of an attempt yet: calls that write nothing share them."""

    folder: int  # descriptor of the folder in which they are
    names: tuple[str, str]


class TaskFiles(msgspec.Struct, frozen=True):
    """Descriptors of what an attempt starts with."""

    cwd: int
    out: int
    err: int
    unnamed: Unnamed | None = None  # None: the files have the attempt's names, or none at all

    @property
    def handles(self) -> list[int]:
        found = [self.cwd, self.out, self.err]
        return found if self.unnamed is None else [*found, self.unnamed.folder]

    def close(self) -> None:
        for handle in self.handles:
            os.close(handle)


class OutputFolder:
    """The output of one bag's tasks on this node. Every method may hang as its file system does.

    The attempts that start next get the empty files of ended ones; what is left of them is removed. To make
    and remove files for each /bin/true takes 1.1 to 1.2 × the CPU time of the worker on ext4, which does not
    use an inode again that was freed in the last seconds (`python -m bench.worker_files`).
    """

    def __init__(self, bag: BagContext) -> None:
        self._path = bag.output
        # Others know this name beforehand. A folder that a person has named may be a group's.
        self._must_be_ours = os.path.basename(bag.output) == DEFAULT_OUTPUT.format(bag=bag.bag)  # noqa: PTH119
        self._kept = bag.output_files != "none"
        self._packer = Packer(os.uname().nodename, os.getpid()) if bag.output_files == "packed" else None
        self._to_pack: list[str] = []
        self._spare: list[str] = []
        self._unnamed_stem = f".call-{os.urandom(8).hex()}"
        self._numbers = count(1)
        self._unnamed: dict[AttemptKey, tuple[str, str]] = {}
        """Open files of attempts that have not ended."""
        self._disk = _Patience()

    def open(self, held: HeldTask) -> TaskFiles:
        """Open what an attempt starts with; the output folder is made where it is missing.

        The files of a call are unnamed: most calls are short and write nothing, and leave them to the next.

        Raises:
            CannotStartError: a folder or file is missing, another user's, or cannot be written.
            ShortageError: the worker cannot open one more file now, or the disk takes none.
        """
        cwd = open_cwd(held.cwd)
        try:
            if not self._kept:
                return TaskFiles(cwd, *_nowhere())
            if held.lease.call is None:
                out, err, folder = self._open_outputs(output_names(held.key))
                os.close(folder)
                return TaskFiles(cwd, out, err)
            stem = f"{self._unnamed_stem}-{next(self._numbers)}"
            names = self._unnamed[held.key] = (f"{stem}.out", f"{stem}.err")
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

    def released(self, names: tuple[str, str], key: AttemptKey) -> None:
        """Unnamed files are not needed any more; what is in them is the output of this attempt."""
        with contextlib.suppress(OSError), self._opened() as folder:
            _remove([name for name in names if _is_empty(name, folder)], folder)
        self.name(names, key)
        self.ended(key, alone=False)

    def discarded(self, held: HeldTask) -> None:
        """Remove what was opened for an attempt that does not start, or starts with other files."""
        of_call = held.lease.call is not None
        names = self._unnamed.pop(held.key, ()) if of_call else output_names(held.key)
        with contextlib.suppress(OSError), self._opened() as folder:
            _remove([name for name in names if _is_empty(name, folder)], folder)

    def ended(self, key: AttemptKey, *, alone: bool) -> None:
        """Take back the files into which an attempt has written nothing.

        `alone`: whether no process holds its files open: then others may have them, or they are packed.
        """
        if not self._kept:
            return
        named = output_names(key)
        with contextlib.suppress(OSError), self._opened() as folder:
            empty = [name for name in (*named, *self._unnamed.pop(key, ())) if _is_empty(name, folder)]
            if not alone:
                _remove(empty, folder)
                return
            self._spare += empty
            if self._packer is not None:
                self._to_pack += [name for name in named if name not in empty]
        if len(self._to_pack) >= _TOGETHER:
            self._pack()

    def tidy(self) -> None:
        """Pack what has ended, and remove the empty files that no start has used."""
        self._pack()
        spare, self._spare = self._spare, []
        if spare:
            with contextlib.suppress(OSError), self._opened() as folder:
                _remove(spare, folder)

    def _pack(self) -> None:
        """Pack the outputs; those that cannot be packed, as on a full disk, stay in files of their own."""
        names, self._to_pack = self._to_pack, []
        if self._packer is not None and names:
            with contextlib.suppress(OSError), self._opened() as folder:
                self._packer.pack(names, folder)

    def _open_outputs(self, names: tuple[str, str], *, again: bool = False) -> tuple[int, int, int]:
        """Two files and their folder. `again`: the folder vanished after it was opened."""
        handles: list[int] = []
        try:
            with self._made() as folder:
                for name in names:
                    if self._spare:
                        with contextlib.suppress(OSError):
                            os.rename(self._spare.pop(), name, src_dir_fd=folder, dst_dir_fd=folder)
                    handles.append(open_output(name, folder))
                handles.append(os.dup(folder))
        except OSError as error:
            for handle in handles:
                os.close(handle)
            if error.errno in _MISSING and not again:
                return self._open_outputs(names, again=True)
            name = names[min(len(handles), 1)]
            what = f"{self._path}/{name}: the task's output cannot be written"
            raise self._disk.cannot(what, error) from error
        self._disk.taken()
        out, err, opened = handles
        return out, err, opened

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
            raise self._disk.cannot(f"{self._path}: the output folder cannot be made", error) from error
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


class ScriptOutput:
    """The output of a batch script, in place of an `OutputFolder`. Empty files stay, as those of sbatch do.

    Elements that name the same file write behind each other in both open modes, as under slurmstepd.
    """

    def __init__(
        self,
        script: BatchScript,
        node: str,
        scratch: Callable[[AttemptKey], str | None],
        forget: Callable[[AttemptKey], None],
    ) -> None:
        """
        Args:
            scratch: the folder for temporary files of an attempt; None: it has none of its own.
            forget: removes the copy of a script that an attempt alone has run.
        """
        self._script = script
        self._node = node
        self._scratch = scratch
        self._forget = forget
        self._disk = _Patience()

    def open(self, held: HeldTask) -> TaskFiles:
        """Open what an attempt starts with; missing folders are made.

        Raises:
            CannotStartError: a folder or file is missing, another user's, or cannot be written.
            ShortageError: the worker cannot open one more file now.
        """
        cwd = open_cwd(held.cwd)
        handles: list[int] = []
        try:
            element = element_of(self._script, held.key.bag, held.key.task, held.lease.environment)
            script = script_of(self._script, held.lease.environment)
            out, err = output_files(script, element, self._node)
            handles.append(self._open(out, script))
            handles.append(os.dup(handles[-1]) if err == out else self._open(err, script))
            self._make_scratch(held.key)
        except BaseException:
            for handle in (cwd, *handles):
                os.close(handle)
            raise
        out_handle, err_handle = handles
        return TaskFiles(cwd, out_handle, err_handle)

    def name(self, names: tuple[str, str], key: AttemptKey) -> None:
        """Does nothing: the files have their names from the beginning."""

    def released(self, names: tuple[str, str], key: AttemptKey) -> None:
        """Does nothing: the tasks are no calls."""

    def discarded(self, held: HeldTask) -> None:
        """Remove what was made for it."""
        self.ended(held.key, alone=True)

    def ended(self, key: AttemptKey, *, alone: bool) -> None:  # noqa: ARG002
        """Remove its folder for temporary files, and its own script."""
        self._forget(key)
        scratch = self._scratch(key)
        if scratch is not None:
            remove_folder(scratch)

    def tidy(self) -> None:
        """Does nothing: nothing is left to do."""

    def _make_scratch(self, key: AttemptKey) -> None:
        scratch = self._scratch(key)
        if scratch is None:
            return
        try:
            os.makedirs(scratch, mode=0o700, exist_ok=True)  # noqa: PTH103 (a path of text, for every start)
        except OSError as error:
            what = f"{scratch}: the task's folder for temporary files cannot be made"
            raise self._disk.cannot(what, error) from error

    def _open(self, path: str, script: BatchScript) -> int:
        try:
            if path == os.devnull:
                return os.open(os.devnull, os.O_WRONLY)
            above, name = os.path.split(path)
            os.makedirs(above, exist_ok=True)  # noqa: PTH103 (a path of text, for every start)
            folder = open_folder(above, ours=False)
            try:
                handle = open_output(name, folder, append=True, empty=not script.append)
            finally:
                os.close(folder)
            self._disk.taken()
            return handle
        except (OSError, ValueError) as error:
            raise self._disk.cannot(f"{path}: the task's output cannot be written", error) from error


def _nowhere() -> tuple[int, int]:
    """Two files for output that is dropped. Raises ShortageError."""
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


def remove_folder(folder: str | os.PathLike[str]) -> None:
    """Remove a folder, as far as possible. Few workers need it, so its imports come with the first folder."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
