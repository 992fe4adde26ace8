"""The daemon's side of a site's spool (`maildir`): removes, writes, sweeps and reads its files.

The folder lies on this machine or, for a site over ssh, on its login node: `Files` reaches both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from adaptor.errors import AdaptorError
from adaptor.protocol.files.local import LOCAL_FILES, FileEnd, Files, FilesDone, FilesError, FileWork, NewFile
from adaptor.protocol.maildir import (
    LARGEST,
    UNREAD,
    file_name,
    for_worker,
    from_workers,
    parse_connection,
    parse_daemon_file,
    parse_worker_file,
)

_MOST_FILES = 1000
"""One exchange returns at most these, and some 64 MiB; a single file may be larger."""


class SpoolError(AdaptorError):
    """The spool cannot be used now. The exchange may be done in part; repeating it does no harm."""


class DaemonFile(msgspec.Struct, frozen=True):
    """A file that the daemon writes for one connection of a worker."""

    connection: str
    name: str
    data: bytes


class WorkerFile(msgspec.Struct, frozen=True):
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


class ExchangeOutcome(msgspec.Struct, frozen=True, kw_only=True):
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


class Spool:
    """Makes its folder, and again if it disappears; makes the parent only at the start.

    Calls block and come one at a time. Each may raise SpoolError.
    """

    def __init__(self, folder: Path, files: Files = LOCAL_FILES) -> None:
        """`folder`: relative to the home directory on its machine, or absolute."""
        self._folder = folder
        self._files = files
        self._located = False
        self._strange: set[str] = set()
        """Names that an earlier reply has remarked on."""

    def locate(self) -> Path:
        """The absolute path of the folder, as its workers see it; made if missing."""
        if not self._located:
            made = self._do(FileWork(make=_encoded(self._folder.parent, *self._folders())))
            self._folder = Path(os.fsdecode(made.made[1]))
            self._located = True
        return self._folder

    def run(self, exchange: Exchange) -> ExchangeOutcome:
        """Carry out one exchange, in the order that `Exchange` gives."""
        self.locate()
        inbox, outbox = from_workers(self._folder), self._folder / "out"
        new, invalid = self._new_files(exchange.write)
        done = self._do(
            FileWork(
                remove=_encoded(*(inbox / name for name in exchange.remove if parse_worker_file(name))),
                write=new,
                names=_encoded(inbox, *([] if exchange.pilots is None else [outbox])),
                fresh=True,
            )
        )
        names = self._listed(done, inbox)
        if exchange.pilots is not None:
            self._sweep(frozenset(exchange.pilots), names, self._listed(done, outbox))
        collected = self._collect(names) if exchange.collect else ExchangeOutcome()
        return msgspec.structs.replace(
            collected,
            gone=sorted({*invalid, *_connections(done.homeless)}),
            full=sorted(_connections(done.held)),
        )

    def _folders(self) -> tuple[Path, ...]:
        return self._folder, from_workers(self._folder), self._folder / "out"

    def _do(self, work: FileWork) -> FilesDone:
        try:
            return self._files.run(work)
        except FilesError as error:
            raise SpoolError(str(error)) from error

    def _new_files(self, files: Iterable[DaemonFile]) -> tuple[list[NewFile], set[str]]:
        """And the connections with impossible names."""
        new, invalid = list[NewFile](), set[str]()
        for file in files:
            parsed = parse_daemon_file(file.name)
            if not parsed or not parse_connection(file.connection):
                invalid.add(file.connection)
                continue
            run, number = parsed
            folder = for_worker(self._folder, file.connection)
            unless = os.fsencode(folder / file_name(run, number - UNREAD)) if number > UNREAD else b""
            new.append(NewFile(os.fsencode(folder / file.name), file.data, unless))
        return new, invalid

    def _listed(self, done: FilesDone, folder: Path) -> list[str]:
        found = done.names.get(os.fsencode(folder))
        if found is None:
            parent = self._folder.parent
            if os.fsencode(parent) not in self._do(FileWork(names=_encoded(parent))).names:
                raise SpoolError(f"{parent}: no such folder; is its file system mounted?")
            self._do(FileWork(make=_encoded(*self._folders())))
            raise SpoolError(f"{folder}: No such file or directory")
        return [os.fsdecode(name) for name in found]

    def _sweep(self, pilots: frozenset[int], worker_files: list[str], connections: list[str]) -> None:
        """Remove what workers of ended pilots left: their folders, and half-written files."""
        ended = [
            for_worker(self._folder, name)
            for name in connections
            if (found := parse_connection(name)) and found.pilot not in pilots
        ]
        for name in worker_files:
            parsed = parse_worker_file(name[1:]) if name.startswith(".") else None
            if parsed and parsed[0].pilot not in pilots:
                ended.append(from_workers(self._folder) / name)
        if ended:
            self._do(FileWork(remove=_encoded(*ended)))

    def _collect(self, names: list[str]) -> ExchangeOutcome:
        remarks: list[str] = []
        inbox = from_workers(self._folder)
        paths = _encoded(*(inbox / name for name in self._worker_files(names, remarks)))
        if not paths:
            return ExchangeOutcome(remarks=remarks)
        done = self._do(FileWork(read=paths[:_MOST_FILES], most=LARGEST, whole=True))
        files: list[WorkerFile] = []
        foreign: list[bytes] = []
        for end in done.ends:
            why = _unusable(end)
            if why:
                remarks.append(f"{why}: removed")
                foreign.append(end.path)
            else:
                files.append(WorkerFile(Path(os.fsdecode(end.path)).name, end.data))
        if foreign:
            self._do(FileWork(remove=foreign))
        return ExchangeOutcome(files=files, more=done.read < len(paths), remarks=remarks)

    def _worker_files(self, names: list[str], remarks: list[str]) -> list[str]:
        """Names of all worker files, sorted by number."""
        found: list[tuple[int, int, str]] = []
        strange: set[str] = set()
        for name in names:
            parsed = parse_worker_file(name)
            if parsed is not None:
                found.append((parsed[1], parsed[0].n, name))
            elif not name.startswith("."):
                strange.add(name)
        remarks += [
            f"{from_workers(self._folder)}: {name!r} is no file of a worker: left alone"
            for name in strange - self._strange
        ]
        self._strange = strange
        return [name for _, _, name in sorted(found)]


def _unusable(end: FileEnd) -> str:
    """Why neither the daemon nor a worker can have written this file; empty: one of them has.

    Raises SpoolError: it may be read later.
    """
    if end.problem and not end.foreign:
        raise SpoolError(end.problem)
    if end.size > LARGEST:
        return f"{os.fsdecode(end.path)}: {end.size} bytes; ours have at most {LARGEST}"
    return end.problem


def _connections(paths: Iterable[bytes]) -> set[str]:
    return {Path(os.fsdecode(path)).parent.name for path in paths}


def _encoded(*paths: Path) -> list[bytes]:
    return [os.fsencode(path) for path in paths]
