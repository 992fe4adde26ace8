"""What the page says first."""

from __future__ import annotations

import math

from adaptor_experiments.bootstrap import Interval
from adaptor_experiments.transparent.report import conclusion, tables
from tests.experiments.transparent.cells import cell, share


def test_the_figures_of_the_sentences() -> None:
    dear = share(cost=Interval(4.0, 4.0, 4.0))
    cells = [
        cell((2.0, 1.5, 3.0), mean=100, cheaper=(2.0, 1.5, 3.0), mixed=dear),
        cell((0.5, 0.4, 0.6), mean=100, cheaper=(8.0, 6.0, 9.0)),
        cell(
            (0.25, 0.2, 0.3), mean=10_000, transparent=share(lost=4.0, slower=8.0), adaptive=share(later=1.0)
        ),
    ]
    speed, delay, slower, lost, cost, claims = conclusion(cells)
    assert "1.00 (tasks of 100 s), 0.25 (tasks of 10,000 s) times as fast" in speed
    assert "by the paper's rule, 1.00 (tasks of 100 s), 0.25 (tasks of 10,000 s) times by ours" in speed
    assert "says nothing of chance" not in speed
    assert (
        "all-idle in 0 and transparent in 0 made a local job start later; static in 0, adaptive in 1" in delay
    )
    assert "2.00 by transparent, 1.00 by all-idle" in slower
    assert "10% (tasks of 100 s), 10% (tasks of 10,000 s) by the paper's rule" in lost
    assert "10% (tasks of 100 s), 40% (tasks of 10,000 s) by ours" in lost
    assert "adaptive costs 4.00 (tasks of 100 s), 1.00 (tasks of 10,000 s) times as much as mixed" in cost
    assert "mixed 2.00 (tasks of 100 s), 1.00 (tasks of 10,000 s) times as much as transparent" in cost
    assert (
        "every row that decides confirms C, D, F, G, H, I, L, L-cost; every one contradicts E, J, K" in claims
    )
    assert "rows differ on A; nothing is decided of B." in claims


def test_one_submission_time_is_told_as_such_and_has_no_intervals() -> None:
    alone = cell((2.0, 0.0, math.inf), samples=1, tasks=1000)
    assert "one submission time, which says nothing of chance" in conclusion([alone])[0]
    told = [text for table in tables([alone]) for row in table.rows for text in row]
    assert "2.00" in told
    assert not any("inf]" in text for text in told)
