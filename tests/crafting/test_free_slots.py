"""Free slots are all maximal rectangles under the profile."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.profile import Profile
from adaptor.model import FreeSlot

from .crafting_strategies import profiles


def brute_force(profile: Profile) -> set[FreeSlot]:
    """Every rectangle between two steps that cannot be made longer, earlier or wider: O(n²)."""
    times = [*(time for time, _ in profile.steps()), math.inf]
    slots = set()
    for i, start in enumerate(times[:-1]):
        for j in range(i + 1, len(times)):
            height = profile.minimum(start, times[j])
            starts_earlier = i > 0 and profile.free_at(times[i - 1]) >= height
            lasts_longer = j < len(times) - 1 and profile.free_at(times[j]) >= height
            if height and not starts_earlier and not lasts_longer:
                slots.add(FreeSlot(start, times[j] - start, height))
    return slots


def test_an_empty_site_is_one_slot() -> None:
    assert Profile(5, 3).free_slots() == [FreeSlot(5, math.inf, 3)]


def test_a_full_site_has_none() -> None:
    assert Profile(5, 0).free_slots() == []


def test_a_valley_leaves_a_slot_on_either_side_and_one_along_its_floor() -> None:
    profile = Profile.holding(0, 8, [(10, 20, 6)])
    assert profile.free_slots() == [
        FreeSlot(0, 10, 8),
        FreeSlot(0, math.inf, 2),
        FreeSlot(20, math.inf, 8),
    ]


def test_a_hole_in_front_of_a_planned_job_has_its_exact_size() -> None:
    profile = Profile.holding(0, 16, [(0, 3600, 12), (3600, 7200, 16)])
    assert profile.free_slots() == [FreeSlot(0, 3600, 4), FreeSlot(7200, math.inf, 16)]


@given(profiles())
def test_they_are_those_that_brute_force_finds(profile: Profile) -> None:
    slots = profile.free_slots()
    assert set(slots) == brute_force(profile)
    assert len(slots) == len(set(slots))
    assert [slot.start for slot in slots] == sorted(slot.start for slot in slots)


@given(profiles(), st.integers(1, 20), st.integers(1, 30))
def test_the_first_slot_that_is_large_enough_is_at_the_earliest_start(
    profile: Profile, processors: int, long: int
) -> None:
    first = next(
        (s.start for s in profile.free_slots() if s.processors >= processors and s.duration >= long),
        math.inf,
    )
    assert first == profile.earliest_start(processors, long)
