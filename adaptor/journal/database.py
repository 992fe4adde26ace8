"""Opening the journal's SQLite file: one writer, on local and on shared file systems."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adaptor.errors import JournalError

FILE = "journal.sqlite"
VERSION = 3


@contextmanager
def guarded(path: Path) -> Iterator[None]:
    """Turn sqlite3's errors into a JournalError that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise JournalError(f"{path}: the journal cannot be used: {error}") from error


def open_for_writing(directory: Path) -> sqlite3.Connection:
    """The journal, made (0600) if missing, for the one daemon that owns it.

    `locking_mode=EXCLUSIVE` comes before WAL: SQLite then needs no shared memory, which NFS and
    Lustre do not give. Where WAL is refused all the same, the rollback journal serves.

    Raises:
        JournalError: it cannot be opened, or is of another version.
    """
    path = directory / FILE
    with guarded(path):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise JournalError(f"{path}: the journal cannot be opened: {error.strerror}") from error
        connection = sqlite3.connect(path, isolation_level=None, timeout=1.0)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        _prepare(connection, path)
    return connection


def open_for_reading(directory: Path) -> sqlite3.Connection:
    """The journal of a daemon that does not run.

    Raises:
        JournalError: there is none, it is in use, or it is of another version.
    """
    path = directory / FILE
    if not path.exists():
        raise JournalError(f"{path}: there is no journal: nothing was ever submitted here")
    with guarded(path):
        # A dead daemon's WAL has to be read too, which takes a connection that may write.
        connection = sqlite3.connect(path, isolation_level=None, timeout=1.0)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        _prepare(connection, path)
        connection.execute("PRAGMA query_only = ON")
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        schema = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
        name = secrets.randbelow(2**31)
        connection.executescript(f"BEGIN; {schema} PRAGMA application_id = {name}; COMMIT;")
    elif version != VERSION:
        raise JournalError(f"{path}: made by another version of the adaptor (journal format {version})")
