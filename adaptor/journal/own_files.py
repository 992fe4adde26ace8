"""Checks that the journal that a daemon writes is still the one in its state directory.

SQLite writes into the files that it has open, whatever has become of their names: what it commits after
they were removed or replaced is lost with the process. So each commit is followed by a look at the names.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from adaptor.errors import JournalError
from adaptor.journal.damage import lost
from adaptor.private_files import write_private
from adaptor.units import format_instant


class GoneJournalError(JournalError):
    """The journal's file was removed; what it holds can be put back."""


class ReplacedJournalError(JournalError):
    """Another file has the journal's name."""


class OwnFiles:
    """The files of one open journal."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        """`db`: a connection that has just been opened for writing."""
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._has_log = db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        self._own = _identity(path)
        self._own_log = _identity(self._log) if self._has_log else None

    def check(self, db: sqlite3.Connection) -> None:
        """Return if what was committed is in the state directory.

        A log that was removed or replaced is written into the journal, and a new one begun.

        Raises:
            GoneJournalError, ReplacedJournalError: the journal was removed or replaced.
            DamagedJournalError: it was emptied.
            JournalError: the folder cannot be looked at.
            sqlite3.Error: the log cannot be written into the journal.
        """
        try:
            now = _identity(self._path)
            log = _identity(self._log) if self._has_log else None
        except OSError as error:
            raise JournalError(
                f"{self._path}: the state directory cannot be looked at: {error.strerror}; nothing is"
                " acknowledged before it can"
            ) from error
        if now is None:
            raise GoneJournalError(
                f"{self._path}: the journal was removed while the daemon writes it, and is written again"
            )
        if now != self._own:
            raise ReplacedJournalError(
                f"{self._path}: another file was put in the place of the journal that the daemon writes"
            )
        if not self._path.stat().st_size:
            raise lost(self._path)
        if log != self._own_log:
            for pragma in ("wal_checkpoint(TRUNCATE)", "journal_mode = DELETE", "journal_mode = WAL"):
                db.execute(f"PRAGMA {pragma}")
            self._own_log = _identity(self._log)

    def remove_log(self) -> None:
        """Remove the log, unless it is another one: SQLite would apply it to whatever has the journal's name.

        To be called once all is in a copy. Raises OSError.
        """
        if self._has_log and (log := _identity(self._log)) is not None and log == self._own_log:
            self._log.unlink()


def copy_beside(db: sqlite3.Connection, path: Path, now: float) -> Path:
    """Keep what the open journal holds in a file next to it, and return its path.

    Raises OSError, sqlite3.Error.
    """
    moment = format_instant(now).replace(" ", "T").replace(":", "")
    return write_copy(db, path.with_name(f"{path.stem}.replaced-{moment}{path.suffix}"))


def write_copy(db: sqlite3.Connection, target: Path) -> Path:
    """Copy all that a connection sees into a file (0600), under its final name or not at all.

    Raises OSError, sqlite3.Error.
    """
    part = target.with_name(f"{target.name}.part")
    try:
        write_private(part, b"", sync=False)
        with closing(sqlite3.connect(part)) as copy:
            db.backup(copy)
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return target


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file; None: there is no such file. Raises OSError: it cannot be looked at."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino
