"""Free a node of one user's use of it, as that user."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import NamedTuple

from adaptor.processes.environment import hides_processes, unknown_processes
from adaptor.processes.identity import Process, boot, host, is_alive, is_there, process_of, users_of
from adaptor.processes.trees import end_chains, end_trees, find, send, wait_for_death
from adaptor_donation_agents.folders import UserFolder
from adaptor_donation_agents.records import EndRequest, UseRecord, end_request_file, read_use, use_file

_KEEPER = b"adaptor_donation_agents.keeper"


class EndTimes(NamedTuple):
    """Monotonic seconds."""

    soft: float  # from then on, processes are killed
    hard: float  # from then on, nothing waits for them


class Freed(NamedTuple):
    """The outcome for one use."""

    tag: str  # empty: its record was damaged
    free: bool
    """True if nothing of it lives. Everything of the user was examined, unless its keeper ended it."""
    problems: tuple[str, ...]
    unclosed: UseRecord | None
    """The use, if its end note is still missing and none of its known processes lives."""


def free(folder: UserFolder, sign: str, node: str, request: EndRequest, limits: EndTimes) -> Freed | None:
    """End the use of a node. None: there is none, or not the one that `request` names.

    Asks the keeper first. If it is gone, stopped or slow, finds and kills all processes of the use.

    `sign`: the marker of its processes.
    """
    use, recorded = _recorded(folder, node)
    if request["tag"] and (use is None or use["tag"] != request["tag"]):
        return None
    tag = use["tag"] if use is not None else ""
    foreign = use is not None and (
        is_alive(use["keeper"]) and os.geteuid() not in users_of(use["keeper"]["pid"])
    )
    keeper = _keeper(use) if use is not None and not foreign else None
    asked = [keeper] if keeper is not None else _tops(find(sign) or find(sign))
    kept = keeper is not None or (bool(asked) and all(_is_keeper(process.pid) for process in asked))
    if not asked and not recorded:
        return None
    with contextlib.suppress(OSError):  # a full disk must not keep a node from being freed
        folder.write(end_request_file(node), {**request, "tag": tag})
    for process in asked:
        send(process, signal.SIGTERM)
        send(process, signal.SIGCONT)
    left = wait_for_death(asked, limits.soft)
    rest = _kill(sign, [] if left else asked, limits.hard)
    unclosed = use if folder.has(use_file(node)) else None
    clean = left and kept and unclosed is None
    doubt = ""
    if not clean:
        end_chains(sign)
        doubt = _elsewhere(use) or _doubt(_since(None if foreign else use))
        rest = rest or (_kill(sign, [], limits.hard) if find(sign) else [])
    if use is None and not rest:
        folder.remove(use_file(node))
    problems = _problems(tag, clean, rest, doubt)
    if foreign:
        problems = (f"the record of {tag} names a process that is not its agent's", *problems)
    return Freed(tag, not (rest or doubt), problems, None if rest or _elsewhere(use) else unclosed)


def _kill(sign: str, known: list[Process], until: float) -> list[Process]:
    """Processes of a use that cannot be killed by `until` (monotonic seconds)."""
    end_trees(sign, _living(known), until)
    return find(sign, _living(known))


def _living(processes: list[Process]) -> list[int]:
    return [process.pid for process in processes if is_there(process)]


def _since(use: UseRecord | None) -> int | None:
    """The earliest start of a process of the use, in ticks since boot; None: it is of an earlier boot.

    `use` is None where no record can be believed.
    """
    if use is None:
        return 0
    return use["keeper"]["ticks"] if use["keeper"]["boot"] == boot() else None


def _elsewhere(use: UseRecord | None) -> str:
    """Why a use that was not seen to end may live on another host; empty: it was on this one."""
    if use is None or use["keeper"]["host"] == host():
        return ""
    made = f"its record was made on {use['keeper']['host']}, and this is {host()}"
    return f"{made}: runtime_directory must be on a disk of each node"


def _doubt(since: int | None) -> str:
    """Why there may be more processes of a use than were found."""
    if since is None:
        return ""
    unknown = unknown_processes(since)
    if unknown:
        pids = ", ".join(str(process.pid) for process in unknown)
        return f"no environment can be read of {pids} of the same user, so that they may be of it"
    return "/proc (hidepid) keeps processes from this user" if hides_processes() else ""


def _problems(tag: str, clean: bool, rest: list[Process], doubt: str) -> tuple[str, ...]:
    name, found = name_of(tag), []
    if rest:
        pids = ", ".join(str(process.pid) for process in rest)
        found.append(f"processes of {name} cannot be killed: {pids}")
    elif not clean:
        found.append(f"the agent of {name} did not end it; its processes were killed")
    if doubt:
        found.append(f"{name} may not have left: {doubt}")
    return tuple(found)


def name_of(tag: str) -> str:
    return tag or "a use with a damaged record"


def _recorded(folder: UserFolder, node: str) -> tuple[UseRecord | None, bool]:
    """The record of the use, and whether there is one, damaged or not."""
    try:
        use = read_use(folder, node)
    except ValueError:
        return None, True
    return use, use is not None


def _keeper(use: UseRecord) -> Process | None:
    """The keeper of a use; None: it is dead."""
    keeper = use["keeper"]
    if not is_alive(keeper):
        return None
    return Process(keeper["pid"], parent=0, session=0, ticks=keeper["ticks"])


def _tops(marked: list[Process]) -> list[Process]:
    """The processes to ask if no record names the keeper: the keeper if it lives, else the topmost ones."""
    known = {process.pid for process in marked}
    tops = [process for process in marked if process.parent not in known]
    keepers = {process.parent for process in tops if _is_keeper(process.parent)}
    return [process for pid in keepers if (process := process_of(pid)) is not None] or tops


def _is_keeper(pid: int) -> bool:
    try:
        return os.geteuid() in users_of(pid) and _KEEPER in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
