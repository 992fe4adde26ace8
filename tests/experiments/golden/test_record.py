"""Outcomes that are recorded, and the fast part of them recomputed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from adaptor_experiments.golden.cases import CASES
from adaptor_experiments.golden.record import FOLDER, Record, differences, read, record_of, write
from tests.source_tree import ROOT

FOUND = Record({"trace=a": {"rows": 2, "turnaround": 5.0, "low": None}}, {"turnaround": "ab", "low": "cd"})


def test_every_case_is_recorded() -> None:
    assert [*read(ROOT / FOLDER)] == [*CASES]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.fast])
def test_outcomes_are_as_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert not [*differences(read(FOLDER)[name], record_of(name, Path(), 1))]


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path, {"small": FOUND})
    assert read(tmp_path) == {"small": FOUND}
    assert not [*differences(read(tmp_path)["small"], FOUND)]


def test_a_difference_names_its_group_and_columns() -> None:
    moved = msgspec.structs.replace(
        FOUND,
        figures={"trace=a": {"rows": 2, "turnaround": 6.0, "low": None}, "trace=b": {"rows": 1}},
        hashes={"turnaround": "xy", "low": "cd", "high": "ef"},
    )
    assert [*differences(FOUND, moved)] == [
        "columns that differ: high, turnaround",
        "trace=a: turnaround 5.0 → 6.0",
        "trace=b: rows None → 1",
    ]
