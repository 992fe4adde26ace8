"""Opening the journal's SQLite file: one writer, on local and on shared file systems, in the present format.

`schema.sql` is the present format; `migrations/NNN.sql` makes format NNN of the one before it. SQLite keeps
the number as the file's `user_version`, and changes it in the transaction that changes the tables. The first
release has format 1; `fixtures/journals/README.md` tells how a format changes.
"""

from __future__ import annotations

import logging
import os
import resource
import secrets
import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from adaptor import __version__
from adaptor.errors import JournalError
from adaptor.journal.damage import check_not_lost, damaged, has_served, is_damage, lost
from adaptor.journal.own_files import write_copy

log = logging.getLogger(__name__)

FORMAT = 1
SCHEMA = "8d758cb9c095ada6"
"""Digest of `schema.sql` in this format; a test compares it, `python -m tests.journal.schema` renews it."""
FOLDER = Path(__file__).parent  # of `schema.sql` and `migrations/`
_MAGIC = b"SQLite format 3\0"
_NUMBER_AT = 60  # bytes of an SQLite file before its `user_version`, four bytes, the highest first


def format_of(db: sqlite3.Connection, path: Path) -> int:
    """The format's number; 0: the file is empty.

    Raises:
        JournalError: a newer version of the adaptor has written the file, or it has lost what it had.
        sqlite3.Error: a table is missing.
    """
    number = int(db.execute("PRAGMA user_version").fetchone()[0])
    if number == 0 and has_served(path):
        raise lost(path)
    if number == FORMAT:
        there = _columns(db)
        for table, columns in _columns_of(_schema()).items():
            if table not in there:
                raise sqlite3.DatabaseError(
                    f"no such table: {table}; it is lost, or a version before the first release wrote this"
                )
            if missing := [column for column in columns if column not in there[table]]:
                raise _before_releases(path, f"{table}.{missing[0]}")
    if number > FORMAT:
        raise _newer(path, number)
    return number


def check_format(directory: Path) -> None:
    """Raises JournalError: the journal, whose daemon may run, has a format that this version does not know.

    The daemon holds the file's lock, so SQLite is not asked: the number is read from the file, where
    `open_for_writing` has brought it.
    """
    path = directory / FILE
    check_not_lost(path)
    try:
        with path.open("rb") as file:
            head = file.read(_NUMBER_AT + 4)
    except FileNotFoundError:
        return
    except OSError as error:
        raise JournalError(f"{path}: the journal cannot be read: {error.strerror}") from error
    number = int.from_bytes(head[_NUMBER_AT:], "big") if head.startswith(_MAGIC) else 0
    if number > FORMAT:
        raise _newer(path, number)


def _before_releases(path: Path, column: str) -> JournalError:
    return JournalError(
        f"{path}: the journal has no column {column}: a version before the first release has written it,"
        " which this one cannot read. Nothing was changed. Use the version that wrote it, or another state"
        " directory ($ADAPTOR_DIR)"
    )


def _newer(path: Path, number: int) -> JournalError:
    copy = copy_of(path, FORMAT)
    way_back = f", or go back to {copy}, which lacks all that was done since" if copy.exists() else ""
    return JournalError(
        f"{path}: the journal has format {number}, and this version, {__version__}, knows formats up to"
        f" {FORMAT}: a newer version has written it, or one before the first release. Nothing was changed."
        f" Use the version that wrote it, or another state directory ($ADAPTOR_DIR){way_back}"
    )


def _columns(db: sqlite3.Connection) -> dict[str, list[str]]:
    """Names of columns by table."""
    found: dict[str, list[str]] = {}
    for table, column in db.execute(
        "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
    ):
        found.setdefault(table, []).append(column)
    return found


@cache
def _columns_of(schema: str) -> dict[str, list[str]]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema)
        return _columns(db)


def prepare_for_writing(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file, or migrate an older one, of which a copy is kept.

    Each migration is a transaction: after a crash the file has the format before it or the one after it.

    Raises:
        JournalError: no copy can be made; the file is as it was.
        sqlite3.Error: a migration fails; the file has the last format that was reached.
    """
    number = format_of(db, path)
    if number == 0:
        _run(db, f"{_schema()} PRAGMA application_id = {secrets.randbelow(2**31)}; COMMIT;")
    elif number < FORMAT:
        log.info("the journal has format %d; this version of the adaptor uses format %d", number, FORMAT)
        _keep_copy(db, path, copy_of(path, number))
        for following in range(number + 1, FORMAT + 1):
            _run(db, f"{_migration(following)} COMMIT;")
            log.info("the journal was migrated to format %d", following)


def prepare_for_reading(db: sqlite3.Connection, path: Path) -> None:
    """Show the file in the present format, without a change that lasts.

    An older file is migrated in a transaction that is never committed: closing the connection ends it.

    Raises:
        JournalError: a newer version of the adaptor has written the file.
        sqlite3.Error: a migration fails.
    """
    number = format_of(db, path)
    if number == 0:
        _run(db, _schema())
    elif number < FORMAT:
        _run(db, "".join(_migration(following) for following in range(number + 1, FORMAT + 1)))


def copy_of(path: Path, number: int) -> Path:
    """Path of the copy of a journal of this format, made when it is migrated."""
    return path.with_name(f"{path.stem}.format-{number}{path.suffix}")


def _schema() -> str:
    return f"{(FOLDER / 'schema.sql').read_text(encoding='utf-8')} PRAGMA user_version = {FORMAT};\n"


def _migration(number: int) -> str:
    script = (FOLDER / "migrations" / f"{number:03}.sql").read_text(encoding="utf-8")
    return f"{script} PRAGMA user_version = {number};\n"


def _run(db: sqlite3.Connection, script: str) -> None:
    """Run the statements in a transaction, which the last may commit; if one fails, nothing is done."""
    try:
        db.executescript(f"BEGIN IMMEDIATE; {script}")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _keep_copy(db: sqlite3.Connection, path: Path, copy: Path) -> None:
    """Copy the file (0600) under its final name, or not at all. Raises JournalError."""
    try:
        write_copy(db, copy)
    except (OSError, sqlite3.Error) as error:
        raise JournalError(
            f"{path}: the journal is not migrated, because no copy of it can be made ({error}); "
            f"make room for {copy}"
        ) from error
    log.info("a copy of the journal as it was is in %s", copy)


FILE = "journal.sqlite"
_ALMOST = 2**17  # bytes that one write may take beyond the size of a file
OWNERS_PATIENCE = 10.0
"""Seconds for which the daemon waits until commands have read the journal, which they do if none runs."""

DURABLE, SOON = "FULL", "NORMAL"
"""Times at which a commit is on the disk, safe from a crash of the machine: before it returns, or at
`sync`."""


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
    """The error of the disk to others who write there, where SQLite gives no reason."""
    if "I/O" in str(error):
        if limit := _limit_of_sizes(path):
            return limit
        try:
            with tempfile.TemporaryFile(dir=path.parent) as file:
                file.write(b"-" * 65536)
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            return f" ({problem.strerror})"
    return ""


def _limit_of_sizes(path: Path) -> str:
    """A message if the journal or its log has met this process's limit for sizes of files; else empty."""
    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if most == resource.RLIM_INFINITY:
        return ""
    sizes = [each.stat().st_size for each in (path, path.with_name(f"{path.name}-wal")) if each.exists()]
    if max(sizes, default=0) + _ALMOST < most:
        return ""
    return (
        f" (files of this process may have {most} bytes, by `ulimit -f`: start the daemon again from a shell"
        " with `ulimit -f unlimited`)"
    )


def open_for_writing(directory: Path) -> sqlite3.Connection:
    """The journal, made (0600) if missing and migrated if old, for the one daemon that owns it.

    Raises JournalError: it cannot be opened or migrated, a newer version of the adaptor has written it, or it
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
    with guarded(path):
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")  # so that `check_format` finds the number
    set_synchronous(connection, SOON)
    return connection


def set_synchronous(connection: sqlite3.Connection, level: str) -> None:
    """Set the level of synchronous writes from the next transaction on."""
    connection.execute(f"PRAGMA synchronous = {level}")


def sync(path: Path) -> None:
    """Bring the log of the last changes to the disk. In any thread.

    Raises JournalError: the disk did not take it.
    """
    try:
        log = os.open(f"{path}-wal", os.O_RDONLY)
        try:
            os.fsync(log)
        finally:
            os.close(log)
    except FileNotFoundError:  # without WAL, each commit waits for the disk
        return
    except OSError as error:
        raise JournalError(f"{path}: the journal cannot be used: {error.strerror}") from error


def open_for_reading(directory: Path, patience: float = 1.0) -> sqlite3.Connection:
    """The journal of a daemon that does not run; the file keeps its format.

    `patience`: seconds for another reader to be done.

    Raises JournalError: there is none, it is in use, or a newer version of the adaptor has written it, or it
    was lost.
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
