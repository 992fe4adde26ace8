"""The sample of runtimes that forecasts are made from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.runtimes.sample import RuntimeSample


@given(st.permutations(range(50)), st.integers(1, 20))
def test_the_sample_is_never_larger_than_it_may_be_and_the_same_in_any_order(
    order: list[int], most: int
) -> None:
    sample, sorted_sample = RuntimeSample(most), RuntimeSample(most)
    for task in order:
        sample.add(task, float(task))
    for task in sorted(order):
        sorted_sample.add(task, float(task))
    assert len(sample.runtimes) <= most
    assert sorted(sample.runtimes) == sorted(sorted_sample.runtimes)
    assert sorted(sample.runtimes) == [float(task) for task in range(0, 50, sample.every)]


def test_a_small_bag_is_kept_whole() -> None:
    sample = RuntimeSample(10)
    for task in range(10):
        sample.add(task, 1.5)
    assert sample.runtimes == (1.5,) * 10
    assert sample.every == 1


@given(st.lists(st.floats(0.1, 1000), min_size=1, max_size=50), st.floats(0, 2000))
def test_the_whole_time_is_the_mean_of_those_that_took_longer(runtimes: list[float], elapsed: float) -> None:
    known = RuntimeSample()
    for task, runtime in enumerate(runtimes):
        known.add(task, runtime)
    longer = [runtime for runtime in runtimes if runtime > elapsed]
    expected = sum(longer) / len(longer) if longer else 2 * elapsed
    assert known.whole(elapsed) == pytest.approx(expected)
    assert known.whole(elapsed) >= elapsed * (1 - 1e-9)
    assert len(known) == len(runtimes)


@given(st.lists(st.floats(0.1, 1000), min_size=1, max_size=50), st.floats(0, 2000))
def test_a_bad_case_is_one_of_the_longest(runtimes: list[float], elapsed: float) -> None:
    known = RuntimeSample()
    for task, runtime in enumerate(runtimes):
        known.add(task, runtime)
    longer = sorted(runtime for runtime in runtimes if runtime > elapsed)
    late = known.late(elapsed)
    assert late == (longer[int(0.9 * len(longer))] if longer else 2 * elapsed)
    assert late >= known.late(elapsed, 0.5)
