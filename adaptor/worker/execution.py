"""Start one attempt: its program and arguments, folder and session; or say why it cannot start."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from adaptor.guard_rails import is_shell
from adaptor.worker import umask
from adaptor.worker.binding import bound
from adaptor.worker.output import SHORTAGES, CannotStartError, ShortageError, TaskFiles
from adaptor.worker.shells import line_words, shell_words, with_activation
from adaptor.worker.slots import HeldTask

if TYPE_CHECKING:
    import subprocess

_PLAIN = re.compile(r"[\w.+-]*/[\w./+-]+(?: +[\w./+:,@%=-]+)*", re.ASCII)
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores these; its children should not
_REASONS = {
    errno.ENOENT: "no such file (or the interpreter of its '#!' line is missing)",
    errno.EACCES: "not executable; chmod +x it, or start it through its interpreter",
    errno.ENOEXEC: "not a program; a script needs a '#!' line, or start it through its interpreter",
    errno.E2BIG: "its arguments and its environment are too long together",
}


_found: dict[tuple[str, str], str] = {}
"""Programs found so far, by name and PATH; only absolute ones, which do not depend on the folder."""


class Child:
    """A process that leads its own session and process group."""

    def __init__(self, pid: int, popen: subprocess.Popen[bytes] | None = None) -> None:
        self.pid = pid
        self._popen = popen

    def reaped(self) -> None:
        """The worker has waited for it; `subprocess` must not wait for a later process with the same id."""
        if self._popen is not None:
            self._popen.returncode = 0


def execute(
    held: HeldTask,
    environment: dict[str, str],
    files: TaskFiles,
    script: str | None = None,
    shell: str = "",
) -> Child:
    """Start an attempt. Changes this process's current folder.

    Args:
        script: the file to run in place of the first word of the command.
        shell: the words of the site's shell for lines; empty: it names none.

    Raises:
        CannotStartError: it cannot be executed as it stands.
        ShortageError: the caller may try again later.
    """
    command = held.lease.command
    if script is not None:
        command = [script, *command[1:]]
    _enter(held, files.cwd)
    shell = held.bag.shell or shell
    plain = plain_words(command) if isinstance(command, str) and not shell else None
    if plain is not None:
        with contextlib.suppress(CannotStartError), bound(held.cpus):  # the shell finds more, and says more
            return _start(held, plain, environment, files)
    with bound(held.cpus):
        if isinstance(command, str):
            words = shell_words(shell, environment, program_of)
            line = with_activation(command, environment) if is_shell(words) else command
            command = line_words(words, line, held.bag.signal)
        return _start(held, command, environment, files)


def start_python(
    held: HeldTask, words: list[str], environment: dict[str, str], files: TaskFiles, stdin: int
) -> Child:
    """Start an interpreter whose standard input is this descriptor. Changes this process's current folder.

    Raises:
        CannotStartError: it cannot be executed as it stands.
        ShortageError: the caller may try again later.
    """
    _enter(held, files.cwd)
    with bound(held.cpus):
        return _start(held, words, environment, files, stdin)


def _enter(held: HeldTask, folder: int) -> None:
    try:
        os.fchdir(folder)
    except OSError as error:
        raise CannotStartError(
            f"{held.cwd}: the task's folder cannot be entered: {error.strerror}"
        ) from error


def _start(
    held: HeldTask, words: list[str], environment: dict[str, str], files: TaskFiles, stdin: int | None = None
) -> Child:
    program = _program(words, environment)
    asked = held.bag.signal
    # Grid Engine's pilots ignore SIGUSR1 and SIGUSR2, and a shell cannot trap what it was started to ignore.
    reset = (*_DEFAULT_SIGNALS, signal.Signals[asked.name]) if asked is not None else _DEFAULT_SIGNALS
    try:
        with umask.during(held.bag.umask):
            return _spawn(program, words, environment, files, stdin, reset)
    except ValueError as error:  # a NUL character, or a variable without a name
        raise CannotStartError(f"{words[0]}: its arguments or its environment: {error}") from error
    except OSError as error:
        if error.errno in SHORTAGES:
            raise ShortageError(error.strerror) from error
        reason = _REASONS.get(error.errno or 0, error.strerror)
        code = 127 if error.errno == errno.ENOENT else 126
        raise CannotStartError(f"{program}: cannot be executed: {reason}", code) from error


def _program(words: list[str], environment: dict[str, str]) -> str:
    if not words:
        raise CannotStartError("the task's command is empty")
    try:
        return program_of(words[0], environment)
    except FileNotFoundError as error:
        raise CannotStartError(f"{words[0]}: no such program on the task's PATH", 127) from error
    except ValueError as error:
        raise CannotStartError(f"{words[0]!r}: not a program's name: {error}") from error


def _spawn(
    program: str,
    words: list[str],
    environment: dict[str, str],
    files: TaskFiles,
    stdin: int | None,
    reset: tuple[signal.Signals, ...],
) -> Child:
    """Start a program. `reset`: the signals that it does not ignore although the worker may."""
    null = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    try:
        pid = os.posix_spawn(
            program,
            words,
            environment,
            file_actions=(
                null if stdin is None else (os.POSIX_SPAWN_DUP2, stdin, 0),
                (os.POSIX_SPAWN_DUP2, files.out, 1),
                (os.POSIX_SPAWN_DUP2, files.err, 2),
            ),
            setsid=True,
            setsigdef=reset,
        )
    except NotImplementedError:  # Python was built for a C library without POSIX_SPAWN_SETSID
        import subprocess

        popen = subprocess.Popen(
            words,
            executable=program,
            env=environment,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=files.out,
            stderr=files.err,
            start_new_session=True,
        )
        return Child(popen.pid, popen)
    return Child(pid)


def plain_words(line: str) -> list[str] | None:
    """The words of a shell line in which the shell has nothing to do; None if it has, or may have.

    The first word is a path, hence no builtin, function or alias; no word is quoted, expanded or
    assigned. Starting such a line without a shell halves the cost of a short task.
    """
    return line.split() if _PLAIN.fullmatch(line) else None


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
