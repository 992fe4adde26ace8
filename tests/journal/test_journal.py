"""The journal survives, is private, and says so when it cannot be used."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from adaptor.errors import JournalError
from adaptor.journal.database import FILE
from adaptor.journal.journal import Journal
from tests.scheduling.broker_world import World


def test_it_is_for_its_owner_alone(tmp_path: Path) -> None:
    Journal(tmp_path).close()
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path)

    def fail_half_way() -> None:
        with journal.transaction() as db:
            db.execute("INSERT INTO decision (time, site, kind, text) VALUES (1, 's', 'k', 't')")
            db.execute("INSERT INTO nonsense VALUES (1)")

    with pytest.raises(JournalError, match="nonsense"):
        fail_half_way()
    assert journal.connection.execute("SELECT COUNT(*) FROM decision").fetchone() == (0,)
    journal.close()


def test_no_second_writer(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(JournalError, match="locked"):
        Journal(tmp_path)
    journal.close()


def test_a_file_that_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("this is not a database, it only has its name\n" * 100)
    with pytest.raises(JournalError, match="cannot be used"):
        Journal(tmp_path)


def test_each_journal_has_a_name_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    names = []
    for folder in (tmp_path / "a", tmp_path / "b", tmp_path / "a"):
        folder.mkdir(exist_ok=True)
        journal = Journal(folder)
        names.append(journal.instance)
        journal.close()
    assert names[0] == names[2] != names[1]


def test_a_decision_may_take_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = world.journal.explain(1.0, "s", "withheld", "3 tasks wait")
    world.journal.explain(2.0, "s", "withheld", "2 tasks wait", replacing=first)
    rows = world.journal.connection.execute("SELECT time, text FROM decision").fetchall()
    assert rows == [(2.0, "2 tasks wait")]
    world.close()
