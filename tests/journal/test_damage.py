"""A journal that is empty or damaged is never taken for a new one, and the message has the ways to go on."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adaptor import api
from adaptor.errors import JournalError
from adaptor.journal.damage import DamagedJournalError, check_not_lost, understood
from adaptor.journal.database import FILE, copy_of, guarded, open_for_reading, open_for_writing
from adaptor.journal.journal import Journal
from adaptor.journal.queries import answer_offline
from adaptor.journal.recovery import recover
from adaptor.protocol.access import CLIENT_ACCESS
from tests.scheduling.broker_world import TERMS, World


@pytest.fixture
def lived(tmp_path: Path) -> Path:
    """A state directory in which a daemon has worked and was stopped."""
    world = World(tmp_path, sites=("here",))
    world.submit(3)
    world.close()
    for name in ("keys.json", "daemon.log", CLIENT_ACCESS):
        (tmp_path / name).touch()
    for pilot in (9, 10):
        (tmp_path / "pilots" / str(pilot)).mkdir(parents=True)
    return tmp_path


def empty(path: Path) -> None:
    path.write_bytes(b"")


def of_another_kind(path: Path) -> None:
    """A database without a table."""
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("VACUUM")


@pytest.mark.parametrize("lose", [empty, Path.unlink, of_another_kind])
@pytest.mark.parametrize("use", [open_for_writing, open_for_reading, Journal])
def test_a_lost_journal_is_refused_and_nothing_is_changed(lived: Path, lose: object, use: object) -> None:
    copy_of(lived / FILE, 1).touch()
    lose(lived / FILE)  # type: ignore[operator]
    before = sizes(lived)
    with pytest.raises(DamagedJournalError) as refused:
        use(lived)  # type: ignore[operator]
    told = str(refused.value)
    assert "a daemon has worked here (found: keys.json, daemon.log, last written " in told
    assert f"the folders of 2 pilots, the last one {lived}/pilots/10, the copy journal." in told
    assert f"cp {lived}/journal.format-1.sqlite {lived}/{FILE}" in told
    assert f"mv {lived} {lived}.lost" in told
    assert "export ADAPTOR_DIR=DIR" in told
    assert sizes(lived) == before


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.glob("*") if path.is_file()}


@pytest.mark.parametrize("left", [CLIENT_ACCESS, "pilots/1/", "journal.format-1.sqlite", f"{FILE}-wal"])
def test_each_trace_of_a_journal_forbids_a_new_one(tmp_path: Path, left: str) -> None:
    trace = tmp_path / left
    trace.parent.mkdir(exist_ok=True)
    if left.endswith("/"):
        trace.mkdir()
    else:
        trace.write_text("what a daemon wrote")
    with pytest.raises(DamagedJournalError):
        check_not_lost(tmp_path / FILE)


def test_a_daemon_that_never_came_to_serve_leaves_room_for_a_new_journal(tmp_path: Path) -> None:
    """Its scheduler did not answer, or it was killed while it made the file."""
    (tmp_path / "keys.json").touch()
    (tmp_path / "daemon.log").touch()
    (tmp_path / FILE).touch()
    open_for_writing(tmp_path).close()


DAMAGE = {
    "truncated": "",
    "a row of another kind": "UPDATE bag SET spec = 'x'",
    "an unknown state": "UPDATE task SET state = 'settned'",
    "a lost table": "DROP TABLE task",
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_is_told_with_the_ways_to_go_on(lived: Path, how: str) -> None:
    path = lived / FILE
    if DAMAGE[how]:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(DAMAGE[how])
    else:
        with path.open("r+b") as file:
            file.truncate(8192)
    with pytest.raises(DamagedJournalError) as told, closing(Journal(lived)) as journal, understood(path):
        recover(journal, {"here": TERMS}, 1.0)
    aside = f"mkdir {lived}/damaged; mv {path}* {lived}/damaged"
    assert aside in str(told.value)
    assert f"sqlite3 {lived}/damaged/{FILE} .recover | sqlite3 {path}" in str(told.value)


def test_a_question_to_a_damaged_journal(lived: Path) -> None:
    with closing(sqlite3.connect(lived / FILE, isolation_level=None)) as db:
        db.execute("UPDATE bag SET spec = 'x'")
    with pytest.raises(DamagedJournalError, match="the journal is damaged"):
        answer_offline(lived, api.GetBags("all"), 1.0)


def test_a_full_disk_or_a_lock_is_no_damage(tmp_path: Path) -> None:
    for said in ("database or disk is full", "database is locked"):
        with pytest.raises(JournalError, match=said) as told, guarded(tmp_path / FILE):
            raise sqlite3.OperationalError(said)
        assert not isinstance(told.value, DamagedJournalError)
