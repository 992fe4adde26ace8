"""What is free now, by how long it stays free."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.elastic.holes import Hole, holes, merged
from adaptor.crafting.profile import Profile


def test_each_free_processor_is_in_one_hole() -> None:
    profile = Profile(0.0, 10)
    profile.take(0.0, 100.0, 4)
    profile.take(600.0, 100.0, 8)
    assert holes(profile, 0.0) == [Hole(2, math.inf), Hole(4, 600.0)]


def test_a_profile_that_rises_again_opens_no_longer_hole() -> None:
    profile = Profile(0.0, 10)
    profile.take(60.0, 60.0, 9)
    assert holes(profile, 0.0) == [Hole(1, math.inf), Hole(9, 60.0)]
    assert holes(Profile(0.0, 0), 0.0) == []


def test_the_lengths_that_differ_least_become_one() -> None:
    found = [Hole(1, 1000.0), Hole(2, 990.0), Hole(4, 10.0)]
    assert merged(found, 2, 1e6) == [Hole(3, 990.0), Hole(4, 10.0)]
    assert merged(found, 2, 5.0) == merged(found, 2, 0.0), "beyond what is of use lengths do not count"
    assert merged(found, 0, 1e6) == [Hole(7, 10.0)]


@given(
    st.integers(0, 40),
    st.lists(st.tuples(st.integers(0, 500), st.integers(1, 500), st.integers(1, 10)), max_size=12),
    st.integers(1, 6),
)
def test_holes_are_below_the_profile_however_they_are_merged(
    processors: int, jobs: list[tuple[int, int, int]], most: int
) -> None:
    profile = Profile.holding(0.0, processors, [(begin, begin + length, p) for begin, length, p in jobs])
    found = holes(profile, 0.0)
    assert sum(hole.processors for hole in found) == profile.free_at(0.0)
    for classes in (found, merged(found, most, 1e9)):
        width = 0
        for hole in classes:
            width += hole.processors
            assert profile.minimum(0.0, hole.duration) >= width
    assert len(merged(found, most, 1e9)) <= max(most, 1)
