"""What the page of the experiment says first, and its tables."""

from __future__ import annotations

from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.derose.design import WORKLOADS, Settings
from adaptor_experiments.derose.summary import Cell, TraceSummary
from adaptor_experiments.derose.tables import conclusion, table_2, table_3

WORKLOAD = {each.key: each for each in WORKLOADS}


def cell(speedup: float, mean: int) -> Cell:
    return Cell(
        trace="ctc-sp2-338", tasks=100, mean=mean, heterogeneity=1, max_pending=1, samples=2,
        static=speedup, adaptive=1.0, bound=1.0, speedup=Interval(speedup, speedup, speedup),
    )  # fmt: skip


def summary(trace: str, samples: int, *cells: Cell) -> TraceSummary:
    return TraceSummary(
        workload=WORKLOAD[trace], samples=samples, cells=cells, arithmetic=Interval(3.0, 2.0, 4.0),
        geometric=Interval(1.5, 1.2, 1.9), faster=0.625, static_distance=5.0, adaptive_distance=3.0,
    )  # fmt: skip


def test_the_conclusion_has_the_figures_beside_those_of_the_paper() -> None:
    found = conclusion([summary("sdsc-sp2", 2, cell(2.0, 100)), summary("ctc-sp2-338", 1, cell(0.5, 10_000))])
    first, second, losses = found
    assert "SDSC SP2: adaptive is 1.50 [1.20, 1.90] times as fast as static" in first
    assert "is 3.00 [2.00, 4.00] (the paper: 2.05). 2 submission times." in first
    assert "(the paper" not in second
    assert "One submission time, which says little." in second
    assert losses.endswith("adaptive is slower in 1 of 1 cells on CTC SP2 (338).")


def test_without_few_long_tasks_nothing_is_said_of_them() -> None:
    assert len(conclusion([summary("sdsc-sp2", 2, cell(2.0, 100))])) == 1


def test_the_row_of_table_3() -> None:
    headings, (row,) = table_3([summary("sdsc-sp2", 2)])
    assert row == ["SDSC SP2", "2.05", "3.00 [2.00, 4.00]", "1.50 [1.20, 1.90]", "62%", "2"]
    assert len(headings) == len(row)


def test_table_2_says_which_part_of_the_grid_jobs_a_run_has() -> None:
    exhibit = table_2(Settings(tasks=(100,)))
    by_name = {row[0]: row[1:3] for row in exhibit.rows}
    assert by_name["number of tasks per job"] == ["100, 1,000, 10,000, 100,000", "100"]
    assert by_name["heterogeneity"] == ["1, 2, 4", "1, 2, 4"]
    assert by_name["max_tr, s"] == ["64,800", "64,800"]
