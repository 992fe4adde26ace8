"""Process trees: find them, signal them and end them, in whatever session their processes run. Linux.

Every tree is found by one of two traces: its processes descend from a known process, or they carry a
marker in the environment that they were started with. A process whose parent ends becomes a child of
the nearest subreaper above it; workers and supervisors are subreapers, so nothing that they start can
leave their tree, not even by a double fork and `setsid`.

This module reads /proc and signals through pidfds; psutil meters what runs (`adaptor.worker.memory`).
Measured with 380 processes, reading all parents takes 9 ms here and 13 to 18 ms with psutil, and the
tree that is being ended may fork in the meantime. psutil checks a process id before it signals; a pidfd
cannot be given to another process at all. A prolog that frees a node also saves the import (24 ms).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Collection
from pathlib import Path

from adaptor.processes.environment import all_processes, carries
from adaptor.processes.identity import Process, is_there, process_of

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE = 5.0  # seconds that SIGKILL may take; a process in uninterruptible sleep outlives even that
_PAUSE = 0.005
_PROBES, _NEIGHBOURS = 50, 3
_QUIET_LOOKS = 3
"""Looks without a fresh child after which there is none: a look may miss one while others come and go."""


def become_subreaper() -> bool:
    """Make orphans among the descendants children of this process (prctl(2), Linux 3.4).

    Returns whether it took effect; elsewhere than on Linux nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return False
    prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    return prctl is not None and prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def child_pids() -> list[int]:
    """The children of this process's main thread, with zombies and adopted orphans."""
    path = f"/proc/self/task/{os.getpid()}/children"
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN: zombies are missing then
        return sorted(process.pid for process in all_processes() if process.parent == os.getpid())
    try:
        text = b""
        while part := os.read(handle, 65536):
            text += part
    finally:
        os.close(handle)
    return [int(pid) for pid in text.split()]


def descendants() -> list[Process]:
    """All living processes below this one, in any session; parents come before their children."""
    return find("", [os.getpid()])


def trees_of(leaders: Collection[int]) -> dict[int, list[Process]]:
    """The living processes of each of these children's trees, the child included.

    A process belongs to the leader of its session, else to the leader of its parent.
    """
    found: dict[int, list[Process]] = {leader: [] for leader in leaders}
    owner: dict[int, int] = {}
    for process in descendants():
        leader = process.session if process.session in found else owner.get(process.parent)
        if leader is not None:
            owner[process.pid] = leader
            found[leader].append(process)
    return found


def find(marker: str, roots: Collection[int] = ()) -> list[Process]:
    """The living processes of this user with this marker, the roots, and all below; never this process.

    What has lost marker and parents is found as long as it is in a session that a marked process began.

    Args:
        marker: the value of MARKER; empty: none counts.
        roots: process ids; this process's own stands for all below it.
    """
    table = {process.pid: process for process in all_processes()}
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    marked = _below([pid for pid in table if marker and carries(pid, marker)], children)
    found = _below([pid for pid in table if pid in roots] + _with_sessions(marked, table), children)
    return [table[pid] for pid in found if pid != os.getpid()]


def send(process: Process, number: int) -> None:
    """Signal a process if it still lives; a later process with its id is not hit."""
    with contextlib.suppress(OSError):
        if not hasattr(os, "pidfd_open"):
            if is_there(process):
                os.kill(process.pid, number)
            return
        handle = os.pidfd_open(process.pid)
        try:
            if is_there(process):
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def send_to_descendants(number: int) -> int:
    """Signal every living descendant of this process once. Returns how many there were."""
    # A look may miss a process whose parent ends at that very moment; the second look does not.
    living = descendants() or descendants()
    for process in living:
        send(process, number)
    return len(living)


def end_descendants() -> None:
    """Kill everything below this process, a subreaper, and wait for its death, some seconds at most."""
    until = time.monotonic() + _PATIENCE
    if child_pids():
        end_trees("", [os.getpid()], until - _PATIENCE / 2)
    # A chain of processes that fork and exit at once outruns every look at the whole table. But each of
    # them becomes a child of this process, the last in the list, and that look takes microseconds.
    killed: set[int] = set()
    quiet = 0
    while quiet < _QUIET_LOOKS and time.monotonic() < until:
        children = child_pids()
        fresh = [pid for pid in reversed(children) if pid not in killed]
        for pid in fresh:  # a child keeps its id until this process waits for it
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed.update(fresh)
        dying = any(_lives(pid) for pid in children)
        quiet = 0 if fresh or dying else quiet + 1
        if dying and not fresh:
            time.sleep(_PAUSE)


def end_trees(marker: str, roots: Collection[int] = (), until: float | None = None) -> int:
    """Kill everything that `find` finds with these arguments. Returns how many processes there were.

    All are stopped before any is killed: a stopped process starts nothing, and stays the parent by which
    its unmarked children are found.

    `until`: monotonic seconds up to which the call looks, and waits for their deaths; None: it looks until
    there are no more, and does not wait.
    """
    stopped: dict[int, Process] = {}
    # A look may miss a process whose parent ends at that very moment; the second look does not.
    while fresh := _fresh(marker, roots, stopped) or _fresh(marker, roots, stopped):
        for process in fresh:
            stopped[process.pid] = process
            send(process, signal.SIGSTOP)
        if not any(map(is_there, fresh)):
            end_chains(marker)
        if until is not None and time.monotonic() >= until:
            break
    for process in stopped.values():
        send(process, signal.SIGKILL)
    if until is not None:
        wait_for_death(stopped.values(), until)
    return len(stopped)


def wait_for_death(processes: Collection[Process], until: float) -> bool:
    """Returns whether all of them have died by `until` (monotonic seconds); a zombie is dead."""
    living = list(processes)
    while living := list(filter(is_there, living)):
        if time.monotonic() >= until:
            return False
        time.sleep(_PAUSE)
    return True


def _lives(child: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    return False


def end_chains(marker: str) -> None:
    """End a chain of marked processes that fork and exit at once, and are gone before a look is over.

    The kernel tells the process that it has made last; asking about that one takes microseconds.
    """
    for _ in range(_PROBES if marker else 0):
        last = int(Path("/proc/loadavg").read_text().split()[-1])
        for pid in range(last, max(last - _NEIGHBOURS, 1), -1):
            if carries(pid, marker) and (process := process_of(pid)) is not None:
                send(process, signal.SIGKILL)


def _fresh(marker: str, roots: Collection[int], known: Collection[int]) -> list[Process]:
    return [process for process in find(marker, roots) if process.pid not in known]


def _below(ahead: list[int], children: dict[int, list[int]]) -> dict[int, None]:
    """Ids of these processes and all below them, parents first."""
    found = dict.fromkeys(ahead)
    ahead = list(found)
    for pid in ahead:  # grows while it is read
        fresh = [child for child in children.get(pid, ()) if child not in found]
        found.update(dict.fromkeys(fresh))
        ahead += fresh
    return found


def _with_sessions(marked: dict[int, None], table: dict[int, Process]) -> list[int]:
    """And those that have lost mark and parents, and are still in a session that one of the marked began."""
    own = os.getsid(0)
    sessions = {table[pid].session for pid in marked} - {0, own}
    begun = {session for session in sessions if session in marked or session not in table}
    return [*marked, *(pid for pid, process in table.items() if process.session in begun)]
