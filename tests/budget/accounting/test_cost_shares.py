"""Dividing an amount exactly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.accounting.cost_shares import split, split_within

amounts = st.integers(0, 10**12)
weights = st.lists(st.floats(0, 1e9), min_size=1, max_size=8)


@given(amounts, weights)
def test_nothing_is_lost_and_parts_are_in_proportion(total, by):
    parts = split(total, by)
    assert sum(parts) == total
    whole = sum(by)
    if whole > 1e-3:
        for part, weight in zip(parts, by, strict=True):
            assert abs(part - total * weight / whole) <= 1 + total * 1e-12
            assert part == 0 or weight > 0


@given(st.data(), amounts, weights)
def test_no_part_is_above_its_room_while_the_rooms_suffice(data, total, by):
    room = data.draw(
        st.lists(st.none() | st.integers(0, 10**12), min_size=len(by), max_size=len(by)), label="room"
    )
    parts = split_within(total, by, room)
    assert sum(parts) == total
    assert all(part >= 0 for part in parts)
    enough = None in room or sum(limit or 0 for limit in room) >= total
    if enough:
        assert all(limit is None or part <= limit for part, limit in zip(parts, room, strict=True))


def test_equal_where_there_is_no_weight():
    assert split(10, [0.0, 0.0, 0.0]) in ([4, 3, 3], [3, 4, 3], [3, 3, 4])


def test_what_a_full_room_does_not_hold_goes_to_the_others_by_weight():
    assert split_within(100, [2, 1, 1], [10, None, None]) == [10, 45, 45]


def test_those_without_a_weight_come_last():
    assert split_within(100, [1, 0], [None, None]) == [100, 0]
    assert split_within(100, [1, 0], [60, None]) == [60, 40]


def test_where_all_rooms_are_full_the_users_bear_the_rest():
    assert split_within(100, [1, 1, 0], [10, 10, 10]) == [45, 45, 10]
