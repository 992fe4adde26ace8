"""Which processors tasks get: never the same, whole cores first, none where they may not be ours."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.worker.binding import Binding, bound, cores_of, units_of

THREADS = [(0, 4), (1, 5), (2, 6), (3, 7)]
"""Four cores with two threads each."""
SINGLE = [(number,) for number in range(4)]


def test_a_pilot_has_threads_or_cores_or_neither() -> None:
    assert units_of(THREADS, 8) == tuple(((a,), (b,)) for a, b in THREADS)
    assert units_of(THREADS, 4) == (((0, 4),), ((1, 5),), ((2, 6),), ((3, 7),))
    assert units_of(SINGLE, 4) == (((0,),), ((1,),), ((2,),), ((3,),))
    assert units_of(SINGLE, 2) == (), "a worker that may use more than it was given shares it with others"
    assert units_of(SINGLE, 8) == (), "more processors than there are"


def test_whole_cores_first() -> None:
    binding = Binding(8, units_of(THREADS, 8))
    assert binding.take(1) == (0,)
    assert binding.take(2) == (1, 5)
    assert binding.take(3) == (2, 4, 6), "a whole core, and the rest of one that is in use"
    binding.give_back((1, 5))
    assert binding.take(2) == (1, 5)
    assert binding.take(2) == (3, 7)


def test_cores_as_processors_have_all_their_threads() -> None:
    binding = Binding(4, units_of(THREADS, 4))
    assert binding.take(2) == (0, 1, 4, 5)
    assert binding.take(2) == (2, 3, 6, 7)


def test_nothing_is_handed_out_that_may_be_another_pilot_s() -> None:
    assert Binding(2, units_of(SINGLE, 2)).take(1) == ()


@given(
    st.sampled_from([SINGLE, THREADS]),
    st.lists(st.integers(1, 4) | st.integers(-4, -1), max_size=40),
)
def test_no_processor_is_held_twice_and_all_are_handed_out(
    cores: list[tuple[int, ...]], steps: list[int]
) -> None:
    count = sum(map(len, cores))
    binding, held = Binding(count, units_of(cores, count)), list[tuple[int, ...]]()
    for step in steps:
        if step < 0:
            if held:
                binding.give_back(held.pop(step % len(held)))
        elif step <= count - sum(map(len, held)):
            held.append(binding.take(step))
            assert len(held[-1]) == step
        together = [number for each in held for number in each]
        assert len(set(together)) == len(together)


def test_the_cores_of_this_machine_have_all_its_processors() -> None:
    mine = sorted(os.sched_getaffinity(0))
    assert sorted(number for core in cores_of(mine) for number in core) == mine


def test_what_starts_meanwhile_is_bound_and_the_worker_is_not() -> None:
    before = os.sched_getaffinity(0)
    one = min(before)
    with bound([one]):
        assert os.sched_getaffinity(0) == {one}
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("numbers", [(), (10_000,)])
def test_a_processor_that_is_not_there_binds_nothing(numbers: tuple[int, ...]) -> None:
    before = os.sched_getaffinity(0)
    with bound(numbers):
        assert os.sched_getaffinity(0) == before
