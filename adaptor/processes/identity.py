"""Which process this is, safe against process ids that are used again. Standard library only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypedDict


class Identity(TypedDict):
    """Names one process of one machine for ever."""

    host: str
    boot: str
    """The kernel's id of this boot."""
    pid: int
    ticks: int
    """When it started, in clock ticks since boot."""


def host() -> str:
    return os.uname().nodename


def boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def own_identity() -> Identity:
    pid = os.getpid()
    ticks = start_ticks(pid)
    if ticks is None:
        raise OSError(f"/proc/{pid}/stat cannot be read; Linux's /proc is needed")
    return Identity(host=host(), boot=boot(), pid=pid, ticks=ticks)


def start_ticks(pid: int) -> int | None:
    """When a process started (in clock ticks); None if it is gone or a zombie."""
    found = parent_and_ticks(pid)
    return None if found is None else found[1]


def parent_and_ticks(pid: int) -> tuple[int, int] | None:
    """Its parent, and `starttime` of proc(5) in clock ticks; None if it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name, in brackets, may itself hold spaces and brackets; the state follows the last one.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else (int(fields[1]), int(fields[19]))


def is_here(identity: Identity) -> bool:
    """Whether it is a process of this machine since its last boot, alive or not."""
    return identity["host"] == host() and identity["boot"] == boot()


def is_alive(identity: Identity) -> bool:
    """Whether this very process of this machine lives."""
    return is_here(identity) and start_ticks(identity["pid"]) == identity["ticks"]
