"""Free a node of all uses, each in a process that has become the user whose use it is.

So no record of a user can make root signal or write what the user could not.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from typing import Any, NamedTuple, NoReturn

from adaptor.node_agent.free_user import EndTimes, free
from adaptor.node_agent.runtime_folder import ROOT, RuntimeFolder, open_runtime
from adaptor.node_agent.use import EndRequest, close, lock_file, marker, requested_end, use_file
from adaptor.node_agent.user_folder import UserFolder
from adaptor.processes.identity import start_ticks

NOTHING = "not in use"
_SOFT = 0.6
"""The part of the time limit after which processes are killed."""
_HARD = 0.95
_NOBODY = 65534
_LONGEST = 60
"""Seconds for writing an end note after the node is free."""


class Reclaim(NamedTuple):
    """Which uses of a node to end, and why."""

    runtime: str
    node: str
    cause: str
    """`RECLAIMED` or `CANCELLED` of `use.py`."""
    job: str
    """The local job that needs the node; may be empty."""
    tag: str
    """The only use to end, one of this user; empty: all on the node."""


def reclaim(wanted: Reclaim, began: float, timeout: float) -> tuple[list[str], list[str]]:
    """Free the node within `timeout` seconds. Returns what was done and what went wrong, in sentences.

    `began`: monotonic seconds.

    Raises:
        UnsafeError, OSError: the runtime folder cannot be read.
    """
    node = wanted.node
    limits = EndTimes(began + _SOFT * timeout, began + _HARD * timeout)
    since = time.time() - _age()
    try:
        runtime = open_runtime(wanted.runtime)
    except FileNotFoundError:
        return [f"{node}: {NOTHING}"], []
    with runtime:
        pipes = {_start(runtime, uid, wanted, since, limits): uid for uid in _users(runtime, wanted)}
    answers, silent = _collect(pipes, began + timeout)
    took = time.time() - since
    lines = [
        f"{node}: freed of {_name(tag)} in {took:.2f} s"
        for tag, _, living, why in answers
        if not (living or why)
    ]
    problems = [problem for answer in answers if (problem := _problem(node, answer))]
    problems += [f"{node}: user {uid} has not freed it within {timeout:g} s" for uid in silent]
    return lines if lines or problems else [f"{node}: {NOTHING}"], problems


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
        return folder.has(use_file(node)) or folder.has(lock_file(node))


def _start(runtime: RuntimeFolder, uid: int, wanted: Reclaim, since: float, limits: EndTimes) -> int:
    """Start a process that frees the node of a user. Returns the descriptor for reading its answer."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        _work(runtime, uid, wanted, since, limits, writer)
    os.close(writer)
    return reader


def _work(
    runtime: RuntimeFolder, uid: int, wanted: Reclaim, since: float, limits: EndTimes, writer: int
) -> NoReturn:
    try:
        os.setsid()  # a scheduler kills what its prolog leaves in the same process group
        signal.alarm(_LONGEST)
        _become(uid)
        folder = runtime.user_folder(uid)
        if folder is not None:
            _free(folder, uid, wanted, since, limits, writer)
    finally:
        os._exit(0)


def _free(folder: UserFolder, uid: int, wanted: Reclaim, since: float, limits: EndTimes, writer: int) -> None:
    node = wanted.node
    request = EndRequest(tag=wanted.tag, cause=wanted.cause, job=wanted.job, since=since)
    try:
        freed = free(folder, marker(wanted.runtime, uid, node), node, request, limits)
    except Exception as error:  # whatever it is, report it
        _answer(writer, ["", False, [], f"user {uid}: {error!r}"])
        return
    if freed is not None:
        # The node is free now: the prolog need not wait for the end note.
        _answer(writer, [freed.tag, freed.clean, freed.living, ""])
        if freed.unclosed is not None and not freed.living:
            close(folder, node, freed.unclosed, requested_end(request))


def _become(uid: int) -> None:
    """Become this user, for good."""
    if uid != os.geteuid():
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(uid, uid, uid)


def _answer(writer: int, answer: list[Any]) -> None:
    """Send tag, whether the keeper ended it, processes still alive, and the problem; close all streams."""
    os.write(writer, json.dumps(answer).encode())
    for stream in (writer, 0, 1, 2):
        os.close(stream)


def _collect(pipes: dict[int, int], until: float) -> tuple[list[Any], list[int]]:
    """The answers about uses, and the users whose process has not answered."""
    waiting = dict(pipes)
    said = dict.fromkeys(pipes, b"")
    while waiting and (left := until - time.monotonic()) > 0:
        for reader in select.select(list(waiting), [], [], left)[0]:
            part = os.read(reader, 65536)
            said[reader] += part
            if not part:
                del waiting[reader]
    answers = [json.loads(text) for reader, text in said.items() if text and reader not in waiting]
    return answers, list(waiting.values())


def _problem(node: str, answer: Any) -> str:
    tag, clean, living, why = answer
    if why:
        return f"{node}: {why}"
    if living:
        return f"{node}: processes of {_name(tag)} cannot be killed: {', '.join(map(str, living))}"
    return "" if clean else f"{node}: the keeper of {_name(tag)} did not end it; its processes were killed"


def _name(tag: str) -> str:
    return tag or "a use with a damaged record"


def _age() -> float:
    """Seconds since this process was started."""
    ticks = start_ticks(os.getpid()) or 0
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
