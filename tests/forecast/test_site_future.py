"""Requests to come are those of the site's own heuristic."""

from __future__ import annotations

import random

import msgspec
import pytest

from adaptor.crafting.futures.drawn_queue import planned
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.planner import plan
from adaptor.crafting.situation import Demand, SiteState, SubmitRequest
from adaptor.forecast.known import KnownSite
from adaptor.forecast.site_future import SiteFuture as Future
from adaptor.forecast.site_future import SitesFuture
from adaptor.forecast.supply import Moment, PilotAhead
from adaptor.model import QueueState, RunningJob
from adaptor.runtimes.known import KnownRuntimes
from tests.forecast.test_forecast import LEARNER, RULES, known, site
from tests.runtimes.known import known_runtimes

BUSY = QueueState(now=0.0, processors=64, running=(RunningJob("other", 50, 3000.0),))


def future(at: KnownSite) -> SitesFuture:
    at = msgspec.structs.replace(at, run_shares=(1.0,))
    assert at.view.queue is not None
    bag = known(160, at)
    drawn = Future(at, planned(at.view.queue), bag.bag, 0.0, random.Random(1), steady=True)
    return SitesFuture(bag, [drawn], iter(range(10)))


def moment(waiting: int = 160, held: tuple[PilotAhead, ...] = ()) -> Moment:
    return Moment(
        now=0.0,
        uncovered=waiting,
        waiting=waiting,
        learners={"site": LEARNER.copy()},
        longest_cut={"site": 0.0},
        seen=KnownRuntimes(),
        held=held,
    )


def requests(found: list[PilotAhead]) -> list[tuple[int, int]]:
    last = min(10.0, RULES.pad / 2)
    return sorted((pilot.p, round(pilot.end + last - pilot.began)) for pilot in found)


@pytest.mark.parametrize("queue", [QueueState(now=0.0, processors=64), BUSY])
@pytest.mark.parametrize("heuristic", sorted(HEURISTICS))
def test_the_first_requests_are_those_that_the_site_would_make(heuristic: str, queue: QueueState) -> None:
    demand = Demand(waiting=160, runtime=LEARNER.initial, shortest=LEARNER.initial, times=known_runtimes())
    view = SiteState(now=0.0, queue=queue, rules=RULES, heuristic=heuristic, demands=(demand,))
    made = [each.crafted.request for each in plan(view) if isinstance(each, SubmitRequest)]
    at = site(queue, heuristic=heuristic)
    coming = future(at)
    coming.again()
    least = LEARNER.initial + RULES.pad
    assert requests(coming.asked(moment())) == sorted((each.p, max(each.tr, round(least))) for each in made)


def test_the_heuristics_differ() -> None:
    found = {}
    wide = [name for name, traits in HEURISTICS.items() if not traits.narrow]  # with few pilots as completion
    for heuristic in wide:
        coming = future(site(BUSY, heuristic=heuristic))
        coming.again()
        found[heuristic] = requests(coming.asked(moment()))
    assert len({tuple(each) for each in found.values()}) == len(wide)


def test_no_more_requests_than_the_site_allows() -> None:
    coming = future(site())
    coming.again()
    held = tuple(
        PilotAhead(site="site", p=1, slots=1, start=0.0, end=4000.0)
        for _ in range(RULES.limits.max_pending_requests)
    )
    assert coming.asked(moment(held=held)) == []
