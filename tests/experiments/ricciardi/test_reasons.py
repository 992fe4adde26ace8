"""Why the paper's allocation misses its targets: what the tables of `printed` say, by runs."""

from __future__ import annotations

import pytest

from adaptor_experiments.ricciardi.design import MORE, Cell
from adaptor_experiments.ricciardi.experiment import Settings, run_once

SETTINGS = Settings(tasks=1000)


def reached(table, goal, variation="printed"):
    return run_once(Cell(table, 2, goal, "paper", variation=variation), SETTINGS, 0).reached


@pytest.mark.parametrize("table", [1, 2])
def test_a_time_is_missed_by_the_end_of_the_last_tasks(table):
    missed = reached(table, "time") - 100
    assert missed > 5
    assert reached(table, "time", "more tasks") - 100 < missed / (MORE / 2), "the last tasks weigh less"
    assert reached(table, "time", "no spread") - 100 < missed / 2, "the last tasks end with the others"


@pytest.mark.parametrize("table", [1, 2])
def test_a_cost_is_off_by_the_last_steps(table):
    assert 0.7 < abs(reached(table, "cost", "no spread") - 100) < 5, "also where every runtime is known"
    assert abs(reached(table, "cost", "more tasks") - 100) < 0.5
