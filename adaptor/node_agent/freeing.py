"""Free one node of what one user runs on it, as that user."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

from adaptor.node_agent.lease import Call, Lease, call_file, lease_file, read_lease
from adaptor.node_agent.place import Place
from adaptor.processes.identity import Identity, Process, is_alive, process_of
from adaptor.processes.trees import end_trees, find, send, wait_for_death

_KEEPER = b"adaptor.node_agent.keeper"


class Limits(NamedTuple):
    """Monotonic seconds."""

    soft: float
    """From then on what has not ended is killed."""
    hard: float
    """From then on it is not waited for any more."""


class Freed(NamedTuple):
    """What became of a lease."""

    tag: str
    """Empty: its record was damaged."""
    clean: bool
    """Whether its keeper ended it in good order."""
    living: tuple[int, ...]
    """Processes that could not be killed in time."""
    unclosed: Lease | None
    """Whose end nobody has written down yet."""


def free(place: Place, sign: str, node: str, call: Call, limits: Limits) -> Freed | None:
    """End the lease of a node; None: there is none, or it is not the one that `call` names.

    The keeper is asked first. Where it is gone, stopped or slow, all its processes are found and killed.

    Args:
        sign: the marker of its processes.
    """
    lease, recorded = _recorded(place, node)
    if call["tag"] and (lease is None or lease["tag"] != call["tag"]):
        return None
    tag = lease["tag"] if lease is not None else ""
    keeper = _process(lease["keeper"]) if lease is not None and is_alive(lease["keeper"]) else None
    asked = [keeper] if keeper is not None else _tops(find(sign))
    if not asked and not recorded:
        return None
    with contextlib.suppress(OSError):  # a full disk must not keep a node from being freed
        place.write(call_file(node), {**call, "tag": tag})
    for process in asked:
        send(process, signal.SIGTERM)
        send(process, signal.SIGCONT)
    clean = wait_for_death(asked, limits.soft)
    rest = find(sign, [process.pid for process in asked if not clean])
    if rest:
        end_trees(sign, [process.pid for process in rest], until=limits.hard)
        rest = [process for process in rest if not wait_for_death([process], time.monotonic())]
    unclosed = lease if place.has(lease_file(node)) else None
    if lease is None and not rest:
        place.remove(lease_file(node))
    return Freed(tag, clean and unclosed is None, tuple(process.pid for process in rest), unclosed)


def _recorded(place: Place, node: str) -> tuple[Lease | None, bool]:
    """The record of a lease, and whether there is one, be it damaged."""
    try:
        lease = read_lease(place, node)
    except ValueError:
        return None, True
    return lease, lease is not None


def _process(keeper: Identity) -> Process:
    return Process(keeper["pid"], parent=0, session=0, ticks=keeper["ticks"])


def _tops(marked: list[Process]) -> list[Process]:
    """Whom to ask where no record names the keeper: itself, if it lives, else those below nobody."""
    known = {process.pid for process in marked}
    tops = [process for process in marked if process.parent not in known]
    keepers = {process.parent for process in tops if _is_keeper(process.parent)}
    return [process for pid in keepers if (process := process_of(pid)) is not None] or tops


def _is_keeper(pid: int) -> bool:
    try:
        folder = Path("/proc", str(pid))
        return folder.stat().st_uid == os.geteuid() and _KEEPER in (folder / "cmdline").read_bytes()
    except OSError:
        return False
