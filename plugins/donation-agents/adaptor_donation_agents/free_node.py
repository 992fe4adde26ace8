"""Free a node of all uses, each in a process that has become the user whose use it is.

So no record of a user can make root signal or write what the user could not. Root becomes a user for good: it
may do what that user may, and sees all that the user runs. Reading an environment takes more than the user's
number: the same group, and a process that may be dumped. So the right to look at any process is kept, and
given up when looking is over. Linux.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from adaptor.processes.environment import LOOKING, capabilities
from adaptor.processes.identity import start_ticks
from adaptor_donation_agents import records
from adaptor_donation_agents.folders import ROOT, RuntimeFolder, open_runtime
from adaptor_donation_agents.free_user import EndTimes, free, name_of

_SOFT = 0.6  # the part of the time limit after which processes are killed
_HARD = 0.85
"""The part of it after which nothing waits for their deaths: a last look and the answer need time, too."""
_LONGEST = 60  # seconds for writing an end note after the node is free
_NOBODY = 65534
_NO_USER = 2**32 - 3
"""The real and the saved user. The user that this process becomes could end or stop it if they were his."""
_PR_SET_DUMPABLE = 4
_PR_SET_KEEPCAPS = 8
_VERSION = 0x20080522  # of capset(2) with 64 capabilities


class _Answer(NamedTuple):
    """The end of one use."""

    tag: str
    free: bool
    problems: list[str]


class Reclaim(NamedTuple):
    """Uses of a node to end, and the cause."""

    runtime: str
    node: str
    cause: str  # `RECLAIMED` or `CANCELLED` of `use.py`
    job: str  # the local job that needs the node; may be empty
    tag: str  # the only use to end, one of this user; empty: all on the node


def reclaim(wanted: Reclaim, began: float, timeout: float) -> tuple[list[str], list[str]]:
    """Free the node within `timeout` seconds. Returns what was done and what went wrong, in sentences.

    `began`: monotonic seconds.

    Raises UnsafeError, OSError: the runtime folder cannot be read.
    """
    node = wanted.node
    limits = EndTimes(began + _SOFT * timeout, began + _HARD * timeout)
    # Seconds since this process was started.
    ticks = start_ticks(os.getpid()) or 0
    since = time.time() - max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    try:
        runtime = open_runtime(wanted.runtime)
    except FileNotFoundError:
        return [f"{node}: {records.NOTHING}"], []
    with runtime:
        pipes = {_start(runtime, uid, wanted, since, limits): uid for uid in _users(runtime, wanted)}
    answers, problems = _collect(pipes, began + timeout)
    took = time.time() - since
    lines = [f"{node}: freed of {name_of(each.tag)} in {took:.2f} s" for each in answers if each.free]
    problems = [problem for each in answers for problem in each.problems] + problems
    if not lines and not problems:
        lines = [f"{node}: {records.NOTHING}"]
    return lines, [f"{node}: {problem}" for problem in problems]


def _users(runtime: RuntimeFolder, wanted: Reclaim) -> list[int]:
    """The users that use the node, or have used it."""
    own = os.geteuid()
    everybody = runtime.users() if own == ROOT and not wanted.tag else [own]
    return [uid for uid in everybody if _has_used(runtime, uid, wanted.node)]


def _has_used(runtime: RuntimeFolder, uid: int, node: str) -> bool:
    folder = runtime.user_folder(uid)
    if folder is None:
        return False
    with folder:
        return folder.has(records.use_file(node)) or folder.has(records.lock_file(node))


def _start(runtime: RuntimeFolder, uid: int, wanted: Reclaim, since: float, limits: EndTimes) -> int:
    """Start a process that frees the node of a user. Returns the descriptor for reading its answer."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        try:
            os.setsid()  # a scheduler kills what its prolog leaves in the same process group
            signal.alarm(_LONGEST)
            _free(runtime, uid, wanted, since, limits, writer)
        except Exception as error:  # whatever it is, report it
            _answer(writer, _Answer("", False, [f"nothing is known of user {uid}: {error!r}"]))
        finally:
            os._exit(0)
    os.close(writer)
    return reader


def _free(
    runtime: RuntimeFolder, uid: int, wanted: Reclaim, since: float, limits: EndTimes, writer: int
) -> None:
    become(uid)
    folder = runtime.user_folder(uid)
    if folder is None:
        _answer(writer, None)
        return
    node = wanted.node
    request = records.EndRequest(tag=wanted.tag, cause=wanted.cause, job=wanted.job, since=since)
    freed = free(folder, records.marker(wanted.runtime, uid, node), node, request, limits)
    stop_looking()
    # The node is free now: the prolog need not wait for the end note.
    _answer(writer, freed and _Answer(freed.tag, freed.free, list(freed.problems)))
    if freed is not None and freed.unclosed is not None:
        end = records.requested_end(request)
        # While it is not certain that all of it has left, the record makes the next prolog look again.
        if freed.free:
            records.close(folder, node, freed.unclosed, end)
        else:
            records.note_end(freed.unclosed, end)


def _answer(writer: int, answer: _Answer | None) -> None:
    """Send what became of a use, None if there is none; close all streams."""
    with contextlib.suppress(OSError):  # answered already
        os.write(writer, json.dumps(answer).encode())
        for stream in (writer, 0, 1, 2):
            os.close(stream)


def _collect(pipes: dict[int, int], until: float) -> tuple[list[_Answer], list[str]]:
    """The answers about uses, and what is wrong with the users without one."""
    waiting = dict(pipes)
    said = dict.fromkeys(pipes, b"")
    while waiting and (left := until - time.monotonic()) > 0:
        for reader in select.select(list(waiting), [], [], left)[0]:
            part = os.read(reader, 65536)
            said[reader] += part
            if not part:
                del waiting[reader]
    answers, problems = [], []
    for reader, uid in pipes.items():
        if reader in waiting:
            problems.append(f"user {uid} has not freed it in time")
            continue
        try:
            answer = json.loads(said[reader])
        except ValueError:  # killed: what is left is not known
            problems.append(f"what frees it of user {uid} died before it answered")
            continue
        if answer is not None:
            answers.append(_Answer(*answer))
    return answers, problems


def become(uid: int) -> None:
    """For good; signals, files and folders are this user's from now on. Call it in a process with one thread.

    Raises OSError: the kernel refuses.
    """
    if uid == os.geteuid():
        return
    had = capabilities()  # in a container root may not have all
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
    _must(_libc().prctl, _PR_SET_KEEPCAPS, 1, 0, 0, 0)
    try:
        os.setresuid(_NO_USER, uid, _NO_USER)
    except OSError:  # a user namespace without that number
        os.setresuid(uid, uid, uid)
    _must(_libc().prctl, _PR_SET_DUMPABLE, 0, 0, 0, 0)
    if not _keep_only(had & LOOKING):
        stop_looking()


def stop_looking() -> None:
    """Give the right to look at all processes up: paths that the user names are followed without it.

    Raises OSError: the kernel refuses.
    """
    if os.geteuid() and not _keep_only(0):
        raise OSError(ctypes.get_errno(), "capabilities cannot be given up")


def _keep_only(wanted: int) -> bool:
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    low, high = wanted & 0xFFFFFFFF, wanted >> 32
    content = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)  # effective, permitted, inheritable
    return bool(_libc().capset(header, content) == 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _must(call: Callable[..., int], *arguments: int) -> None:
    if call(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{call.__name__} failed")
