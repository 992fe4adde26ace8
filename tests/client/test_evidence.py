"""Evidence for others: its figures are those of reports and of the record of starts, and it names nothing."""

from __future__ import annotations

import json
import math
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from adaptor import api
from adaptor.bag_spec import BagSpec
from adaptor.client.evidence import Evidence, gathered, without_names
from adaptor.forecast.kept_starts import JudgedStart, KeptStarts
from adaptor.forecast.past_waits import PastWait, Waiting
from adaptor.forecast.record import LATE, Record
from adaptor.journal.database import FILE
from adaptor.journal.queries import answer_offline
from adaptor.model import Estimate
from tests.api.lived import NOW, copy_lived
from tests.cli.fake_control import bag_view, pilot_view

WORDS = {"state", "user_change", "kind", "outcome"}
"""Columns of the journal that hold words of the adaptor's own."""
PACKED = {"spec": BagSpec, "input": api.TaskInput}
_TOTALS = api.Totals(requests=1, paid=50.0, used=30.0, wasted=20.0, turnaround=40.0, first_result=4.0)

names = st.text(st.sampled_from("aZ09-_. /äß漢\"'\\%"), min_size=4, max_size=12).map(lambda text: f"Zq{text}")


def judged(**changes: object) -> JudgedStart:
    start = JudgedStart(True, 9.0, "start", 0.5, told=Estimate(10.0, 60.0, 300.0), came=69.0)
    return msgspec.structs.replace(start, **changes)


def renamed(path: Path, name: Iterator[str]) -> list[str]:
    """Give all that has a name in a journal another one; these names."""
    used: list[str] = []

    def new(_old: object = "") -> str:
        used.append(f"{next(name)}{len(used)}")
        return used[-1]

    def all_new(value: object) -> object:
        if isinstance(value, dict):
            return {key: all_new(item) for key, item in value.items()}
        if isinstance(value, list):
            return [all_new(item) for item in value]
        return new() if isinstance(value, str) else value

    with closing(sqlite3.connect(path)) as db, db:
        db.create_function("renamed", 1, new)
        tables = [table for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for _, column, kind, *_ in db.execute(f"PRAGMA table_info({table})").fetchall():
                if kind == "TEXT" and column not in WORDS and not table.startswith("sqlite_"):
                    db.execute(f"UPDATE {table} SET {column} = renamed({column}) WHERE {column} IS NOT NULL")
        for bag, packed in db.execute("SELECT id, spec FROM bag").fetchall():
            spec = msgspec.msgpack.decode(packed, type=BagSpec)
            other = msgspec.structs.replace(
                spec, name=new(), cwd=f"/{new()}", output=f"/{new()}", environment={new(): new()}
            )
            db.execute("UPDATE bag SET spec = ? WHERE id = ?", (msgspec.msgpack.encode(other), bag))
        for bag, task in db.execute("SELECT bag, number FROM task").fetchall():
            command = msgspec.msgpack.encode(api.TaskInput(command=new()))
            db.execute("UPDATE task SET input = ? WHERE bag = ? AND number = ?", (command, bag, task))
        waits = tuple(PastWait(Waiting(4, 3600.0, owner=new()), 60.0 * n) for n in range(3))
        kept = msgspec.msgpack.encode(KeptStarts((judged(),), waits))
        db.execute("INSERT OR REPLACE INTO starts_seen (site, judged) VALUES (?, ?)", (new(), kept))
    return used


@settings(max_examples=8)
@given(st.lists(names, min_size=3, max_size=6))
def test_nothing_that_the_journal_names_is_in_the_export(some: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        copy_lived(state)
        used = renamed(state / FILE, (some[n % len(some)] for n in range(1_000_000)))
        found = gathered(lambda question: answer_offline(state, question, NOW))
    assert len(used) > 50
    text = msgspec.json.encode(found).decode()
    assert found.bags
    assert found.requests
    assert found.sites[0].starts
    assert [name for name in used if name in text or json.dumps(name)[1:-1] in text] == []


_FIGURES = inspect.IntType, inspect.FloatType, inspect.BoolType, inspect.NoneType
_WORDS = inspect.LiteralType, inspect.EnumType


def of_names(kind: inspect.Type) -> Iterator[inspect.Type]:
    """The parts of a type that can hold any text; without those of a record."""
    if isinstance(kind, inspect.Metadata):
        yield from of_names(kind.type)
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields if kind.cls is not Record else ():
            yield from of_names(field.type)
    elif isinstance(kind, inspect.UnionType):
        for each in kind.types:
            yield from of_names(each)
    elif isinstance(kind, inspect.ListType):
        yield from of_names(kind.item_type)
    elif not isinstance(kind, (*_FIGURES, *_WORDS)) and getattr(kind, "pattern", "") != "^[sp][0-9]+$":
        yield kind


def test_no_field_of_the_document_can_hold_a_name() -> None:
    """Words are literals or states, or the letter and number of a site or a partition."""
    assert list(of_names(inspect.type_info(Evidence))) == []
    assert list(of_names(inspect.type_info(api.PilotRecord))), "it does find names"


def test_the_words_of_the_record_are_reasons_of_our_own() -> None:
    record = Record(bags=3, cost=None, end=None, not_counted={LATE: 1, "cancelled": 2, "Zq of a user": 1})
    found = without_names([], [], [], record)
    assert found.record is not None
    assert found.record.not_counted == {LATE: 1, "cancelled": 2}


def test_figures_are_those_of_reports_and_times_are_relative() -> None:
    begin = 1.7e9
    first = api.FirstForecastView(
        made=begin + 5,
        finished=1,
        tasks=9,
        cost=None,
        end=Estimate(begin + 25, begin + 35, math.inf),
        final_cost=None,
        final_end=begin + 45,
        cost_held=None,
        end_held=True,
        not_counted="",
    )
    late = bag_view(2, submitted=begin + 7300, ended=None)
    reports = [
        api.BagReport(bag=bag_view(1, submitted=begin), requests=[], totals=_TOTALS, first_forecast=first),
        api.BagReport(bag=late, requests=[], totals=_TOTALS),
    ]
    ran = {"started": begin + 90, "ended": begin + 190, "used": 30.0, "wasted": 20.0}
    waits = {"started": None, "ended": None, "predicted_start": None}
    pilots = [
        pilot_view(1, site="hpc", partition="long", submitted=begin, predicted_start=begin + 60, **ran),
        pilot_view(2, site="far", partition="long", submitted=begin + 9, **waits),
        pilot_view(3, site="hpc", partition="", node="n7", submitted=begin + 3700, **waits),
    ]
    found = without_names(reports, pilots, [])
    assert (found.hours, [bag.hour for bag in found.bags]) == (2, [0, 2])
    assert (found.bags[0].paid, found.bags[0].wasted, found.bags[0].turnaround) == (50.0, 20.0, 40.0)
    forecast = found.bags[0].forecast
    assert forecast is not None
    assert (forecast.after, forecast.end, forecast.ended) == (5.0, Estimate(20.0, 30.0, math.inf), 40.0)
    assert forecast.end_held
    one, two, three = found.requests
    assert (one.site, one.partition, two.site, two.partition) == ("s1", "p1", "s2", "p2")
    assert (three.site, three.partition, three.donated, three.hour) == ("s1", None, True, 1)
    assert (one.planned_wait, one.wait, one.held, one.wasted) == (60.0, 90.0, 100.0, 20.0)
    json.loads(msgspec.json.encode(found))


def test_starts_have_their_intervals_and_waits_are_sums_of_shapes() -> None:
    of_16 = [PastWait(Waiting(16, 3500.0), 60.0 * n) for n in range(1, 10)]
    again = PastWait(Waiting(16, 3500.0, waited=900.0), 5.0)  # the same job, some minutes later
    seen = KeptStarts((judged(), judged(held=False, error=40.0, told=None, came=None)), (*of_16, again))
    (site,) = without_names([], [], [api.SiteStarts("hpc", seen)]).sites
    assert (site.sums.starts, site.sums.held, site.sums.width) == (2, 1, 290.0)
    assert (site.starts[0].told, site.starts[0].came, site.starts[1].told) == (
        Estimate(10.0, 60.0, 300.0),
        69.0,
        None,
    )
    (wait,) = site.waits
    assert (wait.processors, wait.limit, wait.waits, wait.middle.value) == (16, 4096, 9, 300.0)


def test_nothing_was_ever_submitted() -> None:
    found = without_names([], [], [])
    assert (found.bags, found.requests, found.sites, found.hours) == ([], [], [], 0)
