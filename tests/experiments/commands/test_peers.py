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


def test_whole_nodes_and_jobs_that_start_slowly(tmp_path: Path) -> None:
    """Every job of ours has whole nodes, and every bag is later by at least one start."""
    for name, options in (("plain", ()), ("slow", ("--node", "8", "--start", "30"))):
        ways = ("--ways", "elastic-100,array-3,hyperqueue-1h")
        run(replay, *QUICK, "--trace", SMALL, *ways, *options, "--output", tmp_path / name)
    found = {}
    for name in ("plain", "slow"):
        with (tmp_path / name / "runs.csv").open() as lines:
            found[name] = list(csv.DictReader(lines))
    assert all(int(row["held"]) % 8 == 0 for row in found["slow"])
    assert all(int(row["jobs"]) <= 100 / 8 + 1 for row in found["slow"] if row["way"].startswith("array"))
    longest = {row["way"]: int(row["turnaround"]) for row in found["plain"]}
    assert all(int(row["turnaround"]) > 30 and row["way"] in longest for row in found["slow"])
    assert "begins 30 s after its start" in (tmp_path / "slow" / "report.html").read_text()


def test_fair_share_and_the_depth_of_backfilling(tmp_path: Path) -> None:
    """The same bags on a queue with other rules; the page says which."""
    options = ("--fair-share", "7d", "--backfill-per-user", "2", "--ways", "array-3")
    run(replay, *QUICK, "--trace", SMALL, *options, "--output", tmp_path / "bounded")
    run(replay, *QUICK, "--trace", SMALL, *options[-2:], "--output", tmp_path / "plain")
    bounded, plain = ((tmp_path / name / "runs.csv").read_text() for name in ("bounded", "plain"))
    assert bounded != plain
    page = (tmp_path / "bounded" / "report.html").read_text()
    assert "usage halves in 7d" in page
    assert "the first 2 waiting jobs of each user" in page


def test_an_unknown_way(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'elastc-100' is none of array"):
        run(replay, *QUICK, "--ways", "elastc-100", "--output", tmp_path)
