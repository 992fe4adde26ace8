"""Free a node of the leases of all its users, each in a process that has become that user.

So nothing that a user has written can make root signal or write what the user could not.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from typing import Any, NamedTuple, NoReturn

from adaptor.node_agent.freeing import Limits, free
from adaptor.node_agent.lease import Call, close, end_of_call, lease_file, lock_file, marker
from adaptor.node_agent.place import Place
from adaptor.node_agent.runtime import ROOT, Runtime, open_runtime
from adaptor.processes.identity import start_ticks

NOTHING = "nothing is lent here"
_SOFT = 0.6
"""The part of the time after which what has not ended is killed."""
_HARD = 0.95
_NOBODY = 65534
_LONGEST = 60
"""Seconds that a process may need for writing an end down after its node is free."""


class Reclaim(NamedTuple):
    """What is to be taken back."""

    runtime: str
    node: str
    cause: str
    """`lease.RECLAIMED` or `lease.CANCELLED`."""
    job: str
    """The local job that it is for; may be empty."""
    tag: str
    """The only lease that is meant, one of our own; empty: all on the node."""


def reclaim(wanted: Reclaim, began: float, timeout: float) -> tuple[list[str], list[str]]:
    """Free the node: what was done, and what went wrong, in sentences. Takes `timeout` seconds at most.

    `began`: monotonic seconds.

    Raises:
        UnsafeError, OSError: the runtime folder cannot be looked at.
    """
    node = wanted.node
    limits = Limits(began + _SOFT * timeout, began + _HARD * timeout)
    since = time.time() - _age()
    try:
        runtime = open_runtime(wanted.runtime)
    except FileNotFoundError:
        return [f"{node}: {NOTHING}"], []
    with runtime:
        pipes = {_start(runtime, uid, wanted, since, limits): uid for uid in _lenders(runtime, wanted)}
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


def _lenders(runtime: Runtime, wanted: Reclaim) -> list[int]:
    """Users that have, or have had, something on the node."""
    own = os.geteuid()
    everybody = runtime.users() if own == ROOT and not wanted.tag else [own]
    return [uid for uid in everybody if _lends(runtime, uid, wanted.node)]


def _lends(runtime: Runtime, uid: int, node: str) -> bool:
    place = runtime.place(uid)
    if place is None:
        return False
    with place:
        return place.has(lease_file(node)) or place.has(lock_file(node))


def _start(runtime: Runtime, uid: int, wanted: Reclaim, since: float, limits: Limits) -> int:
    """A process that frees the node of a user; its answer can be read from what is returned."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        _work(runtime, uid, wanted, since, limits, writer)
    os.close(writer)
    return reader


def _work(runtime: Runtime, uid: int, wanted: Reclaim, since: float, limits: Limits, writer: int) -> NoReturn:
    try:
        os.setsid()  # a scheduler kills what its prolog has left behind in the same group
        signal.alarm(_LONGEST)
        _become(uid)
        place = runtime.place(uid)
        if place is not None:
            _free(place, uid, wanted, since, limits, writer)
    finally:
        os._exit(0)


def _free(place: Place, uid: int, wanted: Reclaim, since: float, limits: Limits, writer: int) -> None:
    node = wanted.node
    call = Call(tag=wanted.tag, cause=wanted.cause, job=wanted.job, since=since)
    try:
        freed = free(place, marker(wanted.runtime, uid, node), node, call, limits)
    except Exception as error:  # whatever it is, somebody has to hear of it
        _answer(writer, ["", False, [], f"user {uid}: {error!r}"])
        return
    if freed is not None:
        # The node is free from now on: whoever waits need not wait for the end to be written down.
        _answer(writer, [freed.tag, freed.clean, freed.living, ""])
        if freed.unclosed is not None and not freed.living:
            close(place, node, freed.unclosed, end_of_call(call))


def _become(uid: int) -> None:
    """For good."""
    if uid != os.geteuid():
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(uid, uid, uid)


def _answer(writer: int, answer: list[Any]) -> None:
    """Tag, whether its keeper ended it, processes that live on, and what went wrong; then let go of all."""
    os.write(writer, json.dumps(answer).encode())
    for stream in (writer, 0, 1, 2):
        os.close(stream)


def _collect(pipes: dict[int, int], until: float) -> tuple[list[Any], list[int]]:
    """The answers of those who found something, and the users whose process has not answered."""
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
    return tag or "a lease whose record is damaged"


def _age() -> float:
    """Seconds since this process was started."""
    ticks = start_ticks(os.getpid()) or 0
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
