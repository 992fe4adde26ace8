"""Transactions, names and decisions of the journal."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from adaptor import api
from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.errors import JournalError, UnknownBagError
from adaptor.journal import adding
from adaptor.journal.journal import Journal
from adaptor.journal.recovery import load_bag
from adaptor.model import CraftedRequest, Request
from lab.campaign.small_disk import failing_disk, quota_disk
from tests.journal.bags import add_bag, publish
from tests.scheduling.broker_world import World


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


def test_a_transaction_in_another_is_a_part_of_it(tmp_path: Path) -> None:
    with closing(Journal(tmp_path)) as journal:

        def fail_after_a_part() -> None:
            with journal.transaction(durable=True):
                journal.explain(1.0, "s", "problem", "a part")
                assert journal.connection.in_transaction
                raise UnknownBagError(1)

        with pytest.raises(UnknownBagError):
            fail_after_a_part()
        with journal.transaction():
            journal.explain(1.0, "s", "problem", "another")
        told = journal.connection.execute("SELECT text FROM decision").fetchall()
        assert told == [("another",)]


def test_bags_and_requests_outlive_the_machine_at_once_and_the_rest_after_a_sync(tmp_path: Path) -> None:
    """The disk fails as at a power cut: what has not reached it is gone."""
    with failing_disk(tmp_path / "disk", 16) as disk:
        if disk is None:
            pytest.skip("no file system can be mounted here")
        with closing(Journal(disk.path)) as journal:
            journal.explain(1.0, "s", "problem", "synced")
            assert journal.is_to_sync()
            journal.sync()
            assert not journal.is_to_sync()
            add_bag(journal, BagSpec(name="", cwd="", output="", environment={}), [TaskInput(["true"])], 1.0)
            journal.add_pilots("s", "adaptor-x.", [CraftedRequest(Request(1, 60), 0.0, 1, "")], 1.0)
            journal.explain(1.0, "s", "problem", "too late")
            disk.fail()
            with pytest.raises(
                JournalError, match=r"cannot be used: disk I/O error \(Read-only file system\)"
            ):
                journal.explain(1.0, "s", "problem", "refused")
        disk.replace()
        with closing(Journal(disk.path)) as journal:
            read = [
                journal.connection.execute(f"SELECT {what}").fetchall()
                for what in ("COUNT(*) FROM task", "tag FROM pilot", "text FROM decision")
            ]
            assert read == [[(1,)], [("adaptor-x.1",)], [("synced",)]]


def test_a_quota_is_named_and_ends_with_its_cause(tmp_path: Path) -> None:
    with quota_disk(tmp_path / "disk", 16) as disk:
        if disk is None:
            pytest.skip("no Btrfs can be mounted here")
        with closing(Journal(disk.path)) as journal:
            disk.exceed_quota()
            with pytest.raises(JournalError, match=r"cannot be used: disk I/O error \(Disk quota exceeded\)"):
                journal.explain(1.0, "s", "problem", "x" * 100_000)
            disk.lift_quota()
            journal.explain(1.0, "s", "problem", "within it again")
            assert journal.read(lambda db: db.execute("SELECT COUNT(*) FROM decision").fetchone()) == (1,)


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


def test_a_bag_gets_the_next_number_that_is_not_taken(tmp_path: Path) -> None:
    """The folder of the default name would be another user's."""
    spec = BagSpec(name="b", cwd="/", output="/work/adaptor-{bag}", environment={})
    with closing(Journal(tmp_path)) as journal:
        taken: list[set[int]] = [{1, 2, 4}, set(), {1, 2}, {6}]
        with journal.transaction() as db:
            numbers = [
                adding.open_bag(db, api.Open(f"{at}", spec, taken=tuple(each)), 1.0)
                for at, each in enumerate(taken)
            ]
        assert numbers == [3, 4, 5, 7]
        publish(journal, "3")
        assert journal.bag_spec(7).output == "/work/adaptor-7"


def test_a_bag_that_is_not_there(tmp_path: Path) -> None:
    with closing(Journal(tmp_path)) as journal:
        with pytest.raises(UnknownBagError, match="there is no bag 3"):
            journal.bag_spec(3)
        with pytest.raises(UnknownBagError, match="there is no bag 3"):
            load_bag(journal, 3)
