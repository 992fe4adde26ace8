"""From runs to ratios."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor_experiments.peers.experiment import REFERENCE, Outcome, Settings, geometric, ratios, report_of
from adaptor_experiments.tables import Runs

ROW = Outcome(
    trace="t",
    scheduler="easy",
    sample=0,
    tasks=100,
    mean=1000,
    shape="equal",
    way=REFERENCE,
    submitted=0,
    turnaround=1000,
    work=50,
    held=100,
    jobs=10,
    local_wait=25,
    slowdown=3.0,
    slowdown_without=1.5,
    slowdown_per_processor=1.8,
    slowdown_per_processor_without=1.2,
)


def with_ways(sample: int, **turnarounds: int) -> list[Outcome]:
    names = {"ours": "elastic-100", "array": "array-3"}
    rows = [msgspec.structs.replace(ROW, sample=sample)]
    for way, turnaround in turnarounds.items():
        rows.append(msgspec.structs.replace(rows[0], way=names[way], turnaround=turnaround))
    return rows


def test_ratios_are_of_the_same_bag_and_only_of_those_that_both_can_run() -> None:
    rows = Runs([*with_ways(0, ours=2000), *with_ways(1, ours=500), *with_ways(2, ours=-1)])
    assert sorted(ratios(rows, "elastic-100").values()) == [[0.5], [2.0]]
    found = geometric(rows, "elastic-100")
    assert found is not None
    assert found.value == pytest.approx(1.0)
    assert found.low == pytest.approx(0.5)
    assert geometric(rows, "array-3") is None


def test_the_page_has_a_line_for_each_way(tmp_path: Path) -> None:
    rows = Runs([*with_ways(0, ours=2000, array=-1)])
    settings = Settings(ways=(REFERENCE, "elastic-100", "array-3"))
    report = report_of(rows, settings, tmp_path)
    ways = {row[0]: row for row in report.exhibits[0].rows}
    assert all(len(row) == len(report.exhibits[0].headings) for row in ways.values())
    assert ways["elastic-100"][1:3] == ["2.00", "2.00"]
    assert ways["elastic-100"][-6:] == ["0 of 1", "50%", "10", "0.50", "2.00", "1.50"]
    assert ways["array-3"][-6:] == ["1 of 1", "-", "-", "-", "-", "-"]
    assert any("elastic-100" in sentence and "2.00" in sentence for sentence in report.conclusion)
