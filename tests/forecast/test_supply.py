"""Narrow pilots that count as one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptor.forecast.supply import PilotAhead, joined

PILOTS = st.lists(
    st.builds(
        PilotAhead,
        site=st.sampled_from(["here", "there"]),
        p=st.integers(1, 8),
        slots=st.integers(1, 8),
        start=st.floats(0, 1000),
        end=st.floats(1000, 2000),
        elapsed=st.lists(st.floats(0, 100), max_size=2),
    ),
    max_size=40,
)


@given(PILOTS, st.integers(1, 20))
def test_nothing_is_lost(pilots: list[PilotAhead], slots: int) -> None:
    found = joined(pilots, slots)
    for site in ("here", "there"):
        before = [pilot for pilot in pilots if pilot.site == site]
        after = [pilot for pilot in found if pilot.site == site]
        assert sum(pilot.p for pilot in after) == sum(pilot.p for pilot in before)
        assert sum(pilot.slots for pilot in after) == sum(pilot.slots for pilot in before)
        assert sum(pilot.pilots for pilot in after) == len(before)
        assert sorted(ran for pilot in after for ran in pilot.elapsed) == sorted(
            ran for pilot in before for ran in pilot.elapsed
        )
    assert all(len(pilot.bounds) == len(pilot.elapsed) for pilot in found if pilot.pilots > 1)


def test_wide_pilots_stay_and_narrow_ones_count_as_their_slots() -> None:
    wide = PilotAhead(p=10, slots=10, start=5.0, end=100.0)
    narrow = [PilotAhead(p=1, slots=1, start=float(at), end=100.0 + at) for at in range(20)]
    first, *others = joined([*narrow, wide], 10)
    assert first is wide
    assert [(pilot.slots, pilot.pilots, pilot.start, pilot.end) for pilot in others] == [
        (10, 10, 4.5, 104.5),
        (10, 10, 14.5, 114.5),
    ]


def test_pilots_that_run_tasks_are_apart_from_those_that_do_not() -> None:
    idle = [PilotAhead(slots=1, start=0.0, end=100.0) for _ in range(4)]
    busy = [PilotAhead(slots=1, start=0.0, end=100.0, elapsed=(5.0,)) for _ in range(4)]
    assert sorted(len(pilot.elapsed) for pilot in joined([*idle, *busy], 4)) == [0, 4]


def test_each_counts_alone_where_slots_do() -> None:
    pilots = [PilotAhead(slots=1, start=0.0, end=100.0)] * 3
    assert joined(pilots, 1) == pilots
