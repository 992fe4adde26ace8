"""Where pilots and attempts are drawn."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.profile import Profile
from adaptor.dashboard.page import PilotBox
from adaptor.dashboard.pictures import lanes, place

PROCESSORS = 32
holds = st.lists(st.tuples(st.integers(0, 90), st.integers(1, 60), st.integers(1, 12)), max_size=8)
shapes = st.lists(st.tuples(st.integers(0, 90), st.integers(1, 60), st.integers(1, 16)), max_size=8)


def steps_of(jobs: list[tuple[int, int, int]]) -> list[tuple[float, int]]:
    profile = Profile.holding(0, PROCESSORS, [(start, start + time, p) for start, time, p in jobs])
    return [(time, PROCESSORS - free) for time, free in profile.steps()]


def box(id: int, start: float, end: float, p: int) -> PilotBox:
    return PilotBox(pilot=id, start=start, end=end, p=p, state="", used=0, wasted=0)


@given(holds, shapes)
def test_what_fits_lies_in_the_holes_and_beside_its_neighbours(
    jobs: list[tuple[int, int, int]], own: list[tuple[int, int, int]]
) -> None:
    held = steps_of(jobs)
    boxes = [box(id, start, start + time, p) for id, (start, time, p) in enumerate(own)]
    placed = place(boxes, held, PROCESSORS)
    assert sorted(each.pilot for each in placed) == [box.pilot for box in boxes]
    fitting = [each for each in placed if each.fits]
    for each in fitting:
        assert each.bottom + each.p <= PROCESSORS
        for (start, most), (end, _) in itertools.pairwise([*held, (float("inf"), 0)]):
            if start < each.end and each.start < end:
                assert each.bottom >= most
    for one, other in itertools.combinations(fitting, 2):
        together = one.start < other.end and other.start < one.end
        assert not together or one.bottom + one.p <= other.bottom or other.bottom + other.p <= one.bottom


@given(holds, st.tuples(st.integers(0, 90), st.integers(1, 60), st.integers(1, 16)))
def test_one_pilot_fits_exactly_where_so_many_are_free(
    jobs: list[tuple[int, int, int]], own: tuple[int, int, int]
) -> None:
    held = steps_of(jobs)
    start, time, p = own
    (placed,) = place([box(1, start, start + time, p)], held, PROCESSORS)
    most = max(count for at, count in held if at < start + time and (at >= start or at == _last(held, start)))
    assert placed.fits == (most + p <= PROCESSORS)


def _last(held: list[tuple[float, int]], start: float) -> float:
    return max(at for at, _ in held if at <= start)


def test_a_pilot_finds_room_beside_one_that_outlasts_a_job_of_others() -> None:
    """Others give 4 of their 8 processors back while a pilot of 4 runs: 8 are free, in one piece."""
    held = [(0.0, 8), (100.0, 4), (300.0, 16)]
    placed = place([box(3, 0, 200, 4), box(4, 100, 180, 8)], held, 16)
    assert all(each.fits for each in placed)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20), st.integers(1, 3)), max_size=30))
def test_no_two_attempts_share_a_lane(given_spans: list[tuple[int, int, int]]) -> None:
    spans = sorted((float(start), float(start + time), p) for start, time, p in given_spans)
    found = lanes(spans)
    for (one, lane), (other, beside) in itertools.combinations(zip(spans, found, strict=True), 2):
        if one[0] < other[1] and other[0] < one[1]:
            assert lane + one[2] <= beside or beside + other[2] <= lane
