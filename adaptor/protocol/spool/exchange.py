"""One exchange of files between the daemon and a spool: remove, write, sweep and read in one request.

An exchange is one request and one reply, so a spool at the other end of an ssh connection costs one
round trip. `DirectorySpool` serves a folder of this machine. `RemoteSpool` serves a folder of another
machine, where `python -m adaptor.protocol.spool.remote_server` carries the exchanges out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import msgspec

from adaptor.errors import AdaptorError


class SpoolError(AdaptorError):
    """The spool cannot be used now. The exchange may be done in part; repeating it does no harm."""


class DaemonFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that the daemon writes for one connection of a worker."""

    connection: str
    name: str
    data: bytes


class WorkerFile(msgspec.Struct, frozen=True, array_like=True):
    """A file that a worker has written for the daemon."""

    name: str
    data: bytes


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request of the daemon, served in this order: remove, write, sweep, read."""

    remove: list[str] = []
    """Names of worker files that the daemon has taken in."""
    write: list[DaemonFile] = []
    pilots: list[int] | None = None
    """The pilots in the system; connections of all others are removed. None: nothing is swept."""
    collect: bool = True
    """Whether to read what workers have written."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The reply to an exchange."""

    files: list[WorkerFile] = []
    """All worker files in the spool, sorted by number, those of earlier replies included (unless `more`)."""
    more: bool = False
    """Whether the reply leaves some worker files out for the next exchange."""
    gone: list[str] = []
    """Connections in `write` that their worker has removed."""
    full: list[str] = []
    """Connections in `write` whose worker has left too many files unread: nothing was written."""
    remarks: list[str] = []
    """For the log: what was passed over, and why."""


class Spool(Protocol):
    """Calls block and come one at a time. Each may raise SpoolError."""

    def locate(self) -> Path:
        """The absolute path of the spool's folder, as its workers see it."""

    def run(self, exchange: Exchange) -> Outcome:
        """Carry out one exchange, in the order that `Exchange` gives."""

    def close(self) -> None:
        """Release everything; no further call follows."""
