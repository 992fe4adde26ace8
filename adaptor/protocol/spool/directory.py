"""A spool in a folder of this machine: carries out the daemon's exchanges as file operations."""

from __future__ import annotations

from pathlib import Path

import msgspec

from adaptor.errors import AdaptorError
from adaptor.private_files import NotOursError
from adaptor.protocol.maildir import (
    Connection,
    for_worker,
    from_workers,
    names_in,
    parse_connection,
    parse_daemon_file,
    parse_worker_file,
    read_file,
    remove_file,
    remove_folder,
    write_next,
)
from adaptor.protocol.spool.exchange import DaemonFile, Exchange, Outcome, SpoolError, WorkerFile
from adaptor.protocol.state_directory import private_directory

_MOST_FILES = 1000
_MOST_BYTES = 64 * 1024 * 1024
"""One exchange returns at most this much; a single file may be larger."""


class DirectorySpool:
    """See `Spool`. Makes the folder, and again if it disappears; makes its parent only at the start."""

    def __init__(self, folder: Path) -> None:
        """Raises SpoolError: folder or parent cannot be made, or is not private to this user."""
        self._folder = folder
        self._strange: set[str] = set()
        """Names that an earlier reply has remarked on."""
        _make_private(folder.parent)
        self._prepare()

    def locate(self) -> Path:
        return self._folder

    def run(self, exchange: Exchange) -> Outcome:
        try:
            return self._run(exchange)
        except OSError as error:
            self._prepare()
            raise SpoolError(f"{self._folder}: {error.strerror or error}") from error

    def close(self) -> None:
        """Nothing is open."""

    def _prepare(self) -> None:
        if not self._folder.parent.is_dir():
            raise SpoolError(f"{self._folder.parent}: no such folder; is its file system mounted?")
        for folder in (self._folder, from_workers(self._folder), self._folder / "out"):
            _make_private(folder)

    def _run(self, exchange: Exchange) -> Outcome:
        for name in exchange.remove:
            if parse_worker_file(name):
                remove_file(from_workers(self._folder) / name)
        gone, full = set[str](), set[str]()
        for file in exchange.write:
            self._write(file, gone, full)
        if exchange.pilots is not None:
            self._sweep(frozenset(exchange.pilots))
        if not exchange.collect:
            return Outcome(gone=sorted(gone), full=sorted(full))
        collected = self._collect()
        return msgspec.structs.replace(collected, gone=sorted(gone), full=sorted(full))

    def _write(self, file: DaemonFile, gone: set[str], full: set[str]) -> None:
        """Where the worker has no folder, its connection is `gone`; with too much unread in it, `full`."""
        folder = for_worker(self._folder, file.connection)
        if not parse_connection(file.connection) or not parse_daemon_file(file.name) or not folder.is_dir():
            gone.add(file.connection)
            return
        try:
            if not write_next(folder, file.name, file.data):
                full.add(file.connection)
        except FileNotFoundError:  # the worker left at this moment
            gone.add(file.connection)

    def _sweep(self, pilots: frozenset[int]) -> None:
        """Remove what workers of ended pilots left: their folders, and half-written files."""
        out = self._folder / "out"
        for name in names_in(out):
            connection = parse_connection(name)
            if connection and connection.pilot not in pilots:
                remove_folder(out / name)
        for name in names_in(from_workers(self._folder)):
            found = parse_worker_file(name[1:]) if name.startswith(".") else None
            if found and found[0].pilot not in pilots:
                remove_file(from_workers(self._folder) / name)

    def _collect(self) -> Outcome:
        files: list[WorkerFile] = []
        remarks: list[str] = []
        size = 0
        names = self._worker_files(remarks)
        for name in names[:_MOST_FILES]:
            file = self._read(name, remarks)
            if file is not None:
                files.append(file)
                size += len(file.data)
            if size >= _MOST_BYTES:
                break
        more = len(names) > _MOST_FILES or size >= _MOST_BYTES
        return Outcome(files=files, more=more, remarks=remarks)

    def _worker_files(self, remarks: list[str]) -> list[str]:
        """Names of all worker files, sorted by number."""
        found: list[tuple[int, int, str]] = []
        strange: set[str] = set()
        for name in names_in(from_workers(self._folder)):
            parsed: tuple[Connection, int] | None = parse_worker_file(name)
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

    def _read(self, name: str, remarks: list[str]) -> WorkerFile | None:
        path = from_workers(self._folder) / name
        try:
            data = read_file(path)
        except NotOursError as error:
            remarks.append(f"{path}: {error.strerror}: removed")
            self._remove_strange(path)
            return None
        return WorkerFile(name, data) if data is not None else None

    def _remove_strange(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            remove_folder(path)
        else:
            remove_file(path)


def _make_private(folder: Path) -> None:
    try:
        private_directory(folder)
    except AdaptorError as error:
        raise SpoolError(str(error)) from error
