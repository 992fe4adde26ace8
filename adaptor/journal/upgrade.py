"""The format of the journal's file: a new file gets the present one, an older file is migrated.

`schema.sql` is the present format; `migrations/NNN.sql` makes format NNN of the one before it. SQLite keeps
the number as the file's `user_version`, and changes it in the transaction that changes the tables.
"""

from __future__ import annotations

import logging
import re
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from adaptor.errors import JournalError
from adaptor.journal.damage import has_served, lost
from adaptor.private_files import write_private

log = logging.getLogger(__name__)

FORMAT = 3
FOLDER = Path(__file__).parent
"""Of `schema.sql` and `migrations/`."""
_TABLE = re.compile(r"^CREATE TABLE (\w+)", re.MULTILINE)


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
        there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in _TABLE.findall(_schema()):
            if table not in there:
                raise sqlite3.DatabaseError(f"no such table: {table}")
    if number > FORMAT:
        copy = copy_of(path, FORMAT)
        way_back = f", or go back to {copy}, which lacks all that was done since" if copy.exists() else ""
        raise JournalError(
            f"{path}: the journal has format {number}, and this version of the adaptor knows formats "
            f"up to {FORMAT}: use the newer version, or another state directory ($ADAPTOR_DIR){way_back}"
        )
    return number


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
    """Where the copy of a journal of this format is kept when it is migrated."""
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
    part = copy.with_name(f"{copy.name}.part")
    try:
        write_private(part, b"", sync=False)
        with closing(sqlite3.connect(part)) as target:
            db.backup(target)
        part.replace(copy)
    except (OSError, sqlite3.Error) as error:
        part.unlink(missing_ok=True)
        raise JournalError(
            f"{path}: the journal is not migrated, because no copy of it can be made ({error}); "
            f"make room for {copy}"
        ) from error
    log.info("a copy of the journal as it was is in %s", copy)
