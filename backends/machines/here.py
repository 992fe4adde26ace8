"""Commands and files on this machine."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from plumbum import CommandNotFound, local

from adaptor.processes.commands import with_usual_limit
from adaptor.processes.talk import Talk
from adaptor.protocol.files.local import LOCAL_FILES
from adaptor.units import format_duration, format_size
from backends.base import SchedulerError
from backends.machines.base import CommandAnswer, CommandHung, Machine


class Here(Machine):
    where = "here"

    def __init__(self, additions: Mapping[str, str] | None = None) -> None:
        """`additions`: variables of the site's commands."""
        super().__init__(LOCAL_FILES)
        self._additions = dict(additions or {})

    def variables(self) -> dict[str, str]:
        return {**os.environ, **self._additions}

    def run(self, arguments: Sequence[str], variables: Mapping[str, str], timeout: float) -> CommandAnswer:
        program = arguments[0]
        # plumbum adds to the environment but cannot take away from it; `env -u` can.
        inherited = {*local.env.keys(), *os.environ} - set(variables)
        removals = [word for name in sorted(inherited) for word in ("-u", name)]
        first, *others = with_usual_limit(["env", *removals, *arguments])
        try:
            process: Any = local[first].popen(
                others,
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                new_session=True,  # its own process group, so that all of it can be killed
            )
        except (CommandNotFound, OSError) as error:
            raise SchedulerError(f"{program}: cannot be run here: {error}") from error
        try:
            printed, errors = printed_by(process, timeout)
        except subprocess.TimeoutExpired as error:
            kill_and_reap(process)
            raise CommandHung(
                f"{program} did not answer within {format_duration(timeout)} (command_timeout)"
            ) from error
        except TooMuchError as error:
            kill_and_reap(process)
            raise CommandHung(f"{program} {error}") from error
        return CommandAnswer(process.returncode, printed, errors.decode(errors="replace"))

    def start(self, arguments: Sequence[str]) -> Talk:
        errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the conversation)
        try:
            process = subprocess.Popen(
                list(arguments),
                bufsize=0,
                env=self.variables(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            errors.close()
            raise SchedulerError(f"{arguments[0]}: cannot be run here: {error}") from error
        return Talk(process, errors)

    def close(self) -> None:
        """Does nothing: nothing is held."""


HERE = Here()

_PIECE = 2**20  # bytes that are read at once
MOST_PRINTED = 512 * 2**20
"""Bytes that a command may print: several times what scontrol prints of 100,000 jobs."""
MOST_IN_A_LINE = 16 * 2**20
"""Bytes that it may print without the end of a line, or the NUL that ends a variable."""


class TooMuchError(Exception):
    """A command prints more than a scheduler does; the message says what."""


class _Pipe:
    """Output that has come through one pipe."""

    def __init__(self) -> None:
        self.found = io.BytesIO()
        self._in_line = 0

    def add(self, piece: memoryview) -> None:
        """Add a piece of output. Raises TooMuchError."""
        self.found.write(piece)
        data = piece.tobytes()
        end = max(data.rfind(b"\n"), data.rfind(b"\0"))
        self._in_line = self._in_line + len(data) if end < 0 else len(data) - end - 1
        for count, most, where in (
            (self.found.tell(), MOST_PRINTED, ""),
            (self._in_line, MOST_IN_A_LINE, " in one line"),
        ):
            if count > most:
                raise TooMuchError(f"was ended: it printed more than {format_size(most)}{where}")


def printed_by(process: Any, timeout: float, given: bytes = b"") -> list[bytes]:
    """Standard output and error of a process until its end, for which the call waits.

    `communicate` keeps all pieces until it joins them, which is twice the memory, and has no bound.

    Args:
        given: the process's standard input; empty: its standard input is no pipe.

    Raises:
        subprocess.TimeoutExpired: the process has not ended after `timeout` seconds.
        TooMuchError: the process printed more than MOST_PRINTED, or MOST_IN_A_LINE.
    """
    end, room = time.monotonic() + timeout, memoryview(bytearray(_PIECE))
    pipes = {process.stdout: _Pipe(), process.stderr: _Pipe()}
    with selectors.DefaultSelector() as open_pipes:
        for pipe, found in pipes.items():
            open_pipes.register(pipe, selectors.EVENT_READ, found)
            with contextlib.suppress(OSError):  # the kernel limits what a user has in pipes
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIECE)
        if given:
            os.set_blocking(process.stdin.fileno(), False)
            open_pipes.register(process.stdin, selectors.EVENT_WRITE)
        while open_pipes.get_map():
            ready = open_pipes.select(max(0.0, end - time.monotonic()))
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(process.args, timeout)
            for key, _ in ready:
                if key.data is None:
                    given = _given(process.stdin, given)
                    if not given:
                        open_pipes.unregister(key.fileobj)
                        process.stdin.close()
                elif count := os.readv(key.fd, [room]):
                    key.data.add(room[:count])
                else:
                    open_pipes.unregister(key.fileobj)
    for pipe in pipes:
        pipe.close()
    process.wait(timeout=max(0.0, end - time.monotonic()))
    return [pipe.found.getvalue() for pipe in pipes.values()]


def _given(stdin: Any, data: bytes) -> bytes:
    """Write a piece of the data; return the rest, which is empty if the process reads no more."""
    try:
        return data[os.write(stdin.fileno(), data[:_PIECE]) :]
    except BlockingIOError:
        return data
    except OSError:
        return b""


def kill_group(process: Any) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def kill_and_reap(process: Any) -> None:
    """Kill a process of a group of its own, with its children, and reap it."""
    kill_group(process)
    # A child that left the group may still hold the pipes: nothing waits for their ends.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=1)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
