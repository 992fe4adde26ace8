"""The records of kinds stay few, however many bags there were, and are found fast."""

from __future__ import annotations

import sqlite3
import time

import msgspec
import pytest

from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec, TaskKind
from adaptor.journal import kind_rows
from adaptor.journal.journal import Journal
from adaptor.journal.kind_rows import earlier_bags, insert_records, records_of
from adaptor.kinds.earlier import KEPT, record_of
from adaptor.kinds.recognising import kind_of

SPEC = BagSpec(name="b", cwd="/", output="/nowhere", environment={})
FIT = TaskInput("./fit 1")
KEY = kind_of(SPEC, FIT)[0]


def bag(db: sqlite3.Connection, commands: list[str], wall: float = 5.0, site: str = "here") -> int:
    """A bag whose tasks are done: the last of them in its second attempt."""
    spec = msgspec.msgpack.encode(SPEC)
    row = db.execute(
        "INSERT INTO bag (spec, name, tasks, submitted, waiting) VALUES (?, 'b', ?, 0, 0)",
        (spec, len(commands)),
    )
    number = int(row.lastrowid or 0)
    pilot = db.execute(
        "INSERT INTO pilot (site, tag, state, p, tr, submitted, reason)"
        " VALUES (?, ?, 'completed', 1, 60, 0, '')",
        (site, f"t{number}"),
    ).lastrowid
    for task, command in enumerate(commands):
        last = 2 if task == len(commands) - 1 else 1
        db.execute(
            "INSERT INTO task (bag, number, state, attempts, result, event, input)"
            " VALUES (?, ?, 'done', ?, ?, ?, ?)",
            (number, task, last, last, task + 1, msgspec.msgpack.encode(TaskInput(command))),
        )
        for attempt in range(1, last + 1):
            db.execute(
                "INSERT INTO attempt (bag, task, number, pilot, node, worker, leased, outcome, wall,"
                " peak_memory) VALUES (?, ?, ?, ?, 'n', 'w', 0, ?, ?, 1048576)",
                (number, task, attempt, pilot, "done" if attempt == last else "failed", wall),
            )
    db.execute("UPDATE bag SET events = tasks WHERE id = ?", (number,))
    return number


def test_results_count_by_kind_and_site(journal: Journal) -> None:
    with journal.transaction() as db:
        insert_records(db, bag(db, ["./fit 1"] * 3 + ["./prep 1"]), ["here"], 10.0)
        insert_records(db, bag(db, ["./fit 2"] * 2, wall=9.0, site="there"), ["here", "there"], 11.0)
        insert_records(db, bag(db, ["./fit 2"], site="elsewhere"), ["here", "there"], 12.0)
        found = records_of(db, [KEY], ["here", "there"])[KEY]
    assert {site: [(each.tasks, each.mean) for each in records] for site, records in found.items()} == {
        "here": [(3, 5.0)],
        "there": [(2, 9.0)],
    }


def test_the_newest_bags_of_a_kind_stay(journal: Journal) -> None:
    with journal.transaction() as db:
        for number in range(KEPT + 5):
            insert_records(db, bag(db, ["./fit"], wall=number + 1.0), ["here"], float(number))
        found = records_of(db, [kind_of(SPEC, TaskInput("./fit"))[0]], ["here"])
        assert db.execute("SELECT COUNT(*) FROM kind").fetchone() == (KEPT,)
    ((records,),) = [list(at.values()) for at in found.values()]
    assert [record.mean for record in records] == [float(KEPT + 5 - age) for age in range(KEPT)]


def test_of_all_kinds_the_newest_stay(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind_rows, "MOST_RECORDS", 10)
    with journal.transaction() as db:
        for number in range(30):
            insert_records(db, bag(db, [f"./fit{number}"]), ["here"], float(number))
        assert db.execute("SELECT COUNT(*), MIN(at) FROM kind").fetchone() == (11, 19.0)


def test_a_large_bag_is_looked_at_in_a_sample(journal: Journal) -> None:
    with journal.transaction() as db:
        insert_records(db, bag(db, ["./fit 1"] * 3000), ["here"], 1.0)
        (record,) = records_of(db, [KEY], ["here"])[KEY]["here"]
    assert record.tasks == 3000


def test_in_a_journal_with_ten_thousand_bags_a_kind_is_found_fast(journal: Journal) -> None:
    packed = msgspec.msgpack.encode(record_of(10, [1.0, 2.0, 3.0], [1 << 20]))
    with journal.transaction() as db:
        db.executemany(
            "INSERT INTO kind (key, site, bag, at, record) VALUES (?, 'here', ?, ?, ?)",
            [(f"{number % 2000:024x}", number, float(number), packed) for number in range(10_000)],
        )
        wanted = bag(db, ["./fit 1"])
        began = time.process_time()
        insert_records(db, wanted, ["here"], 10_001.0)
        spec = msgspec.structs.replace(SPEC, kinds=(TaskKind(KEY, "fit", 5),))
        found = earlier_bags(db, spec, ["here"])
        took = time.process_time() - began
    assert found.tasks["here"].tasks == 1
    assert took < 10.0, "which takes some milliseconds"
