"""The folders and file names of a spool: a folder that daemon and workers share if no socket is possible.

    <spool>/in/<connection>.<number>           from workers: one folder, so that one look finds everything
    <spool>/out/<connection>/<run>.<number>    for one worker, which makes and removes the folder

A **connection** is one attempt of a worker to reach the daemon, `<pilot>-<token>-<n>`: the worker draws
the token once and counts its connections with n. A **run** is one run of the daemon. A writer numbers its
files from 1 for each connection (and run): no name occurs twice, so no cached listing can mislead.

Workers make nothing but their own `out/<connection>`; the daemon makes everything else.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

SCHEME = "spool://"
LATENCY = 5.0
"""Seconds that a message usually takes, at most, from one side to the other."""
LARGEST = 65 * 1024 * 1024
"""Bytes of a file, at most; neither side writes a larger one."""

_CONNECTION = r"(?P<connection>(?P<pilot>\d{1,18})-(?P<token>[0-9a-f]{8})-(?P<n>\d{1,9}))"
_WORKER_FILE = re.compile(_CONNECTION + r"\.(?P<number>\d{8,12})", re.ASCII)
_CONNECTION_ALONE = re.compile(_CONNECTION, re.ASCII)
_DAEMON_FILE = re.compile(r"(?P<run>[0-9a-f]{8})\.(?P<number>\d{8,12})", re.ASCII)


class Connection(msgspec.Struct, frozen=True):
    """One connection of one worker."""

    pilot: int
    token: str
    n: int
    """How many connections the worker has opened, this one included."""

    @property
    def name(self) -> str:
        return f"{self.pilot}-{self.token}-{self.n}"


def address_of(spool: Path) -> str:
    """The address of a spool in an access file."""
    return f"{SCHEME}{spool}"


def folder_at(address: str) -> Path:
    """The folder of a spool's address. Raises ValueError: this is no such address."""
    path = Path(address.removeprefix(SCHEME))
    if not address.startswith(SCHEME) or not path.is_absolute():
        raise ValueError(f"{address}: not {SCHEME}/an/absolute/folder")
    return path


def from_workers(spool: Path) -> Path:
    """The folder into which all workers write."""
    return spool / "in"


def for_worker(spool: Path, connection: str) -> Path:
    """The folder into which the daemon writes for one connection of a worker."""
    return spool / "out" / connection


def worker_file_name(connection: str, number: int) -> str:
    return f"{connection}.{number:08d}"


def daemon_file_name(run: str, number: int) -> str:
    return f"{run}.{number:08d}"


def parse_worker_file(name: str) -> tuple[Connection, int] | None:
    """Connection and number of a file from a worker; None for any other name."""
    match = _WORKER_FILE.fullmatch(name)
    return (_connection(match), int(match["number"])) if match else None


def parse_daemon_file(name: str) -> tuple[str, int] | None:
    """The daemon's run and number of a file for a worker; None for any other name."""
    match = _DAEMON_FILE.fullmatch(name)
    return (match["run"], int(match["number"])) if match else None


def parse_connection(name: str) -> Connection | None:
    match = _CONNECTION_ALONE.fullmatch(name)
    return _connection(match) if match else None


def _connection(match: re.Match[str]) -> Connection:
    return Connection(int(match["pilot"]), match["token"], int(match["n"]))
