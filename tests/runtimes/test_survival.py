"""The chance that a task runs on, and how long: from finished tasks, and from those that still run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.runtimes.sample import RuntimeSample
from adaptor.runtimes.survival import Survival
from tests.examples import examples

TIMES = st.floats(0.1, 1e6)


def known(*runtimes: float, most: int = 1000) -> RuntimeSample:
    sample = RuntimeSample(most)
    for task, runtime in enumerate(runtimes):
        sample.add(task, runtime)
    return sample


def test_of_nine_finished_tasks_and_one_beyond_them() -> None:
    survival = Survival(known(*range(10, 100, 10)), [])
    assert survival.chance(0.0, 45.0) == pytest.approx(6 / 10)
    assert survival.chance(45.0, 90.0) == pytest.approx(1 / 6)
    assert survival.chance(45.0, 180.0) == pytest.approx(1 / 6 / 4), "twice the longest"


def test_a_task_that_still_runs_is_longer_than_it_has_run_and_no_more_is_known() -> None:
    short = known(*[10.0] * 9)
    alone, among_old = Survival(short, [100.0]), Survival(short, [100.0] * 11)
    assert alone.longest == 100.0
    assert alone.chance(0.0, 50.0) == pytest.approx(2 / 11)
    assert among_old.chance(0.0, 50.0) == pytest.approx(12 / 21)
    assert among_old.chance(50.0, 100.0) == 1.0


def test_of_a_large_bag_each_runtime_of_the_sample_counts_for_several() -> None:
    everything, sampled = known(*range(1, 1001)), known(*range(1, 1001), most=100)
    assert sampled.every == 16
    running = [float(age) for age in range(0, 800, 8)]
    for until in (200.0, 500.0, 900.0):
        expected = Survival(everything, running).chance(0.0, until)
        assert Survival(sampled, running).chance(0.0, until) == pytest.approx(expected, abs=0.05)


@examples(150)
@given(st.lists(TIMES, max_size=20), st.lists(TIMES, max_size=20), st.lists(TIMES, min_size=3, max_size=3))
def test_a_chance_falls_with_the_time_and_multiplies_along_it(
    finished: list[float], running: list[float], times: list[float]
) -> None:
    survival = Survival(known(*finished), running)
    ran, until, later = sorted(times)
    soon, late = survival.chance(ran, until), survival.chance(ran, later)
    assert 0 < late <= soon <= 1
    assert survival.chance(ran, ran) == pytest.approx(1.0)
    if until >= survival.longest or until == ran:
        return
    assert late == pytest.approx(soon * survival.chance(until, later))


RUNTIMES = st.lists(st.floats(0.1, 1000), min_size=1, max_size=50)


@given(RUNTIMES, st.floats(0, 2000))
def test_the_whole_time_is_the_mean_of_those_that_took_longer(runtimes: list[float], ran: float) -> None:
    survival = Survival(known(*runtimes))
    longer = [runtime for runtime in runtimes if runtime > ran]
    expected = sum(longer) / len(longer) if longer else 2 * ran
    assert survival.whole(ran) == pytest.approx(expected)
    assert survival.whole(ran) >= ran * (1 - 1e-9)


@given(RUNTIMES, st.floats(0, 2000))
def test_a_bad_case_is_one_of_the_longest(runtimes: list[float], ran: float) -> None:
    survival = Survival(known(*runtimes), running=[1500.0])
    longer = sorted(runtime for runtime in runtimes if runtime > ran)
    late = survival.late(ran)
    assert late == (longer[int(0.9 * len(longer))] if longer else 2 * ran)
    assert late >= survival.late(ran, 0.5)
