"""Free a node of one user's use of it, as that user."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

from adaptor.node_agent.use import EndRequest, Use, end_request_file, read_use, use_file
from adaptor.node_agent.user_folder import UserFolder
from adaptor.processes.identity import Identity, Process, is_alive, process_of
from adaptor.processes.trees import end_trees, find, send, wait_for_death

_KEEPER = b"adaptor.node_agent.keeper"


class EndTimes(NamedTuple):
    """Monotonic seconds."""

    soft: float
    """From then on, processes are killed."""
    hard: float
    """From then on, nothing waits for them."""


class Freed(NamedTuple):
    """The outcome for one use."""

    tag: str
    """Empty: its record was damaged."""
    clean: bool
    """Whether its keeper ended it in time."""
    living: tuple[int, ...]
    """Processes that could not be killed in time."""
    unclosed: Use | None
    """The use, if its end note is still missing."""


def free(folder: UserFolder, sign: str, node: str, request: EndRequest, limits: EndTimes) -> Freed | None:
    """End the use of a node. None: there is none, or not the one that `request` names.

    Asks the keeper first. If it is gone, stopped or slow, finds and kills all processes of the use.

    Args:
        sign: the marker of its processes.
    """
    use, recorded = _recorded(folder, node)
    if request["tag"] and (use is None or use["tag"] != request["tag"]):
        return None
    tag = use["tag"] if use is not None else ""
    keeper = _process(use["keeper"]) if use is not None and is_alive(use["keeper"]) else None
    asked = [keeper] if keeper is not None else _tops(find(sign))
    if not asked and not recorded:
        return None
    with contextlib.suppress(OSError):  # a full disk must not keep a node from being freed
        folder.write(end_request_file(node), {**request, "tag": tag})
    for process in asked:
        send(process, signal.SIGTERM)
        send(process, signal.SIGCONT)
    clean = wait_for_death(asked, limits.soft)
    rest = find(sign, [process.pid for process in asked if not clean])
    if rest:
        end_trees(sign, [process.pid for process in rest], until=limits.hard)
        rest = [process for process in rest if not wait_for_death([process], time.monotonic())]
    unclosed = use if folder.has(use_file(node)) else None
    if use is None and not rest:
        folder.remove(use_file(node))
    return Freed(tag, clean and unclosed is None, tuple(process.pid for process in rest), unclosed)


def _recorded(folder: UserFolder, node: str) -> tuple[Use | None, bool]:
    """The record of the use, and whether there is one, damaged or not."""
    try:
        use = read_use(folder, node)
    except ValueError:
        return None, True
    return use, use is not None


def _process(keeper: Identity) -> Process:
    return Process(keeper["pid"], parent=0, session=0, ticks=keeper["ticks"])


def _tops(marked: list[Process]) -> list[Process]:
    """The processes to ask if no record names the keeper: the keeper if it lives, else the topmost ones."""
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
