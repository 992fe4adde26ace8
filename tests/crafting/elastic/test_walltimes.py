"""How long pilots are to last."""

from __future__ import annotations

import math
from itertools import islice

import pytest

from adaptor.crafting.elastic.walltimes import LADDER, PATIENCE, needed, queued_walltimes
from adaptor.crafting.situation import Demand
from tests.runtimes.known import known_runtimes


def demand(**times: float) -> Demand:
    return Demand(waiting=50, runtime=60.0, shortest=60.0, times=known_runtimes(**times))  # type: ignore[arg-type]


def test_while_nothing_is_known_pilots_of_all_lengths_wait() -> None:
    need = needed(demand(), 0.0)
    assert not need.known
    found = list(islice(queued_walltimes(need, [], 1, 50_000.0), 20))
    assert found == [each for each in LADDER for _ in range(4)] + [50_000.0] * 4


def test_the_ladder_is_not_put_up_twice() -> None:
    need = needed(demand(), 0.0)
    there = [each for each in LADDER for _ in range(4)]
    assert set(islice(queued_walltimes(need, there, 1, 50_000.0), 5)) == {50_000.0}


def test_what_runs_for_long_raises_the_ladder() -> None:
    need = needed(demand(first_start=0.0, mean_start=0.0), 3000.0)
    assert min(islice(queued_walltimes(need, [], 1, 50_000.0), 20)) == 6000.0


@pytest.mark.parametrize(("finished", "hole", "queued"), [(1, 220.0, 800.0), (100, 111.1, 404.0)])
def test_the_more_tasks_have_finished_the_less_is_kept_in_hand(
    finished: int, hole: float, queued: float
) -> None:
    need = needed(demand(finished=finished, mean=40.0, longest=100.0), 0.0)
    assert need.hole == pytest.approx(hole)
    assert need.queued == pytest.approx(queued)


@pytest.mark.parametrize(("finished", "queued"), [(1, 739.0), (20, 214.0), (1000, 127.0)])
def test_the_more_alike_tasks_are_the_less_is_kept_in_hand(finished: int, queued: float) -> None:
    need = needed(demand(finished=finished, mean=100.0, longest=100.0), 0.0)
    assert need.queued == pytest.approx(queued, rel=0.01)


def test_a_cut_before_the_mean_is_no_sign_of_longer_tasks() -> None:
    seen = {"finished": 20, "mean": 80.0, "longest": 100.0, "cut": 60}
    undoubted = needed(demand(finished=20, mean=80.0, longest=100.0), 0.0).queued
    assert needed(demand(**seen, cut_after=70.0), 0.0).queued == undoubted
    assert needed(demand(**seen, cut_after=90.0), 0.0).queued > 3 * undoubted


def test_a_task_that_outlasts_all_others_counts_as_long_as_it_has_run() -> None:
    need = needed(demand(finished=10, mean=80.0, longest=100.0, first_start=0.0, mean_start=0.0), 500.0)
    assert need.top == 500.0
    assert need.hole > 500.0


def test_what_was_cut_asks_for_what_it_needs() -> None:
    known = known_runtimes(finished=10, mean=80.0, longest=100.0, cut=2, not_enough=1000.0)
    need = needed(Demand(waiting=5, runtime=9000.0, shortest=100.0, times=known), 0.0)
    found = list(islice(queued_walltimes(need, [], 1, 50_000.0), 4))
    assert found[:2] == [9000.0, 9000.0]
    assert found[2] == need.queued < 9000.0


def test_a_hint_is_believed() -> None:
    need = needed(demand(told=60.0), 0.0)
    assert need.known
    assert need.queued == PATIENCE * 60.0, "it is a mean"
    assert not math.isinf(need.own)
