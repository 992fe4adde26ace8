"""The sample of runtimes that forecasts are made from."""

from __future__ import annotations

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
