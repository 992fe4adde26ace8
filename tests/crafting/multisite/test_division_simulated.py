"""Two simulated sites serve one bag: no later than either alone, and nothing is asked for twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.multisite.waits import WaitLearner
from tests.examples import examples

from .simulated_sites import STEP, Site, World, near_and_far

IDLE = Site("near", 16, 60, [])
BUSY = Site("far", 16, 60, [(0, 1800, 12), (1800, 3600, 16)])
"""Four processors for half an hour, then none for half an hour."""


def together(*sites: Site, tasks: int = 400) -> World:
    return World([replace(site, pilots=[], waits=WaitLearner()) for site in sites], tasks)


def seconds(*sites: Site, tasks: int = 400) -> int:
    return together(*sites, tasks=tasks).run()


@pytest.mark.parametrize(
    "far",
    [
        replace(IDLE, name="far"),
        BUSY,
        replace(BUSY, runtime=200),
        replace(BUSY, processors=12, local=[(0, 600, 12)]),
        replace(IDLE, name="far", max_proc=2, max_tr=600, requests=2),
        replace(IDLE, name="far", runtime=3000),
    ],
)
def test_two_sites_are_no_slower_than_the_better_one(far: Site) -> None:
    world = together(IDLE, far)
    both = world.run()
    assert both <= min(seconds(IDLE), seconds(far)) + STEP
    assert world.asked <= 400, "nothing is asked for twice"


def test_two_equal_sites_take_half_as_long() -> None:
    assert seconds(IDLE, replace(IDLE, name="far"), tasks=480) <= seconds(IDLE, tasks=480) / 2 + 60 + STEP


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


def test_a_site_that_dies_slows_the_bag_down_and_stops_nothing() -> None:
    world = together(IDLE, replace(IDLE, name="far", dead_from=300))
    assert seconds(IDLE, replace(IDLE, name="far")) < world.run() <= seconds(IDLE) + STEP


def test_a_site_that_is_always_late_is_found_out() -> None:
    """Near is busy for an hour; far says that it is free, and starts every request ten hours late."""
    near = replace(IDLE, local=[(0, 3600, 16)])
    far = replace(IDLE, name="far", delay=36_000)
    world = together(near, far)
    assert world.run() <= 2 * seconds(near)
    assert 0 < world.withdrawn <= 10, "and nothing flaps"
