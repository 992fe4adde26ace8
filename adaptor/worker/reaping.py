"""Children that have ended, whose they were, and signals that may find nobody."""

from __future__ import annotations

import contextlib
import os

from adaptor.processes import descendants as processes
from adaptor.protocol.messages import AttemptKey


def ended_child() -> int | None:
    """A child that has ended and is not waited for yet."""
    try:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return ended.si_pid if ended else None


def attempt_of(pid: int) -> AttemptKey | None:
    """The attempt that a process was started for, by its environment."""
    variables = processes.variables_of(pid)
    try:
        names = ("ADAPTOR_BAG_ID", "ADAPTOR_TASK_ID", "ADAPTOR_ATTEMPT")
        return AttemptKey(*(int(variables[name]) for name in names))
    except (KeyError, ValueError):
        return None


def signal_process(pid: int, sig: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, sig)


def signal_group(leader: int, sig: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, sig)
