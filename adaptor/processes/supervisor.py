"""Supervise one worker, from its start to the end of its last process.

The supervisor is a process that outlives the one that started it. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from adaptor.private_files import open_log
from adaptor.processes.trees import become_subreaper, end_descendants

SIGNALS = frozenset({signal.SIGCHLD, signal.SIGTERM})
"""Signals for which a supervisor waits; block them before it announces itself."""
WALLTIME = "walltime"
TOLD = "told"

_DEFAULT_IN_WORKER = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ)
_PR_SET_PDEATHSIG = 1


def run(
    command: Sequence[str],
    environment: dict[str, str],
    directory: str,
    *,
    deadline: float,
    grace: float,
    prepare: Callable[[], None] | None = None,
) -> tuple[int, str]:
    """Run a worker until nothing of it lives.

    Args:
        deadline: monotonic seconds at which the supervisor ends it.
        grace: seconds between SIGTERM and SIGKILL.
        prepare: called in the worker's process before it becomes the worker.

    Returns:
        Its exit code (negative: the signal that ended it), and the cause: WALLTIME, TOLD (by SIGTERM), or
        empty if it ended without being told to.
    """
    become_subreaper()
    supervisor = os.getpid()
    worker = os.fork()
    if worker == 0:
        _become_worker(command, environment, directory, prepare, supervisor)
    status, cause = _attend(worker, deadline, grace)
    end_descendants()
    return os.waitstatus_to_exitcode(status), cause


def redirect_output(path: Path) -> None:
    """Send what worker and supervisor print to a 0600 file. Raises OSError."""
    handle = open_log(path)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    os.close(handle)


def _attend(worker: int, deadline: float, grace: float) -> tuple[int, str]:
    """Wait for the worker, and end it at the deadline or at SIGTERM: its wait status and the cause."""
    cause = ""
    while True:
        status = _reap().get(worker)
        if status is not None:
            return status, cause
        came = signal.sigtimedwait(SIGNALS, max(0.0, deadline - time.monotonic()))
        if came is not None and (came.si_signo == signal.SIGCHLD or cause):
            continue
        if not cause:
            cause = WALLTIME if came is None else TOLD
            os.kill(worker, signal.SIGTERM)
        else:
            end_descendants()
        deadline = time.monotonic() + grace


def _reap() -> dict[int, int]:
    """The wait statuses of all children that have ended."""
    ended: dict[int, int] = {}
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return ended
            ended[pid] = status
    except ChildProcessError:
        return ended


def _become_worker(
    command: Sequence[str],
    environment: dict[str, str],
    directory: str,
    prepare: Callable[[], None] | None,
    supervisor: int,
) -> NoReturn:
    try:
        os.setsid()
        # If the supervisor is killed, the kernel sends the worker SIGTERM: nothing else would end it in time.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != supervisor:
            os._exit(1)
        for number in _DEFAULT_IN_WORKER:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if prepare is not None:
            prepare()
        os.chdir(directory)
        os.execvpe(command[0], list(command), environment)  # noqa: S606 (no shell)
    except OSError as error:
        os.write(2, f"{command[0]}: cannot be started: {error}\n".encode())
    finally:
        os._exit(127)


SayToParent = Callable[[str], None]
"""Sends the answer to the process that waits in `in_background`; call it once."""


def in_background(work: Callable[[SayToParent], None]) -> str:
    """Do `work` in a detached process. Returns its answer; empty if it died before it answered."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        code = 1
        try:
            # Leave the terminal, the session and the folder of the starting process.
            os.setsid()
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            os.chdir("/")
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            os.close(null)
            work(lambda words: _say(writer, words))
            code = 0
        finally:
            os._exit(code)  # run no cleanup of the process that forked this one
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        return answers.read().decode(errors="replace")


def _say(writer: int, words: str) -> None:
    os.write(writer, words.encode())
    os.close(writer)
