"""Opening the journal's SQLite file: one writer, on local and on shared file systems."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from adaptor.errors import JournalError
from adaptor.journal.damage import check_not_lost, damaged, is_damage
from adaptor.journal.upgrade import prepare_for_reading, prepare_for_writing

FILE = "journal.sqlite"
OWNERS_PATIENCE = 10.0
"""Seconds for which the daemon waits until commands have read the journal, which they do if none runs."""

DURABLE, SOON = "FULL", "NORMAL"
"""When a commit is on the disk, so that it outlives the machine: before it returns, or at the next `sync`."""


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Turn sqlite3's errors, and those of decoding, into a JournalError that names the file."""
    try:
        yield
    except msgspec.DecodeError as error:
        raise damaged(path, error) from error
    except sqlite3.Error as error:
        if is_damage(error):
            raise damaged(path, error) from error
        raise JournalError(
            f"{path}: the journal cannot be used: {error}{_of_the_disk(path, error)}"
        ) from error


def _of_the_disk(path: Path, error: sqlite3.Error) -> str:
    """What the disk says to others who write there, where SQLite tells only that it said no."""
    if "I/O" in str(error):
        try:
            with tempfile.TemporaryFile(dir=path.parent) as file:
                file.write(b"-" * 65536)
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            return f" ({problem.strerror})"
    return ""


def open_for_writing(directory: Path) -> sqlite3.Connection:
    """The journal, made (0600) if missing and migrated if old, for the one daemon that owns it.

    Raises:
        JournalError: it cannot be opened or migrated, a newer version of the adaptor has written it, or it
            was lost.
    """
    path = directory / FILE
    check_not_lost(path)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise JournalError(f"{path}: the journal cannot be opened: {error.strerror}") from error
    # Free pages are given back a few at a time: SQLite heeds that in an empty file only, before WAL.
    new = () if path.stat().st_size else ("auto_vacuum = INCREMENTAL",)
    pragmas = (*new, "journal_mode = WAL", f"synchronous = {DURABLE}")
    connection = _open(path, prepare_for_writing, OWNERS_PATIENCE, *pragmas)
    set_synchronous(connection, SOON)
    return connection


def set_synchronous(connection: sqlite3.Connection, level: str) -> None:
    """From the next transaction on."""
    connection.execute(f"PRAGMA synchronous = {level}")


def sync(path: Path) -> None:
    """Bring the log of the last changes to the disk. In any thread.

    Raises:
        JournalError: the disk did not take it.
    """
    try:
        with path.with_name(f"{path.name}-wal").open("rb") as log:
            os.fsync(log.fileno())
    except FileNotFoundError:  # where WAL is refused, each commit waits for the disk
        return
    except OSError as error:
        raise JournalError(f"{path}: the journal cannot be used: {error.strerror}") from error


def open_for_reading(directory: Path, patience: float = 1.0) -> sqlite3.Connection:
    """The journal of a daemon that does not run; the file keeps its format.

    `patience`: seconds for another reader to be done.

    Raises:
        JournalError: there is none, it is in use, or a newer version of the adaptor has written it, or it was
            lost.
    """
    path = directory / FILE
    check_not_lost(path)
    if not path.exists():
        raise JournalError(f"{path}: there is no journal: nothing was ever submitted here")
    # The WAL of a dead daemon has to be read too, which takes a connection that may write.
    connection = _open(path, prepare_for_reading, patience)
    connection.execute("PRAGMA query_only = ON")
    return connection


def _open(
    path: Path, prepare: Callable[[sqlite3.Connection, Path], None], patience: float, *pragmas: str
) -> sqlite3.Connection:
    """A connection that holds the file's lock, with the tables of the present format.

    `locking_mode=EXCLUSIVE` comes before WAL: SQLite then needs no shared memory, which NFS and
    Lustre do not give. Where WAL is refused anyway, the rollback journal serves.
    """
    with guarded(path):
        connection = sqlite3.connect(path, isolation_level=None, timeout=patience)
        try:
            for pragma in ("locking_mode = EXCLUSIVE", *pragmas):
                connection.execute(f"PRAGMA {pragma}")
            prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


_Row = TypeVar("_Row", bound=msgspec.Struct)


def select(
    db: sqlite3.Connection,
    kind: type[_Row],
    source: str,
    arguments: Sequence[object] = (),
    *,
    named: Mapping[str, str] = MappingProxyType({}),
    also: Sequence[str] = (),
    made: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    of_made: Collection[str] = (),
) -> list[_Row]:
    """Rows as structs, whose fields are the columns.

    Args:
        source: what follows FROM in SQL; it never comes from a user.
        named: the columns of fields that have another name.
        also: columns besides those of fields, for `made`.
        made: what the fields `of_made`, which are no columns, are by the columns of a row, `also` included.
    """
    fields = [field for field in kind.__struct_fields__ if field not in of_made]
    columns = ", ".join([*(named.get(field, field) for field in fields), *also])
    names = (*fields, *also)
    found = []
    for values in db.execute(f"SELECT {columns} FROM {source}", arguments):  # noqa: S608
        row = dict(zip(names, values, strict=True))
        of_struct = {field: row[field] for field in fields}
        found.append(kind(**of_struct | (made(row) if made else {})))
    return found
