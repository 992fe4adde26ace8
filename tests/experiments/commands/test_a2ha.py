"""What `adaptor replay a2ha` leaves and says."""

from __future__ import annotations

import pytest

from adaptor_experiments.a2ha import design
from adaptor_experiments.a2ha.design import Settings, pieces, presets, run_piece, schemes
from adaptor_experiments.commands.replay import replay
from adaptor_experiments.resumable import all_rows
from tests.experiments.leavings import rows_of, top_of
from tests.simulation.invoking_replay import call


@pytest.fixture
def fewer(monkeypatch):
    """Two ratios instead of five by three, which the tests of the other parts do not need."""
    monkeypatch.setattr(design, "CREATION", (0.5, 1.0))


def test_all_that_a_reader_gets(fewer, tmp_path):
    out = tmp_path / "out"
    result = call(replay, "a2ha", "--orders", 2, "--output", out, "--processes", 1)
    assert result.exit_code == 0, result.output
    assert "Table 2" in result.output
    runs = rows_of(out / "runs.csv")
    assert len(runs) == 2 * len(schemes())
    assert all(float(run["wall"]) > 0 and int(run["units"]) >= int(run["hosts"]) >= 1 for run in runs)
    assert {row["hosts to begin with"] for row in rows_of(out / "long.csv")} == {"256", "100", "50", "1"}
    compared = rows_of(out / "comparison.csv")
    hosts = [
        row["paper"] for row in compared if row["where"].startswith("Table 2") and row["what"] == "hosts"
    ]
    assert [each.partition(" ")[0] for each in hosts] == ["1", "159", "256", "179", "154", "129"]
    assert {row["reason"] for row in compared if row["where"] == "Table 1"} <= {"not reproducible", "agrees"}
    assert "orders of each bag: 2 (whole: 200)" in result.output
    assert [row["paper"] for row in compared if row["where"] == "Table 1"] == [
        *("19", "4", "25", "3"), *("14", "3", "7", "1"), *("38", "8", "12", "8"),
    ]  # fmt: skip
    assert len([row for row in compared if row["where"].startswith("Table 2")]) == 6 * 4
    assert all(row["ours"] and row["reason"] for row in compared)
    assert {row["list"] for row in rows_of(out / "lists.csv")} > {"image rendering", "software testing"}
    assert "2011, Fig. 1" in {row["figure"] for row in rows_of(out / "omitted.csv")}
    page = (out / "report.html").read_text()
    assert "tests/experiments/a2ha/test_reasons.py::test_table_2_has_no_start_up" in page
    assert page.count("data:image/svg+xml;base64,") == len(list((out / "figures").glob("*.svg"))) == 12
    assert "image rendering, optimal 18 hosts: as published, the presets buy" in top_of(out)


def test_two_processes_find_the_same_as_one():
    settings = Settings(seed=4, orders=3)
    wanted = [scheme for scheme in presets() if scheme.bag == "demo"][:2]
    one, two = (all_rows(run_piece, pieces(settings, wanted), processes) for processes in (1, 2))
    assert one == two


def test_another_seed_gives_other_orders():
    wanted = [scheme for scheme in presets() if scheme.bag == "demo"][:1]
    one, two = (all_rows(run_piece, pieces(Settings(seed=seed, orders=3), wanted), 1) for seed in (1, 2))
    assert [row.wall for row in one] != [row.wall for row in two]


def test_the_whole_experiment_is_that_of_the_papers():
    kinds = {(scheme.experiment, scheme.bag) for scheme in schemes()}
    assert {
        ("grid-2011", "image"),
        ("grid-2011", "normal"),
        ("grid-2011", "testing"),
        ("long", "long"),
    } <= kinds
    assert {("grid-2008", "image"), ("grid-2008", "normal"), ("presets", "demo")} <= kinds
    assert Settings().orders == 200
