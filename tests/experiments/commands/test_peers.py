"""`adaptor replay peers`."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from adaptor.errors import UsageError
from adaptor_experiments.commands.replay import replay
from tests.experiments.conftest import SMALL
from tests.simulation.invoking_replay import call as run

QUICK = ("peers", "--quick", "--tasks", "100", "--mean", "100", "--processes", "1")


def test_a_trace_of_ones_own(tmp_path: Path) -> None:
    ways = ("--ways", "elastic-100,completion-6,parsl-1h")
    output = run(replay, *QUICK, "--trace", SMALL, *ways, "--output", tmp_path).output
    assert "elastic-100 ends bags" in output
    with (tmp_path / "runs.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert {row["way"] for row in rows} == {"array-1.5", "parsl-1h", "elastic-100", "completion-6"}
    assert all(int(row["held"]) >= int(row["work"]) > 0 for row in rows)


def test_an_unknown_way(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'elastc-100' is none of array"):
        run(replay, *QUICK, "--ways", "elastc-100", "--output", tmp_path)
