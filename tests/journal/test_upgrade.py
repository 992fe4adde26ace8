"""After an upgrade of the adaptor finished work is still there, whatever happens meanwhile."""

from __future__ import annotations

import json
import logging
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adaptor import api
from adaptor.errors import JournalError
from adaptor.journal import database
from adaptor.journal.credits import budgets_of_bags, entries
from adaptor.journal.database import (
    FILE,
    FORMAT,
    check_format,
    copy_of,
    open_for_reading,
    open_for_writing,
)
from adaptor.journal.journal import Journal
from adaptor.journal.queries import answer, answer_offline
from adaptor.journal.recovery import recover
from adaptor.protocol.messages import AttemptKey
from tests.journal import schema
from tests.journal.schema import format_in
from tests.scheduling.broker_world import TERMS, World
from tests.shapes import misfits, shapes

FIXTURES = Path(__file__).parents[2] / "fixtures" / "journals"
EXAMPLE = Path(__file__).parent / "example_format"
"""A format after the present one: a table and a column more."""
NEXT = FORMAT + 1
NOW = 1.8e9

BAGS = [  # As fixtures/states/make.py leaves them.
    ("finished", "done", 3, 0, 0, 0, 0),
    ("mixed", "running", 1, 1, 2, 0, 0),
    ("cancelled", "cancelled", 0, 0, 0, 2, 0),
    ("waiting", "running", 0, 0, 0, 0, 3),
]


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory with a lived journal of the present format, where the code knows the next one."""
    shutil.copy(FIXTURES / f"format-{FORMAT}.sqlite", tmp_path / FILE)
    monkeypatch.setattr(database, "FORMAT", NEXT)
    monkeypatch.setattr(database, "FOLDER", next_format(tmp_path.parent / f"{tmp_path.name}-code"))
    return tmp_path


def next_format(folder: Path) -> Path:
    """The present schema and migrations, and one migration more."""
    shutil.copytree(database.FOLDER, folder, ignore=lambda _, names: [n for n in names if n.endswith("py")])
    migration = (EXAMPLE / "migration.sql").read_text()
    (folder / "migrations").mkdir(exist_ok=True)
    (folder / "migrations" / f"{NEXT:03}.sql").write_text(migration)
    (folder / "schema.sql").write_text((database.FOLDER / "schema.sql").read_text() + migration)
    return folder


def raw(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def tables(db: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """The columns of each table, and the indices."""
    names = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    columns = {name: db.execute(f"PRAGMA table_info({name})").fetchall() for (name,) in names}
    indices = db.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
    return {**columns, "indices": sorted(indices.fetchall())}


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(raw(path)) as db:
        return {
            name: db.execute(f"SELECT * FROM {name}").fetchall() for name in tables(db) if name != "indices"
        }


def bags_in(answered: Any) -> list[tuple[object, ...]]:
    return [
        (bag.name, bag.state, bag.done, bag.failed, bag.running, bag.cancelled, bag.waiting)
        for bag in answered.bags
    ]


def test_there_is_a_journal_and_a_migration_for_every_format() -> None:
    migrations = {path.name for path in database.FOLDER.glob("migrations/*")}
    assert migrations == {f"{number:03}.sql" for number in range(2, FORMAT + 1)}
    journals = {path.name: format_in(path) for path in FIXTURES.glob("*.sqlite")}
    assert journals == {f"format-{number}.sqlite": number for number in range(1, FORMAT + 1)}


def test_the_schema_changes_with_its_number_only() -> None:
    assert schema.present() == database.SCHEMA, (
        "schema.sql has changed: `python -m tests.journal.schema` (see fixtures/journals/README.md)"
    )


def test_a_comment_is_no_change_of_the_schema_and_a_column_is_one() -> None:
    one = "CREATE TABLE a (b INTEGER -- what\n, c TEXT);"
    assert schema.digest(one) == schema.digest("CREATE TABLE a (b INTEGER\n  , c TEXT);")
    assert schema.digest(one) != schema.digest("CREATE TABLE a (b INTEGER, c TEXT, d TEXT);")


def test_what_columns_hold_as_msgpack_is_still_understood() -> None:
    assert misfits(json.loads(schema.SHAPES.read_text()), shapes(schema.PACKED)) == []


def test_a_released_format_is_not_changed_without_a_new_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "fixtures" / "states" / "0.1.0"
    state.mkdir(parents=True)
    shutil.copy(FIXTURES / f"format-{FORMAT}.sqlite", state / FILE)
    monkeypatch.setattr(schema, "ROOT", tmp_path)
    monkeypatch.setattr(schema, "STATES", state.parent)
    (tmp_path / "CHANGELOG.md").write_text("## [Unreleased]\n")
    assert schema.released_in() == ""
    (tmp_path / "CHANGELOG.md").write_text("## [Unreleased]\n\n## [0.1.0] - 2026-12-01\n")
    assert schema.released_in() == "0.1.0"
    monkeypatch.setattr(database, "SCHEMA", "another")
    with pytest.raises(SystemExit, match=r"release 0\.1\.0 has format"):
        schema.renew()


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
def test_a_journal_of_each_format_has_the_tables_of_a_new_one(number: int, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    shutil.copy(FIXTURES / f"format-{number}.sqlite", tmp_path / FILE)
    with closing(open_for_writing(tmp_path)) as lived, closing(open_for_writing(new)) as made:
        assert tables(lived) == tables(made)


def test_a_migrated_journal_has_the_tables_of_a_new_one(old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    with closing(open_for_writing(old)) as migrated, closing(open_for_writing(new)) as made:
        assert tables(migrated) == tables(made)
        assert "example" in tables(made)
    assert format_in(old / FILE) == format_in(new / FILE) == NEXT


def test_what_was_done_is_still_there(old: Path) -> None:
    with closing(raw(old / FILE)) as db:
        name = db.execute("PRAGMA application_id").fetchone()[0]
    with closing(Journal(old)) as journal:
        assert journal.instance == f"{name:08x}", "its pilots are found by it"
        assert bags_in(answer(journal.connection, api.GetBags("all"), NOW)) == BAGS
        tasks = answer(journal.connection, api.GetTasks(1), NOW)
        assert [(task.command, task.exit_code) for task in tasks] == [
            ("echo one", 0),
            ("echo two", 0),
            ("echo three", 0),
        ]
        report = answer(journal.connection, api.GetReport(1), NOW)
        assert report.totals.used > 0
        assert budgets_of_bags(journal.read(entries)) == {2: 50_000_000}


def test_the_work_goes_on(old: Path) -> None:
    with closing(Journal(old)) as journal:
        broker = recover(journal, {"here": TERMS}, NOW)
        assert set(broker.state.bags) == {2, 4}
        awaited = {key for worker in broker.state.workers.values() for key in worker.held}
        assert {(key.bag, key.task) for key in awaited} == {(2, 2), (2, 3)}
        assert [task.command for task in journal.inputs([AttemptKey(4, 2, 1)])] == ["echo later"]
    world = World(old, sites=("here",))
    world.cpus[4] = 1
    bag = world.submit(2)
    player = world.join("new", processors=2, site="here")
    for _ in range(5):  # Three tasks of the bag that waited, and two of the new one.
        world.finish(player)
    assert (world.states(4), world.states(bag)) == (["done"] * 3, ["done"] * 2)
    world.close()


def test_a_copy_of_the_old_file_is_kept_and_the_log_names_it(
    old: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = rows(old / FILE)
    with caplog.at_level(logging.INFO):
        open_for_writing(old).close()
    copy = copy_of(old / FILE, FORMAT)
    assert rows(copy) == before
    assert format_in(copy) == FORMAT
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert str(copy) in caplog.text
    copy.unlink()
    open_for_writing(old).close()
    assert sorted(path.name for path in old.iterdir()) == [FILE], "a journal is migrated once"


def test_the_copy_has_what_only_the_wal_of_a_killed_daemon_has(old: Path, tmp_path: Path) -> None:
    here = old / "here.sqlite"
    (old / FILE).rename(here)
    with closing(raw(here)) as db:
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("UPDATE bag SET name = 'only in the WAL' WHERE id = 1")
        for suffix in ("", "-wal"):
            shutil.copy(old / f"here.sqlite{suffix}", old / f"{FILE}{suffix}")
    with closing(open_for_writing(old)) as migrated:
        assert migrated.execute("SELECT name FROM bag WHERE id = 1").fetchone() == ("only in the WAL",)
    assert rows(copy_of(old / FILE, FORMAT))["bag"][0][2] == "only in the WAL"


def test_where_no_copy_can_be_made_nothing_is_migrated(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    before = rows(old / FILE)
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(JournalError, match="No space left on device"):
        open_for_writing(old)
    assert (format_in(old / FILE), rows(old / FILE)) == (FORMAT, before)
    assert sorted(path.name for path in old.iterdir()) == [FILE]


def test_reading_migrates_nothing_on_the_disk(old: Path) -> None:
    before = (old / FILE).read_bytes()
    assert bags_in(answer_offline(old, api.GetBags("all"), NOW)) == BAGS
    assert answer_offline(old, api.GetReport(2), NOW).bag.id == 2
    assert (old / FILE).read_bytes() == before
    assert [path.name for path in old.iterdir()] == [FILE]


def test_a_reader_cannot_write(old: Path) -> None:
    with closing(open_for_reading(old)) as db, pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("DELETE FROM bag")


def test_a_newer_journal_is_known_while_a_daemon_has_it_open(tmp_path: Path) -> None:
    check_format(tmp_path)
    with closing(open_for_writing(tmp_path)) as db:
        check_format(tmp_path)
        db.execute(f"PRAGMA user_version = {FORMAT + 1}")
    with pytest.raises(JournalError, match=rf"format {FORMAT + 1}.*up to {FORMAT}"):
        check_format(tmp_path)


def test_the_file_has_its_number_as_soon_as_it_is_migrated(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_for_writing(old)):
        monkeypatch.setattr(database, "FORMAT", FORMAT)
        with pytest.raises(JournalError, match=rf"format {NEXT}"):
            check_format(old)


def test_a_journal_of_a_time_before_the_first_release_is_named_as_such(tmp_path: Path) -> None:
    with closing(open_for_writing(tmp_path)) as db:
        db.execute("ALTER TABLE pilot DROP COLUMN least")
    before = (tmp_path / FILE).read_bytes()
    for open_it in (open_for_writing, open_for_reading):
        with pytest.raises(
            JournalError, match=r"no column pilot\.least.*before the first release.*ADAPTOR_DIR"
        ):
            open_it(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


def test_a_table_that_is_missing_is_lost_or_of_a_time_before_the_first_release(tmp_path: Path) -> None:
    with closing(open_for_writing(tmp_path)) as db:
        db.execute("DROP TABLE decision_bag")
    with pytest.raises(JournalError, match=r"no such table: decision_bag; it is lost, or .*first release"):
        open_for_reading(tmp_path)


@pytest.mark.parametrize("open_it", [open_for_writing, open_for_reading])
def test_a_newer_journal_is_refused_with_both_numbers_and_the_way_out(
    tmp_path: Path, open_it: object
) -> None:
    open_for_writing(tmp_path).close()
    with closing(raw(tmp_path / FILE)) as db:
        db.execute(f"PRAGMA user_version = {FORMAT + 95}")
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(JournalError, match=rf"format {FORMAT + 95}.*up to {FORMAT}.*ADAPTOR_DIR") as refused:
        open_it(tmp_path)  # type: ignore[operator]
    assert "go back" not in str(refused.value)
    copy_of(tmp_path / FILE, FORMAT).touch()
    with pytest.raises(JournalError, match=rf"go back to .*format-{FORMAT}"):
        open_it(tmp_path)  # type: ignore[operator]
    assert (tmp_path / FILE).read_bytes() == before


KILLED_AT_A_STATEMENT = """
import os, signal, sqlite3, sys
from pathlib import Path
from adaptor.journal import database

left = int(sys.argv[2])
database.FOLDER, database.FORMAT = Path(sys.argv[3]), database.FORMAT + 1

def count(statement):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA locking_mode = EXCLUSIVE")
db.set_trace_callback(count)
database.prepare_for_writing(db, Path(sys.argv[1]))
"""


def test_a_kill_at_any_statement_of_a_migration_leaves_a_whole_format(old: Path, tmp_path: Path) -> None:
    with closing(raw(old / FILE)) as db:
        before = tables(db)
    killed = 0
    for statement in range(1, 1000):
        directory = tmp_path / str(statement)
        directory.mkdir()
        shutil.copy(old / FILE, directory / FILE)
        arguments = [str(directory / FILE), str(statement), str(database.FOLDER)]
        command = [sys.executable, "-c", KILLED_AT_A_STATEMENT, *arguments]
        ended = subprocess.run(command, check=False).returncode
        with closing(raw(directory / FILE)) as db:
            reached = int(db.execute("PRAGMA user_version").fetchone()[0])
            assert reached == NEXT or tables(db) == before
        assert bags_in(answer_offline(directory, api.GetBags("all"), NOW)) == BAGS
        open_for_writing(directory).close()
        assert format_in(directory / FILE) == NEXT
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        killed += 1
    assert killed > 5, "it was killed in the copy and in the migration"
