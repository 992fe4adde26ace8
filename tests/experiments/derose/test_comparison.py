"""Ratios of heuristics, goals, the tables of the paper and the sentences with which the page begins."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from adaptor_experiments.derose.comparison import Kind, compare, goals, on_all
from adaptor_experiments.derose.design import WORKLOADS, Settings, Workload
from adaptor_experiments.derose.report import compared_tables, sentences, table_1, table_2, table_3
from adaptor_simulation.jobs import Jobs
from tests.experiments.derose.made_outcomes import outcomes

SP2, BLUE, CTC, _ = WORKLOADS
WHOLE = Settings()


THREE = {
    "static": {100: [400, 400], 10_000: [300, 100]},
    "adaptive": {100: [200, 200], 10_000: [400, 400]},
    "other": {100: [100, 100], 10_000: [200, 200]},
}


def test_ratios_are_of_means_and_each_heuristic_is_compared_with_each_other() -> None:
    found = compare(SP2, outcomes(THREE), seed=1)
    assert len(found.ratios) == 6
    ratio = found.ratio("other", "static")
    assert ratio is not None
    assert ratio.geometric.value == pytest.approx(2.0)
    assert ratio.arithmetic.value == 2.5
    assert {mean: each.value for mean, each in ratio.by_mean.items()} == pytest.approx({100: 4, 10_000: 1})
    assert (ratio.worst.value, ratio.worst_kind, ratio.slower) == (1.0, Kind(100, 10_000, 1, 1), 0)
    assert (ratio.worst.low, ratio.worst.high) == (0.5, 1.5)
    other = found.ratio("adaptive", "static")
    assert other is not None
    assert other.slower == 1
    assert found.ratio("other", "other") is None


def test_what_a_heuristic_costs() -> None:
    profile = compare(SP2, outcomes(THREE, {"other": 160}), seed=1).profiles["other"]
    assert profile.distance.value == pytest.approx(np.sqrt(1 * 2))
    assert profile.waste.value == 0.5
    assert profile.local_wait.value == pytest.approx(30 / 80)
    assert profile.slowdown.value == pytest.approx(2.0)
    assert profile.slowdown_per_processor.value == pytest.approx(1.5)
    assert (profile.requests, profile.withdrawn, profile.reshaped) == (4, 1, 2)
    assert (profile.decisions, profile.decision_time) == pytest.approx((3, 6))


def test_on_several_traces_each_cell_counts_alike_and_chance_is_that_of_each() -> None:
    slow = {name: {100: each[100]} for name, each in THREE.items()}
    two = [compare(SP2, outcomes(THREE), seed=1), compare(BLUE, outcomes(slow), seed=1)]
    found = on_all(two, "other", "static")
    assert found is not None
    assert found.value == pytest.approx((4 * 1 * 4) ** (1 / 3))
    assert found.low < found.value < found.high
    assert on_all(two, "other", "other") is None


def test_the_page_begins_with_one_sentence_on_the_new_heuristic() -> None:
    one = compare(SP2, outcomes(THREE), seed=1)
    first, second, third, last = sentences([one])
    assert first == (
        "other finishes bags 2.00 times sooner than adaptive (geometric mean of 2 cells, 2.00 to 2.00)."
    )
    assert second.startswith("other finishes bags 2.00 times sooner than static (geometric mean of 2 cells")
    assert third == "other meets 8 of its 9 goals."
    assert last.startswith("SDSC SP2: other finishes bags 2.00 times sooner than adaptive")
    *_, on_sp2, on_blue = sentences([one, compare(BLUE, outcomes(THREE), seed=1)])
    assert on_sp2.startswith("SDSC SP2: other finishes bags 2.00 times sooner than adaptive (2.00 to 2.00)")
    assert "the worst cell 1.00 [0.50, 1.50] (100 × 10,000 s, 1x, limit 1)." in on_blue


def test_a_slower_heuristic_takes_longer_and_one_sample_says_nothing_of_chance() -> None:
    slow = {"adaptive": {100: [100]}, "other": {100: [125]}}
    told, *_ = sentences([compare(SP2, outcomes(slow), seed=1)])
    assert told == "other takes 1.25 times as long for a bag as adaptive (geometric mean of 1 cell)."


def verdicts(
    workload: Workload, turnarounds: dict[str, dict[int, list[int]]], **held: int
) -> dict[str, bool]:
    found = goals([compare(workload, outcomes(turnarounds, held), seed=1)], "other")
    return {goal.text.strip(): goal.met for goal in found}


def test_goals_are_met_or_missed() -> None:
    assert verdicts(SP2, THREE, other=90) == {
        "times sooner than adaptive, geometric mean ≥ 1.7": True,
        "where tasks run 100 s in the mean ≥ 2.0": True,
        "where tasks run 10,000 s in the mean ≥ 1.2": True,
        "arithmetic mean ≥ 2.1": False,
        "worst cell against adaptive ≥ 0.97": True,
        "worst cell against static ≥ 0.97": True,
        "waste, at most adaptive's": True,
        "added wait of local jobs, at most adaptive's": True,
        "distance to the lower bound, at most the trace's goal": True,
    }
    assert not verdicts(SP2, THREE, other=110)["waste, at most adaptive's"]
    (waste,) = (goal for goal in goals([compare(SP2, outcomes(THREE), 1)], "other") if "waste" in goal.text)
    assert str(waste.verdicts[0]) == "20.0% [20.0%, 20.0%] (adaptive 20.0%): met"
    slow = {**THREE, "other": {100: [100, 100], 10_000: [220, 220]}}
    assert not verdicts(SP2, slow)["worst cell against static ≥ 0.97"]


def test_what_was_not_run_is_no_goal() -> None:
    own = Workload(key="own", title="own", file="own", processors=8)
    alone = {name: each for name, each in THREE.items() if name != "adaptive"}
    assert list(verdicts(own, alone)) == ["worst cell against static ≥ 0.97"]
    exhibits = compared_tables([compare(own, outcomes(alone), seed=1)])
    assert [each.name for each in exhibits] == ["goals", "compared-own"]
    assert all(len(row) == len(each.headings) for each in exhibits for row in each.rows)


def test_the_biggest_bags_do_not_outweigh_what_local_jobs_wait_for_others() -> None:
    both = [
        msgspec.structs.replace(each, tasks=tasks, work=work, local_wait=wait)
        for each in outcomes({"static": {10_000: [100, 100]}})
        for tasks, work, wait in ((100, 50, 100), (10_000, 5_000, 5_000))
    ]
    assert compare(SP2, both, seed=1).profiles["static"].local_wait.value == 2.0
    big = [each for each in both if each.tasks > 100]
    assert compare(SP2, big, seed=1).profiles["static"].local_wait.value == 1.0


def test_table_3_and_what_it_says() -> None:
    *_, other_machine = WORKLOADS
    one = compare(SP2, outcomes(THREE), seed=1)
    once = {name: {mean: every[:1] for mean, every in by.items()} for name, by in THREE.items()}
    two = compare(other_machine, outcomes(once), seed=1)
    first, second = table_3([one, two], WHOLE).rows
    assert first[:3] == ["SDSC SP2", "2.05", "1.25 [1.12, 1.38]"]
    assert first[3:7] == ["10% (5 %: 8 times)", "1.00 [0.71, 1.22]", "50%", "2"]
    assert first[7].startswith("the load: ")
    assert second[:2] + second[3:4] == ["CTC SP2 (338)", "-", "-"]


def test_a_number_of_the_paper_that_the_interval_holds_agrees() -> None:
    wide = {"static": {100: [400, 800]}, "adaptive": {100: [200, 200]}}
    row, blue = table_3([compare(trace, outcomes(wide), seed=1) for trace in (SP2, BLUE)], WHOLE).rows
    assert row[-1] == blue[-1] == "the interval holds the paper's"


@pytest.mark.parametrize(
    "part",
    [
        {"tasks": (100,)}, {"heterogeneities": (1, 4)}, {"stretch": 0.5}, {"scheduler": "easy"},
        {"static_maximum": True}, {"initial_tr": 60.0},
    ],
)  # fmt: skip
def test_no_number_of_the_paper_stands_beside_another_experiment(part) -> None:
    settings = Settings(**part)
    found = [compare(trace, outcomes(THREE), seed=1) for trace in WORKLOADS]
    for row in table_3(found, settings).rows:
        assert row[1] == "-"
        assert row[-1] == "the paper has no such run"


def test_the_papers_second_experiment_with_ctc_has_its_own_number() -> None:
    found = [compare(trace, outcomes(THREE), seed=1) for trace in WORKLOADS]
    rows = table_3(found, Settings(stretch=0.7)).rows
    assert [row[1] for row in rows] == ["-", "-", "1.83", "-"]
    assert {row[1] for row in table_3(found, Settings(stretch=0.7, tasks=(100,))).rows} == {"-"}


def test_table_1_has_the_load_of_this_run_beside_the_papers() -> None:
    half = Jobs(
        number=np.array([1, 2]), submit=np.array([0, 86_400]), run=np.array([43_200, 43_200]),
        estimate=np.array([50_000, 50_000]), processors=np.array([64, 64]),
    )  # fmt: skip
    own = Workload(key="own", title="own", file="own", processors=128)
    first, mine = table_1({SP2: half, own: half}, WHOLE).rows
    assert first[:8] == [
        "SDSC SP2", "128", "73,496", "2", "72%", "50.0%", "April 1998 to December 2000", "1"
    ]  # fmt: skip
    assert "cleaned since" in first[8]
    assert mine == ["own", "128", "-", "2", "-", "50.0%", "-", "1", "not in the paper"]
    faster = half.stretched(0.7)
    loaded, ctc = table_1({SP2: faster, CTC: faster}, Settings(stretch=0.7)).rows
    assert (loaded[2], loaded[4], loaded[6], loaded[8]) == ("-", "-", "-", "not in the paper")
    assert (ctc[2], ctc[4], ctc[6]) == ("-", "78%", "-")


def test_table_2_says_which_part_of_the_grid_jobs_a_run_has() -> None:
    by_name = {row[0]: row[1:3] for row in table_2(Settings(tasks=(100,))).rows}
    assert by_name["number of tasks per job"] == ["100, 1,000, 10,000, 100,000", "100"]
    assert by_name["max_tr, s"] == ["64,800", "64,800"]
    assert by_name["static asks for the whole machine"] == ["no", "no"]
