"""The cheapest ways to hold processors: sound, kept within what is asked, and computed without libraries."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.errors import InfeasibleError
from adaptor.budget.provisioning.allocation import cheapest, fastest, least_time
from adaptor.budget.provisioning.ways import all_ways, capacity, least_cost, relaxed_cost, size
from tests.budget.provisioning.offer_strategies import offers, site
from tests.examples import examples

some = examples(60)


@some
@given(offers(held=True), st.integers(1, 3000), st.floats(1.0, 5.0))
def test_no_group_holds_more_than_it_has_and_whole_processors_are_whole(sites, tasks, more):
    ways = all_ways(sites, least_time(tasks, sites) * more)
    counts = least_cost(ways, sites, tasks)
    held = {}
    for way, count in zip(ways, counts, strict=True):
        assert count >= 0
        assert sites[way.site].divisible or count == int(count)
        held[way.site, way.group] = held.get((way.site, way.group), 0.0) + count
    assert all(count <= size(sites, *group) + 1e-6 for group, count in held.items())
    cost = sum(way.cost * count for way, count in zip(ways, counts, strict=True))
    assert cost >= relaxed_cost(ways, sites, tasks) * (1 - 1e-6)


def test_more_than_all_can_do_has_no_ways():
    ways = all_ways([site()], 3600.0)
    assert least_cost(ways, [site()], capacity(ways, [site()]) + 1) is None


@some
@given(offers(held=True), st.integers(1, 1000), st.floats(1.0, 2.0), st.floats(1.0, 2.0))
def test_more_money_is_never_later_and_never_exceeded(sites, tasks, part, more):
    budget = cheapest(tasks, sites, least_time(tasks, sites) * 2).cost * part
    try:
        found = fastest(tasks, sites, budget)
    except InfeasibleError:
        return
    sooner = fastest(tasks, sites, budget * more)
    assert sooner.seconds <= found.seconds * 1.01, "but for the precision of the search"
    assert found.cost <= budget * (1 + 1e-9)
    assert sooner.cost <= budget * more * (1 + 1e-9)


def test_a_processor_leaves_after_the_units_that_it_needs_however_late_the_deadline():
    """One hour of work, a day of time."""
    hourly = site(charging_unit=3600.0, processors=1, mean=1800.0)
    assert cheapest(1, [hourly], 24 * 3600.0).cost == pytest.approx(1.0)


def test_sites_are_compared_without_numpy_and_scipy():
    code = (
        "import sys\n"
        "sys.modules['numpy'] = sys.modules['scipy'] = None\n"
        "from adaptor.budget.provisioning.steering import Aim, Progress, steer\n"
        "from adaptor.budget.provisioning.site_offers import SiteOffer\n"
        "from adaptor.runtimes.task_time import TaskTime\n"
        "here = SiteOffer(name='here', price=1.0, processors=4, task=TaskTime(600.0))\n"
        "assert steer(Aim(budget=100.0), Progress(now=0.0, waiting=9), [here]).allocation.cost <= 100\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
