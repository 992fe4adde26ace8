"""What a bag waits for while it takes turns with others, beside the turns as they are taken."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.forecast.other_bags import OtherBags


def test_bags_that_are_fewer_than_the_slots_have_equal_shares() -> None:
    assert OtherBags(older=(100, 3), younger=(50,)).served_before(20, slots=16) == 20 + 3 + 20


@pytest.mark.parametrize(("rank", "before"), [(0, 15 * 5), (15, 15 * 5), (16, 16 * 5 + 15 * 5)])
def test_of_bags_that_are_more_than_the_slots_the_oldest_hold_one_each(rank: int, before: int) -> None:
    others = OtherBags(older=(5,) * rank, younger=(5,) * (169 - rank))
    assert others.served_before(5, slots=16) == before


def test_bags_with_a_higher_priority_are_served_first() -> None:
    assert OtherBags(first=300, younger=(7,)).served_before(10, slots=4) == 307


def served_in_turn(older: list[int], waiting: int, younger: list[int], slots: int) -> int:
    """What starts of the others before the last of the bag does, if all tasks take a second."""
    left, own, served = [*older, waiting, *younger], len(older), 0
    while True:
        held = [0] * len(left)
        for _ in range(min(slots, sum(left))):
            bag = min((bag for bag, tasks in enumerate(left) if tasks), key=lambda bag: (held[bag], bag))
            left[bag] -= 1
            held[bag] += 1
            if not left[own]:
                return served
            served += bag != own


@given(tasks=st.integers(1, 30), rank=st.integers(0, 30), younger=st.integers(0, 30), slots=st.integers(1, 8))
def test_equal_bags_are_served_as_they_take_turns(tasks: int, rank: int, younger: int, slots: int) -> None:
    found = OtherBags(older=(tasks,) * rank, younger=(tasks,) * younger).served_before(tasks, slots)
    assert abs(found - served_in_turn([tasks] * rank, tasks, [tasks] * younger, slots)) < slots * 2


def test_other_bags_are_served_about_as_they_take_turns() -> None:
    draw, off = random.Random(7), []
    for _ in range(500):
        older, younger = ([draw.randint(1, 30) for _ in range(draw.randint(0, 12))] for _ in range(2))
        waiting, slots = draw.randint(1, 30), draw.randint(1, 8)
        found = OtherBags(older=tuple(older), younger=tuple(younger)).served_before(waiting, slots)
        assert found <= sum(older) + sum(younger)
        off.append(abs(found + waiting) / (served_in_turn(older, waiting, younger, slots) + waiting) - 1)
    assert statistics.median(map(abs, off)) < 0.03
    assert statistics.quantiles(map(abs, off), n=10)[-1] < 0.15
