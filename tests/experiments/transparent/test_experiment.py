"""The experiment on a small invented trace that stands in for the real ones."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.errors import UsageError
from adaptor_experiments.commands.replay import replay
from adaptor_experiments.transparent.cells import cost
from adaptor_experiments.transparent.design import Outcome, prices
from adaptor_experiments.transparent.report import tallied, verdicts
from adaptor_simulation.files import ReplayError
from tests.examples import examples
from tests.experiments.leavings import rows_of, top_of
from tests.experiments.transparent.cells import cell, share
from tests.simulation.invoking_replay import call

NUMBERS = dict.fromkeys(Outcome.__struct_fields__, 0)
OUTCOME = Outcome(**{**NUMBERS, "trace": "sdsc-sp2", "load": 1.0, "offered": 0.5, "strategy": "mixed"})


def experiment(traces, output, *arguments, mean="100"):
    every = ["transparent", "--traces", traces, "--output", output, "--tasks", "100", "--mean", mean]
    return call(replay, *every, "--processes", "1", *arguments)


@pytest.mark.nightly
def test_all_that_a_reader_gets_also_where_it_was_stopped(traces, tmp_path):
    out = tmp_path / "out"
    experiment(traces, out, "--samples", "1", mean="100,1000")
    first = min((out / "samples").iterdir())
    made = first.stat().st_mtime_ns
    result = experiment(traces, out, "--samples", "2", mean="100,1000")
    assert first.stat().st_mtime_ns == made
    assert "The paper's claims, one by one" in result.output
    runs = rows_of(out / "runs.csv")
    assert len(runs) == 3 * 3 * 2 * 2 * 5
    donated = [row for row in runs if row["strategy"] in ("transparent", "all-idle")]
    assert all((row["later"], row["delay"], row["change"]) == ("0", "0", "0") for row in donated)
    assert all(row["donated"] == row["work"] for row in donated)
    assert len(rows_of(out / "turnarounds.csv")) == len(rows_of(out / "costs.csv")) == 3 * 3 * 2
    assert [row[""] for row in rows_of(out / "claims.csv")] == [*"ABCDEFGHIJKL", "L-cost"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == 3
    assert "Donated nodes alone are" in top_of(out)
    missing = "(tasks: 100 (whole: 100, 1,000, 10,000); task mean execution time, s: 100, 1,000"
    assert missing in top_of(out)
    assert sorted(path.name for path in (out / "figures").glob("*.png")) == [
        "delays.png", "lost.png", "speedup.png",
    ]  # fmt: skip


@pytest.mark.nightly  # simulates a sample of every machine
def test_another_price_weighs_what_is_simulated_already(traces, tmp_path):
    out = tmp_path / "out"
    experiment(traces, out, "--samples", "1")
    made = {path.name: path.stat().st_mtime_ns for path in (out / "samples").iterdir()}
    times, dear = rows_of(out / "turnarounds.csv"), rows_of(out / "credits.csv")
    experiment(traces, out, "--samples", "1", "--donated-price", "0.05")
    assert {path.name: path.stat().st_mtime_ns for path in (out / "samples").iterdir()} == made
    assert rows_of(out / "turnarounds.csv")[0].keys() == times[0].keys()
    for before, after, row in zip(dear, rows_of(out / "credits.csv"), times, strict=True):
        assert before["adaptive"] == after["adaptive"]
        assert float(after["transparent"]) == pytest.approx(float(before["transparent"]) / 4, abs=0.01)
        assert float(after["mixed"]) <= float(before["mixed"])
        assert row["tasks"] == before["tasks"]
    assert "0.05 on donated nodes" in " ".join((out / "report.html").read_text(encoding="utf-8").split())


@examples(50)
@given(st.integers(0, 10**9), st.integers(0, 10**9), st.floats(0.01, 1.0))
def test_a_bag_pays_for_all_that_it_holds_at_its_price(held, used, donated):
    outcome = msgspec.structs.replace(OUTCOME, held=held, used=used)
    assert cost(outcome, prices(donated)) == pytest.approx((held + donated * used) / 3600, rel=1e-4, abs=1e-5)


def test_a_claim_on_cost_is_judged_by_its_interval():
    for ratio, says in (((1.2, 1.1, 1.3), "+"), ((1.0, 0.9, 1.3), "?"), ((0.8, 0.7, 0.9), "−")):
        assert f"{says}L-cost" in verdicts(cell((1, 1, 1), cheaper=ratio), "all-idle").split()


def test_traces_that_are_not_there(tmp_path, monkeypatch):
    with pytest.raises(ReplayError, match="adaptor trace fetch"):
        experiment(tmp_path, tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="--traces"):
        call(replay, "transparent", "--output", tmp_path / "out")


@pytest.mark.parametrize(
    ("explicit", "says"), [((1.5, 1.2, 2.0), "+A"), ((0.9, 0.7, 1.4), "?A"), ((0.7, 0.6, 0.8), "−A")]
)
def test_a_claim_is_judged_by_its_bound_and_the_interval(explicit, says):
    assert says in verdicts(cell(explicit), "transparent")


def test_a_claim_concerns_its_rows_alone():
    heavy = cell((1.5, 1.2, 2.0), offered=0.9)
    assert "A" not in verdicts(heavy, "transparent")
    assert "−C" in verdicts(heavy, "transparent")
    assert "+C" in verdicts(cell((0.2, 0.1, 0.4), offered=0.9), "transparent")
    assert {len(some) for some in tallied("A", [heavy], "transparent").values()} == {0}


def test_a_delay_of_local_jobs_would_be_seen():
    assert "+F" in verdicts(cell((1, 1, 1)), "transparent")
    assert "−F" in verdicts(cell((1, 1, 1), transparent=share(later=0.5)), "transparent")
    assert "−H" in verdicts(cell((1, 1, 1), transparent=share(lost=3.0)), "transparent")
    assert "H" not in verdicts(cell((1, 1, 1), mean=10_000, transparent=share(lost=3.0)), "transparent")
    assert "+K" in verdicts(
        cell((1, 1, 1), adaptive=msgspec.structs.replace(share(), delay=2.0)), "transparent"
    )


def test_a_claim_is_held_against_the_rule_of_the_paper_and_against_ours():
    more_lost = cell((1, 1, 1), **{"all-idle": share(lost=3.0)})
    assert "−H" in verdicts(more_lost, "all-idle")
    assert "+H" in verdicts(more_lost, "transparent")
