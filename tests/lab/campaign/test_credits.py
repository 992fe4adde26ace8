"""The recount of credits finds what was charged wrongly."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from adaptor.budget.accounting.entries import Budget, Entry
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.journal.credits import write_entry
from adaptor.model import Request
from lab.campaign.credits import charged, check_credits
from lab.campaign.schedulers.cluster import Held
from lab.campaign.verifying import Wrong

TARIFF = Tariff(price_explicit=10, price_donated=2, charging_unit=10)


@pytest.fixture
def entries() -> list[Entry]:
    """A bag with a budget, and one pilot that was there for 33 s."""
    ledger = Ledger()
    return [
        ledger.set_price("hpc", TARIFF, 1.0),
        ledger.set_budget(Budget(bag=1, amount=2_000_000), 1.0),
        ledger.reserve(1, "hpc", Request(8, 60), "explicit", {1: 1.0}, 2.0),
        ledger.settle(1, 100.0, 133.0, {}, 140.0),
    ]


def journal(path: Path, entries: list[Entry], ended: float = 133.0) -> Path:
    with closing(sqlite3.connect(path / "journal.sqlite")) as db, db:
        db.execute("CREATE TABLE credit (id INTEGER PRIMARY KEY, pilot, bag, entry BLOB NOT NULL)")
        db.execute("CREATE TABLE pilot (id, tag, state, p, started, ended)")
        db.execute("INSERT INTO pilot VALUES (1, 'adaptor-x.1', 'completed', 8, 100.0, ?)", (ended,))
        for entry in entries:
            write_entry(db, entry)
    return path / "journal.sqlite"


def test_a_right_charge_is_not_complained_of(tmp_path: Path, entries: list[Entry]) -> None:
    assert check_credits(journal(tmp_path, entries), []) == []


@pytest.mark.parametrize(("seconds", "right"), [(12.0, True), (21.0, False)])
def test_processors_that_were_given_back_are_charged_until_then(
    tmp_path: Path, entries: list[Entry], seconds: float, right: bool
) -> None:
    ledger = Ledger(entries[:3])
    given_back = ledger.give_back(1, 4, seconds, 112.0)
    whole = [*entries[:3], given_back, ledger.settle(1, 100.0, 133.0, {}, 140.0)]
    with closing(sqlite3.connect(journal(tmp_path, whole))) as db:
        assert (list(charged(db)) == []) is right


@pytest.mark.parametrize(
    ("kept", "ended", "told"),
    [
        ([0, 1, 2], 133.0, "settled 0 times"),
        ([0, 1, 2, 3, 3], 133.0, "settled 2 times"),
        ([0, 1, 2, 3], 145.0, "due are"),
    ],
)
def test_a_wrong_charge_is_found(
    tmp_path: Path, entries: list[Entry], kept: list[int], ended: float, told: str
) -> None:
    with closing(sqlite3.connect(journal(tmp_path, [entries[one] for one in kept], ended))) as db:
        (found,) = charged(db)
    assert found.wrong is Wrong.CHARGED
    assert told in found.text


def test_a_budget_that_was_overdrawn_is_found(tmp_path: Path, entries: list[Entry]) -> None:
    small = Ledger().impose(Budget(bag=1, amount=1_000), 1.5)
    found = check_credits(journal(tmp_path, [*entries[:2], small, *entries[2:]]), [])
    assert any("more is used than the budget" in each.text for each in found)


@pytest.mark.parametrize(
    ("seconds", "processors", "told"),
    [(33.0, 8, []), (33.9, None, []), (30.0, 8, ["30 s"]), (33.0, 4, ["has 4"]), (1.0, 4, ["1 s", "has 4"])],
)
def test_what_differs_from_the_records_is_found(
    tmp_path: Path, entries: list[Entry], seconds: float, processors: int | None, told: list[str]
) -> None:
    records = [Held("adaptor-x.1", seconds, processors), Held("adaptor-y.1", 5.0, 1)]
    found = check_credits(journal(tmp_path, entries), records)
    assert len(found) == len(told)
    assert all(words in each.text for words, each in zip(told, found, strict=True))


def test_records_of_other_requests_alone_are_no_proof(tmp_path: Path, entries: list[Entry]) -> None:
    (found,) = check_credits(journal(tmp_path, entries), [Held("adaptor-y.1", 5.0, 1)])
    assert found.wrong is Wrong.OTHER
