"""Nothing is acknowledged that is only in a file which nobody finds any more."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from adaptor.errors import JournalError
from adaptor.journal.damage import DamagedJournalError
from adaptor.journal.database import FILE, format_of
from adaptor.journal.journal import Journal
from adaptor.journal.own_files import GoneJournalError, ReplacedJournalError


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal(tmp_path)
    note(opened, "first")
    yield opened
    opened.close()


def note(journal: Journal, text: str) -> None:
    journal.explain(1.0, "s", "problem", text)


def kept(path: Path) -> list[str]:
    """What a daemon finds that begins now: read of a copy, so that the lock of the writer does not matter."""
    copy = path.with_name("copy.sqlite")
    for suffix in ("", "-wal"):
        if path.with_name(path.name + suffix).exists():
            shutil.copy(path.with_name(path.name + suffix), copy.with_name(copy.name + suffix))
    with closing(sqlite3.connect(copy)) as db:
        return [text for (text,) in db.execute("SELECT text FROM decision ORDER BY id")]


def test_a_commit_into_a_removed_journal_is_not_acknowledged(journal: Journal) -> None:
    journal.path.unlink()
    with pytest.raises(GoneJournalError, match="removed while the daemon writes it"):
        note(journal, "second")


def test_a_removed_journal_is_written_again_with_all_that_it_had(journal: Journal) -> None:
    name = journal.instance
    assert not journal.put_back()
    journal.path.unlink()
    with pytest.raises(GoneJournalError):
        note(journal, "second")
    assert journal.put_back()
    note(journal, "third")
    assert kept(journal.path) == ["first", "second", "third"]
    assert journal.instance == name, "pilots are found by it"
    assert stat.S_IMODE(journal.path.stat().st_mode) == 0o600
    assert format_of(journal.connection, journal.path) > 0


@pytest.mark.parametrize("suffixes", [["", "-wal"], [""]])
def test_it_is_written_again_whatever_is_left_of_its_log(journal: Journal, suffixes: list[str]) -> None:
    for suffix in suffixes:
        Path(f"{journal.path}{suffix}").unlink()
    assert journal.put_back()
    assert kept(journal.path) == ["first"]


@pytest.mark.parametrize("other", [None, b"", b"something else"])
def test_a_log_that_was_removed_or_replaced_is_begun_anew(journal: Journal, other: bytes | None) -> None:
    log = Path(f"{journal.path}-wal")
    log.unlink()
    if other is not None:
        log.write_bytes(other)
    note(journal, "second")
    assert kept(journal.path) == ["first", "second"]
    note(journal, "third")
    assert kept(journal.path) == ["first", "second", "third"]


def test_another_file_in_its_place_is_not_overwritten_and_ours_is_kept_beside_it(journal: Journal) -> None:
    other = journal.path.with_name("other")
    other.write_bytes(b"a backup")
    other.replace(journal.path)
    for act in (lambda: note(journal, "second"), journal.check_files, journal.put_back):
        with pytest.raises(ReplacedJournalError, match="another file was put in the place"):
            act()
    assert journal.path.read_bytes() == b"a backup"
    copy = journal.keep_copy(0.0)
    assert copy.name.startswith("journal.replaced-")
    assert kept(copy) == ["first", "second"]
    assert not Path(f"{journal.path}-wal").exists(), "SQLite would apply it to the other file"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_journal_that_was_emptied_is_damaged(journal: Journal) -> None:
    os.truncate(journal.path, 0)
    with pytest.raises(DamagedJournalError, match="the journal is empty"):
        note(journal, "second")


def test_the_log_of_another_journal_in_its_place_stays(journal: Journal) -> None:
    for suffix, content in (("", b"a backup"), ("-wal", b"its log")):
        other = journal.path.with_name("other")
        other.write_bytes(content)
        other.replace(f"{journal.path}{suffix}")
    assert kept(journal.keep_copy(0.0)) == ["first"]
    assert Path(f"{journal.path}-wal").read_bytes() == b"its log"


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.EACCES])
def test_what_cannot_be_looked_at_for_a_moment_is_not_acknowledged_and_not_lost(
    journal: Journal, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: Path, **_options: object) -> os.stat_result:
        raise OSError(number, os.strerror(number), str(path))

    with monkeypatch.context() as failing:
        failing.setattr(Path, "stat", fails)
        with pytest.raises(JournalError, match=os.strerror(number)) as problem:
            note(journal, "second")
        assert not isinstance(problem.value, GoneJournalError | ReplacedJournalError)
    assert not journal.put_back()
    note(journal, "third")
    assert kept(journal.path)[-1] == "third"
    assert journal.path.name == FILE
