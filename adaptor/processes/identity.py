"""Identity of a process, safe against process ids that are used again. Standard library only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, TypedDict


class Identity(TypedDict):
    """Names one process of one machine; never used again."""

    host: str
    boot: str  # the kernel's id of this boot
    pid: int
    ticks: int  # start, in clock ticks since boot


class Process(NamedTuple):
    """One process of this machine since its last boot; `ticks` tell it from a later one with the same id."""

    pid: int
    parent: int
    session: int
    ticks: int  # start, in clock ticks since boot


def host() -> str:
    return os.uname().nodename


def boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def own_identity() -> Identity:
    """Identity of this process. Raises OSError: this machine has no /proc as Linux has it."""
    pid = os.getpid()
    ticks = start_ticks(pid)
    if ticks is None:
        raise OSError(f"/proc/{pid}/stat cannot be read; the adaptor needs Linux's /proc")
    return Identity(host=host(), boot=boot(), pid=pid, ticks=ticks)


def process_of(pid: int) -> Process | None:
    """The process with this id; None: it is gone, a zombie, or a thread of the kernel."""
    fields = _stat_fields(pid)
    if not fields:
        return None
    # A process whose first thread has ended before the others looks like a zombie.
    ended = fields[_STATE] in (b"Z", b"X") and int(fields[_THREADS]) <= 1
    if ended or int(fields[_FLAGS]) & _PF_KTHREAD:
        return None
    return Process(pid, int(fields[_PARENT]), int(fields[_SESSION]), int(fields[_TICKS]))


def state_of(pid: int) -> bytes:
    """The letter of proc(5); empty: it is gone."""
    fields = _stat_fields(pid)
    return fields[_STATE] if fields else b""


def _stat_fields(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on; none: it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return []
    # proc(5). The name, in brackets, may itself hold spaces and brackets; the state follows the last one.
    return stat[stat.rindex(b")") + 2 :].split(None, 20)


def users_of(pid: int) -> frozenset[int]:
    """Real, effective and saved user of a process; empty: it is gone or hidden."""
    try:
        text = Path(f"/proc/{pid}/status").read_bytes()
    except OSError:
        return frozenset()
    line = next((line for line in text.splitlines() if line.startswith(b"Uid:")), b"Uid:")
    return frozenset(int(uid) for uid in line.split()[1:4])


_STATE, _PARENT, _SESSION, _FLAGS, _THREADS, _TICKS = 0, 1, 3, 6, 17, 19
_PF_KTHREAD = 0x00200000


def start_ticks(pid: int) -> int | None:
    """Start of a process in clock ticks since boot; None: it is gone or a zombie."""
    found = process_of(pid)
    return None if found is None else found.ticks


def is_there(process: Process) -> bool:
    """Whether this very process lives; its parent and its session may have changed."""
    return start_ticks(process.pid) == process.ticks


def is_here(identity: Identity) -> bool:
    """Whether it is a process of this machine since its last boot, alive or not."""
    return identity["host"] == host() and identity["boot"] == boot()


def is_alive(identity: Identity) -> bool:
    """Whether this very process of this machine lives."""
    return is_here(identity) and start_ticks(identity["pid"]) == identity["ticks"]
