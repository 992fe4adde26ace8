"""Two simulated sites serve one bag: no later than either alone, and nothing is asked for twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.heuristics import HeuristicName
from adaptor.crafting.multisite.waits import WaitLearner
from tests.examples import examples

from .simulated_sites import STEP, Site, World, near_and_far

IDLE = Site("near", 16, 60, [])
FAR = replace(IDLE, name="far")
BUSY = Site("far", 16, 60, [(0, 1800, 12), (1800, 3600, 16)])
"""Four processors for half an hour, then none for half an hour."""
heuristics = pytest.mark.parametrize(
    "heuristic", ["adaptive", pytest.param("completion", marks=pytest.mark.nightly)]
)
"""By `adaptive` the tasks are divided among the sites; by `completion` each site plans for all of them, which
takes ten times as long: it is tried nightly, and here by any two sites."""


def together(*sites: Site, tasks: int = 400, heuristic: HeuristicName | None = None) -> World:
    """With this heuristic at all sites; None: with that of each."""
    fresh = [
        replace(site, pilots=[], waits=WaitLearner(), heuristic=heuristic or site.heuristic) for site in sites
    ]
    return World(fresh, tasks)


def seconds(*sites: Site, tasks: int = 400, heuristic: HeuristicName | None = None) -> int:
    return together(*sites, tasks=tasks, heuristic=heuristic).run()


@heuristics
@pytest.mark.parametrize(
    "far",
    [
        FAR,
        BUSY,
        replace(BUSY, runtime=200),
        replace(BUSY, processors=12, local=[(0, 600, 12)]),
        replace(FAR, max_proc=2, max_tr=600, requests=2),
        replace(FAR, runtime=1200),
    ],
)
def test_two_sites_are_no_slower_than_the_better_one(far: Site, heuristic: HeuristicName) -> None:
    world = together(IDLE, far, heuristic=heuristic)
    both = world.run()
    longest = max(IDLE.runtime, far.runtime) if heuristic == "completion" else 0
    assert both <= min(seconds(site, heuristic=heuristic) for site in (IDLE, far)) + longest + STEP
    if heuristic == "adaptive":
        assert world.asked <= 400, "nothing is asked for twice"


def test_sites_of_two_heuristics_are_no_slower_than_the_better_one() -> None:
    near = replace(IDLE, heuristic="completion")
    assert seconds(near, BUSY) <= min(seconds(near), seconds(BUSY)) + IDLE.runtime + STEP


@heuristics
def test_two_equal_sites_take_half_as_long(heuristic: HeuristicName) -> None:
    one, two = (seconds(*sites, tasks=480, heuristic=heuristic) for sites in ([IDLE], [IDLE, FAR]))
    assert two <= one / 2 + 2 * IDLE.runtime + STEP


@examples(25)
@given(
    near_and_far("adaptive"),
    st.integers(1, 150),
)
def test_any_two_sites(sites: tuple[Site, Site], tasks: int) -> None:
    near, far = sites
    world = together(near, far, tasks=tasks)
    both = world.run()
    alone = min(seconds(near, tasks=tasks), seconds(far, tasks=tasks))
    assert world.asked <= tasks
    assert both <= alone + max(near.runtime, far.runtime) + 2 * STEP


@examples(10)
@given(
    near_and_far("completion"),
    st.integers(1, 150),
)
def test_any_two_sites_that_plan_by_completion_finish(sites: tuple[Site, Site], tasks: int) -> None:
    assert seconds(*sites, tasks=tasks) < 200_000


@heuristics
def test_a_site_that_dies_slows_the_bag_down_and_stops_nothing(heuristic: HeuristicName) -> None:
    both = seconds(IDLE, replace(FAR, dead_from=300), heuristic=heuristic)
    assert both <= seconds(IDLE, heuristic=heuristic) + IDLE.runtime + STEP
    if heuristic == "adaptive":
        assert seconds(IDLE, FAR) < both <= seconds(IDLE) + STEP


@heuristics
def test_a_site_that_is_always_late_holds_nothing_up(heuristic: HeuristicName) -> None:
    """Near is busy for an hour; far says that it is free, and starts every request ten hours late."""
    near = replace(IDLE, local=[(0, 3600, 16)])
    world = together(near, replace(FAR, delay=36_000), heuristic=heuristic)
    assert world.run() <= 2 * seconds(near, heuristic=heuristic)
    if heuristic == "adaptive":
        assert 0 < world.withdrawn <= 10, "nothing flaps"
