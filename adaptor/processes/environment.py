"""Environments with which processes were started. Linux; the standard library only."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from adaptor.processes.identity import Process, is_there, process_of, users_of

MARKER = "ADAPTOR_SUPERVISED"  # the environment variable whose value marks the processes of one worker
LOOKING = 1 << 19 | 1 << 2
"""CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: what it takes to see the environments of all processes."""
_ROOT = 0
_LOOKS = 4  # a process that is in its exec(2) has no environment for a moment
_PAUSE = 0.003


def variables_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty if it cannot be read."""
    entries = (os.fsdecode(entry).partition("=") for entry in (_environment(pid) or b"").split(b"\0"))
    return {name: value for name, equals, value in entries if equals}


def carries(pid: int, marker: str) -> bool:
    """Whether it is a process of this user, and is seen to have been started with this value of MARKER."""
    if not _is_own(pid):
        return False
    entry = f"{MARKER}={marker}".encode(errors="surrogateescape")
    return entry in (_environment(pid) or b"").split(b"\0")


def unknown_processes(since: int) -> list[Process]:
    """Processes of this user whose environment cannot be read, so that any of them may be marked.

    Processes above this one, and those that were started before `since` (ticks since boot), are left out.
    """
    above = set(_own_line())
    found = [process for process in all_processes() if process.ticks >= since and process.pid not in above]
    found = [process for process in found if _is_own(process.pid)]
    for _ in range(_LOOKS):
        found = [each for each in found if not _environment(each.pid) and is_there(each)]
        if not found:
            return []
        time.sleep(_PAUSE)
    return found


def hides_processes() -> bool:
    """Whether the kernel keeps processes from this one, among them perhaps some of this user."""
    lines = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    hides = any(" /proc " in line and "hidepid=" in line and "hidepid=0" not in line for line in lines)
    return hides and capabilities() & LOOKING != LOOKING


def capabilities() -> int:
    """The effective ones, as bits."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if "CapEff:" in line)
    return int(line.split()[1], 16)


def all_processes() -> Iterator[Process]:
    """All processes without zombies and threads of the kernel; the youngest first, which may be gone soon."""
    names = os.listdir("/proc")  # noqa: PTH208  (a path object for each would take twice as long)
    for name in reversed(names):
        if name.isdigit() and (process := process_of(int(name))) is not None:
            yield process


def _is_own(pid: int) -> bool:
    own = os.geteuid()
    try:
        runs_as = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116  (for hundreds)
    except OSError:
        return False
    # Root's may be a program that this user has started and that became root (setuid).
    return runs_as == own or (runs_as == _ROOT and own in users_of(pid))


def _environment(pid: int) -> bytes | None:
    """Environment of a process; None: it may not be read. Empty: there is none, or no such process."""
    data = _read(f"/proc/{pid}/environ")
    if data != b"":
        return data
    # The first thread of a process may have ended before the others: only these still have it then.
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
    except OSError:
        return b""
    return next((found for thread in threads if (found := _read(f"/proc/{pid}/task/{thread}/environ"))), b"")


def _read(path: str) -> bytes | None:
    """Content of a file; None: it may not be read. Empty: it is gone."""
    try:
        return Path(path).read_bytes()
    except PermissionError:
        return None
    except OSError:
        return b""


def _own_line() -> Iterator[int]:
    """Ids of this process and those above it."""
    pid = os.getpid()
    while pid:
        yield pid
        process = process_of(pid)
        pid = process.parent if process is not None else 0
