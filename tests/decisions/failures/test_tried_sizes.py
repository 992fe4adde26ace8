"""Sizes of requests that a scheduler does not take: none is tried twice, and the search ends."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.decisions.failures.tried_sizes import TriedSizes
from adaptor.model import Request
from adaptor.reports import Remedy

DAY = 86_400


class Site(msgspec.Struct, frozen=True):
    """What a site allows in truth, and how it speaks of what it does not."""

    p: int
    tr: int
    area: float = math.inf
    speaks: bool = False
    """Whether it says what was too much."""

    def remedy(self, request: Request) -> Remedy | None:
        """None: it takes the request."""
        wide, long = request.p > self.p, request.tr > self.tr
        if not (wide or long or request.area > self.area):
            return None
        if self.speaks and wide != long:
            return Remedy.NARROWER if wide else Remedy.SHORTER
        return Remedy.SMALLER


def searched(site: Site, most: Request, least: Request, step: int = 1) -> tuple[list[Request], TriedSizes]:
    """The requests in the order in which they were tried, until one is made again."""
    tried, made = TriedSizes(), list[Request]()
    for _ in range(200):
        found = tried.largest(most, least, step, 60)
        request = Request(found.p, found.tr)
        if request in made:
            return made, tried
        made.append(request)
        remedy = site.remedy(request)
        tried = tried.started(request) if remedy is None else tried.failed(request, remedy, "no", math.inf)
    raise AssertionError(f"the search does not end: {made}")


sites = st.builds(
    Site,
    p=st.integers(0, 80),
    tr=st.integers(0, 2 * DAY),
    area=st.one_of(st.just(math.inf), st.floats(0, 64 * DAY)),
    speaks=st.booleans(),
)


@given(sites, st.integers(1, 64), st.integers(1, 1440), st.integers(1, 4), st.integers(1, 1440))
def test_no_impossible_request_is_made_twice_and_none_is_larger_than_wanted(
    site: Site, units: int, minutes: int, step: int, least_minutes: int
) -> None:
    most, least = Request(units * step, minutes * 60), Request(step, min(minutes, least_minutes) * 60)
    made, tried = searched(site, most, least, step)
    assert len(set(made)) == len(made)
    assert len(made) <= 2 * math.log2(most.p) + 2 * math.log2(most.tr / 60) + 12
    for earlier, later in ((a, b) for index, b in enumerate(made) for a in made[:index]):
        if site.remedy(earlier) is not None and earlier.p <= later.p and earlier.tr <= later.tr:
            assert later == least
    for request in made:
        assert least.p <= request.p <= most.p
        assert least.tr <= request.tr <= most.tr
        assert request.p % step == 0
        assert request.tr % 60 == 0
    # Made again is what started, or the smallest, of which nothing is left to try.
    again = tried.largest(most, least, step, 60)
    assert site.remedy(Request(again.p, again.tr)) is None or (again.p, again.tr) == (least.p, least.tr)


@given(sites, st.integers(1, 64), st.integers(10, 1440))
def test_where_the_smallest_is_possible_the_search_ends_near_the_limits(
    site: Site, p: int, minutes: int
) -> None:
    most, least = Request(p, minutes * 60), Request(1, 300)
    if site.remedy(least) is not None or site.area < math.inf:
        return
    made, _ = searched(site, most, least)
    best = (
        made[-1]
        if site.remedy(made[-1]) is None
        else max((each for each in made if site.remedy(each) is None), key=lambda each: each.area)
    )
    assert best.p == min(p, site.p)
    assert best.tr >= min(most.tr, site.tr) * 3 / 4 - 60


def test_the_search_for_a_hook_that_allows_ten_minutes() -> None:
    made, _ = searched(Site(64, 600), Request(16, DAY), Request(1, 300))
    assert made[:9] == [
        Request(16, DAY),
        Request(8, DAY // 2),
        Request(4, DAY // 4),
        Request(2, DAY // 8),
        Request(1, DAY // 16),
        Request(1, DAY // 32),
        Request(1, 1320),
        Request(1, 660),
        Request(1, 300),
    ]
    assert made[9] == Request(16, 300)


@pytest.mark.parametrize(
    ("remedy", "next_one"),
    [
        (Remedy.SHORTER, Request(12, 1800)),
        (Remedy.NARROWER, Request(6, 3600)),
        (Remedy.SMALLER, Request(6, 1800)),
        (Remedy.OTHER, Request(12, 3600)),
    ],
)
def test_half_of_what_failed_comes_next(remedy: Remedy, next_one: Request) -> None:
    tried = TriedSizes().failed(Request(12, 3600), remedy, "why", 100.0)
    found = tried.largest(Request(12, 3600), Request(1, 60))
    assert Request(found.p, found.tr) == next_one
    assert found.why == ("" if remedy is Remedy.OTHER else "why")


def test_what_failed_is_forgotten() -> None:
    tried = TriedSizes().failed(Request(12, 3600), Remedy.SMALLER, "why", 100.0)
    assert tried.at(99.0) is tried
    assert tried.at(100.0) == TriedSizes()


def test_what_has_started_is_possible_whatever_failed_before() -> None:
    tried = TriedSizes().failed(Request(4, 3600), Remedy.SMALLER, "why", 100.0)
    assert tried.started(Request(8, 3600)) == TriedSizes()
    assert tried.started(Request(2, 3600)).largest(Request(8, 3600), Request(1, 60)).p == 3
