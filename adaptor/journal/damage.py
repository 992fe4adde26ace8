"""A journal that is lost or damaged is never taken for a new one: what is left, and the commands to go on."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from adaptor.errors import JournalError
from adaptor.protocol.access import CLIENT_ACCESS
from adaptor.protocol.keys import KEYS
from adaptor.units import format_instant

_LOG, _PILOTS = "daemon.log", "pilots"
_MALFORMED = ("malformed", "not a database", "no such table", "no such column")
"""SQLite's codes for a file that is no whole journal."""
_STUMBLES = (msgspec.DecodeError, ValueError, TypeError, LookupError)
"""Errors of code that meets rows as no daemon writes them."""


class DamagedJournalError(JournalError):
    """The journal has lost something that it had; time alone will not bring it back."""


def check_not_lost(path: Path) -> None:
    """Raises DamagedJournalError: there is no journal, or an empty one, though a daemon has worked here.

    To be called before SQLite opens the file: besides an empty one it removes the log of the last changes.
    """
    changes = path.with_name(f"{path.name}-wal")
    if _size(path) == 0 and (_size(changes) or has_served(path)):
        raise lost(path)


def has_served(path: Path) -> bool:
    """True if a daemon has worked with a journal in this place."""
    return (path.parent / CLIENT_ACCESS).exists() or bool(_pilots(path) or _copies(path))


def lost(path: Path) -> DamagedJournalError:
    """The error for a journal without content."""
    state, found = "empty" if path.exists() else "gone", ", ".join(_found(path))
    return DamagedJournalError(
        f"{path}: the journal is {state}, though a daemon has worked here (found: {found}). Bags, results and"
        " charges that only the journal had are lost; requests of its pilots may still be in the queues, and"
        " end by themselves. Nothing was changed. To go on: put a copy of the journal in its place"
        f"{_kept_copy(path)}; or begin again here: {_words('mv', path.parent, f'{path.parent}.lost')}; or in"
        " another directory: export ADAPTOR_DIR=DIR"
    )


def damaged(path: Path, error: Exception) -> DamagedJournalError:
    """The error for a journal that cannot be read in part."""
    said = f"{error}" if isinstance(error, sqlite3.Error) else f"{type(error).__name__}: {error}"
    aside = path.parent / "damaged"
    return DamagedJournalError(
        f"{path}: the journal is damaged ({said}). Bags, results and charges of the damaged part may be lost;"
        " pilots and their tasks go on. Nothing was changed. To go on: adaptor daemon stop;"
        f" {_words('mkdir', aside)}; {_words('mv', path)}* {_words(aside)}; then save what can be read:"
        f" {_words('sqlite3', aside / path.name)} .recover | {_words('sqlite3', path)}; or take a copy of the"
        f" journal{_kept_copy(path)}; or work in another directory: export ADAPTOR_DIR=DIR"
    )


def is_damage(error: sqlite3.Error) -> bool:
    """True if the file is at fault, and not a full disk or another process."""
    return any(words in str(error) for words in _MALFORMED)


@contextmanager
def understood(path: Path) -> Iterator[None]:
    """Turn whatever the block stumbles over in the journal's rows into a DamagedJournalError."""
    try:
        yield
    except _STUMBLES as error:
        raise damaged(path, error) from error


def _found(path: Path) -> list[str]:
    """Files left from the work of earlier daemons."""
    folder, log = path.parent, path.parent / _LOG
    found = [KEYS] if (folder / KEYS).exists() else []
    if log.exists():
        found.append(f"{_LOG}, last written {format_instant(log.stat().st_mtime)}")
    if pilots := _pilots(path):
        found.append(
            f"the folders of {len(pilots)} pilots, the last one {folder / _PILOTS / str(pilots[-1])}"
        )
    found += [f"the copy {copy.name}" for copy in _copies(path)]
    return found or [CLIENT_ACCESS]


def _pilots(path: Path) -> list[int]:
    """The numbers of pilots that have folders."""
    folder = path.parent / _PILOTS
    return sorted(int(each.name) for each in folder.glob("*") if each.name.isdecimal())


def _copies(path: Path) -> list[Path]:
    """Kept at migrations, the oldest first."""
    found = path.parent.glob(f"{path.stem}.format-*{path.suffix}")
    return sorted(found, key=lambda copy: (len(copy.name), copy.name))


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _kept_copy(path: Path) -> str:
    copies = _copies(path)
    return f" (the newest kept one: {_words('cp', copies[-1], path)})" if copies else ""


def _words(*words: str | Path) -> str:
    return shlex.join(map(str, words))
