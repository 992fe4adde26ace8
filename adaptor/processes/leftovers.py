"""Finds and ends processes whose supervisor can no longer do that. Standard library only, for speed.

They are known by a marker in the environment that they were started with, and by their ancestors.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from adaptor.processes.identity import parent_and_ticks, start_ticks

MARKER = "ADAPTOR_SUPERVISED"
"""The variable by which the processes of a worker are found again when its supervisor was killed."""
_PAUSE = 0.005


class Process(NamedTuple):
    """One process of this machine; `ticks` tell it from a later one with the same number."""

    pid: int
    parent: int
    ticks: int


def end_leftovers(marker: str, roots: Collection[int] = (), until: float | None = None) -> int:
    """Kill what `find` finds; returns how many.

    They are stopped before they are killed: what is stopped can start nothing, and stays the parent
    by which its unmarked children are found.

    Args:
        until: monotonic seconds up to which it is waited for their deaths; None: it is not.
    """
    stopped: dict[int, Process] = {}
    # A look may miss a process whose parent ends at that very moment, the second look does not.
    while fresh := _fresh(marker, roots, stopped) or _fresh(marker, roots, stopped):
        for process in fresh:
            stopped[process.pid] = process
            send(process, signal.SIGSTOP)
    for process in stopped.values():
        send(process, signal.SIGKILL)
    if until is not None:
        wait_for_death(stopped.values(), until)
    return len(stopped)


def find(marker: str, roots: Collection[int] = ()) -> list[Process]:
    """The processes of this user that carry a marker, the roots, and all below; never this process itself.

    Args:
        marker: empty: none counts.
        roots: numbers of processes; one's own stands for all below this process.
    """
    table = {process.pid: process for process in _all_processes()}
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    ahead = [pid for pid in table if pid in roots or (marker and _carries(pid, marker))]
    while ahead:
        pid = ahead.pop()
        if pid not in found:
            found.add(pid)
            ahead += children.get(pid, ())
    return [table[pid] for pid in found if pid != os.getpid()]


def _fresh(marker: str, roots: Collection[int], known: Collection[int]) -> list[Process]:
    return [process for process in find(marker, roots) if process.pid not in known]


def process_of(pid: int) -> Process | None:
    """None: it is gone, or a zombie."""
    found = parent_and_ticks(pid)
    return None if found is None else Process(pid, *found)


def send(process: Process, number: signal.Signals) -> None:
    """Signal a process that still lives; one that was given its number meanwhile is not hit."""
    with contextlib.suppress(OSError):
        if not hasattr(os, "pidfd_open"):
            if start_ticks(process.pid) == process.ticks:
                os.kill(process.pid, number)
            return
        handle = os.pidfd_open(process.pid)
        try:
            if start_ticks(process.pid) == process.ticks:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def wait_for_death(processes: Collection[Process], until: float) -> bool:
    """Whether all of them have died by then (monotonic seconds); a zombie is dead."""
    living = list(processes)
    while living := [process for process in living if start_ticks(process.pid) == process.ticks]:
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE)
    return True


def _all_processes() -> Iterator[Process]:
    """Without zombies."""
    for name in os.listdir("/proc"):  # noqa: PTH208  (a path object for each would take twice as long)
        if name.isdigit() and (process := process_of(int(name))) is not None:
            yield process


def _carries(pid: int, marker: str) -> bool:
    entry = f"{MARKER}={marker}".encode(errors="surrogateescape")
    try:
        folder = Path("/proc", str(pid))
        own = folder.stat().st_uid == os.getuid()
        return own and entry in (folder / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
