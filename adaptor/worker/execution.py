"""Start one attempt: its program and arguments, folder, output and session; or say why it cannot start."""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from adaptor.worker.output import OPEN_FLAGS, output_paths
from adaptor.worker.slots import HeldTask

if TYPE_CHECKING:
    import subprocess

SHELL = "/bin/sh"
_PLAIN = re.compile(r"[\w.+-]*/[\w./+-]+(?: +[\w./+:,@%=-]+)*", re.ASCII)
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE)
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these; its children should not."""
_REASONS = {
    errno.ENOENT: "no such file (or the interpreter of its '#!' line is missing)",
    errno.EACCES: "not executable; chmod +x it, or start it through its interpreter",
    errno.ENOEXEC: "not a program; a script needs a '#!' line, or start it through its interpreter",
    errno.E2BIG: "its arguments and its environment are too long together",
}


_found: dict[tuple[str, str], str] = {}
"""Programs found so far, by name and PATH; only absolute ones, which do not depend on the folder."""


class CannotStartError(Exception):
    """The task cannot be executed; the message says why in one sentence."""


class ShortageError(Exception):
    """The machine cannot start one more process now; the task is not at fault."""


class Child:
    """A process that leads its own session and process group."""

    def __init__(self, pid: int, popen: subprocess.Popen[bytes] | None = None) -> None:
        self.pid = pid
        self._popen = popen

    def reaped(self) -> None:
        """The worker has waited for it; `subprocess` must not wait for a later process with the same id."""
        if self._popen is not None:
            self._popen.returncode = 0


def execute(held: HeldTask, environment: dict[str, str]) -> Child:
    """Start an attempt. Changes this process's current folder.

    Raises:
        CannotStartError: it cannot be executed as it stands.
        ShortageError: the caller may try again later.
    """
    command = held.lease.command
    _enter(held.lease.cwd or held.bag.cwd)
    plain = plain_words(command) if isinstance(command, str) else None
    if plain is not None:
        try:
            return _start(held, plain, environment)
        except CannotStartError:
            pass  # the shell finds more, and has its own messages and exit codes
    return _start(held, shell_words(command) if isinstance(command, str) else command, environment)


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise CannotStartError(f"{folder}: the task's folder cannot be entered: {error.strerror}") from error


def _start(held: HeldTask, words: list[str], environment: dict[str, str], *, again: bool = False) -> Child:
    """`again`: the output folder was made."""
    program = _program(words, environment)
    try:
        return _spawn(program, words, environment, *output_paths(held))
    except ValueError as error:  # a NUL character, or a variable without a name
        raise CannotStartError(f"{words[0]}: its arguments or its environment: {error}") from error
    except OSError as error:
        if error.errno in _SHORTAGES:
            raise ShortageError(error.strerror) from error
        if again or error.errno not in _MISSING:
            raise CannotStartError(_reason(program, held, error)) from error
    # Perhaps the output folder was missing; other workers may have made it by now.
    _make_output_folder(held)
    return _start(held, words, environment, again=True)


def _program(words: list[str], environment: dict[str, str]) -> str:
    if not words:
        raise CannotStartError("the task's command is empty")
    try:
        return program_of(words[0], environment)
    except FileNotFoundError as error:
        raise CannotStartError(f"{words[0]}: no such program on the task's PATH") from error
    except ValueError as error:
        raise CannotStartError(f"{words[0]!r}: not a program's name: {error}") from error


def _spawn(program: str, words: list[str], environment: dict[str, str], out: str, err: str) -> Child:
    try:
        pid = os.posix_spawn(
            program,
            words,
            environment,
            file_actions=(
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, out, OPEN_FLAGS, 0o666),
                (os.POSIX_SPAWN_OPEN, 2, err, OPEN_FLAGS, 0o666),
            ),
            setsid=True,
            setsigdef=_DEFAULT_SIGNALS,
        )
    except NotImplementedError:  # Python was built for a C library without POSIX_SPAWN_SETSID
        return _spawn_slowly(program, words, environment, out, err)
    return Child(pid)


def _spawn_slowly(program: str, words: list[str], environment: dict[str, str], out: str, err: str) -> Child:
    import subprocess

    with Path(out).open("wb") as stdout, Path(err).open("wb") as stderr:
        popen = subprocess.Popen(
            words,
            executable=program,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    return Child(popen.pid, popen)


def _make_output_folder(held: HeldTask) -> None:
    folder = Path(held.bag.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotStartError(f"{folder}: the output folder cannot be made: {error.strerror}") from error


def _reason(program: str, held: HeldTask, error: OSError) -> str:
    try:
        for path in output_paths(held):
            os.close(os.open(path, OPEN_FLAGS, 0o666))
    except OSError as denied:
        return f"{path}: the task's output cannot be written: {denied.strerror}"
    return f"{program}: cannot be executed: {_REASONS.get(error.errno or 0, error.strerror)}"


def plain_words(line: str) -> list[str] | None:
    """The words of a shell line in which the shell has nothing to do; None if it has, or may have.

    The first word is a path, hence no builtin, function or alias; no word is quoted, expanded or
    assigned. Starting such a line without a shell halves the cost of a short task.
    """
    return line.split() if _PLAIN.fullmatch(line) else None


def shell_words(line: str) -> list[str]:
    return [SHELL, "-c", line]


def program_of(name: str, environment: Mapping[str, str]) -> str:
    """The file to execute for `name`, from the PATH of the task. The current folder is the task's.

    Raises FileNotFoundError.
    """
    if "/" in name:
        return name
    path = environment.get("PATH", _DEFAULT_PATH)
    known = _found.get((name, path))
    if known is None or not _executable(known):
        known = _search(name, path)
        if known.startswith("/"):
            _found[name, path] = known
    return known


def _search(name: str, path: str) -> str:
    for folder in path.split(os.pathsep):
        candidate = f"{folder or '.'}/{name}"
        if name and _executable(candidate):
            return candidate
    raise FileNotFoundError(name)


def _executable(path: str) -> bool:
    return os.access(path, os.X_OK) and Path(path).is_file()
