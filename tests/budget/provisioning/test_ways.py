"""The cheapest ways to hold processors: sound, kept within what is asked, and computed without libraries."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.errors import InfeasibleError
from adaptor.budget.provisioning.allocation import cheapest, fastest, least_time
from adaptor.budget.provisioning.ways import all_ways, capacity, cost_of, least_cost, relaxed_cost, size
from tests.budget.provisioning import by_trying_all
from tests.budget.provisioning.offer_strategies import offers, site
from tests.examples import examples

some = examples(60)


@some
@given(offers(held=True), st.integers(1, 3000), st.floats(1.0, 5.0))
def test_no_group_holds_more_than_it_has_and_whole_processors_are_whole(sites, tasks, more):
    ways = all_ways(sites, least_time(tasks, sites) * more, tasks)
    found = least_cost(ways, sites, tasks)
    held = {}
    for way, count in found:
        assert count >= 0
        assert sites[way.site].divisible or count == int(count)
        held[way.site, way.group] = held.get((way.site, way.group), 0.0) + count
    assert all(count <= size(sites, *group) + 1e-6 for group, count in held.items())
    assert cost_of(found) >= relaxed_cost(ways, sites, tasks) * (1 - 1e-6)


def test_more_than_all_can_do_has_no_ways():
    ways = all_ways([site()], 3600.0, 100)
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
        "from adaptor.budget.provisioning.task_time import TaskTime\n"
        "here = SiteOffer(name='here', price=1.0, processors=4, task=TaskTime(600.0))\n"
        "assert steer(Aim(budget=100.0), Progress(now=0.0, waiting=9), [here]).allocation.cost <= 100\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def some_sites(seed):
    draw = random.Random(seed)
    return [
        site(
            f"site{number}",
            price=draw.uniform(0.1, 10),
            processors=draw.randint(1, 3),
            mean=(mean := 10 ** draw.uniform(0.5, 3)),
            deviation=mean * draw.choice([0, 0.1, 0.4, 1.0]),
            charging_unit=draw.choice([1.0, mean / 3, 3 * mean, 3600.0]),
            startup=draw.choice([0.0, 10.0, 30.0]),
        )
        for number in range(draw.randint(1, 3))
    ], draw.randint(3, 12)


def test_cheapest_and_fastest_are_what_trying_all_finds():
    """Of 20 sets of offers: 1 to 3 sites, 1 to 3 processors each, by the second and by the hour."""
    cost, within, seconds = [], [], []
    for seed in range(20):
        sites, tasks = some_sites(seed)
        least = by_trying_all.least_cost(tasks, sites)
        cost.append(cheapest(tasks, sites).cost / least)
        deadline = least_time(tasks, sites) * (1 + seed / 8)
        within.append(
            cheapest(tasks, sites, deadline).cost / by_trying_all.least_cost_within(tasks, sites, deadline)
        )
        budget = least * (1.05 + seed / 20)
        seconds.append(
            fastest(tasks, sites, budget).seconds / by_trying_all.least_seconds(tasks, sites, budget)
        )
    for ratios, worst in ((cost, 1.06), (within, 1.06), (seconds, 1.12)):
        assert 0.97 < statistics.mean(ratios) < 1.005
        assert max(ratios) < worst


def test_equal_tasks_end_in_whole_rounds():
    """4 tasks of an hour on 4 processors take an hour, and a fifth one takes another."""
    hourly = site(processors=4, mean=3600.0)
    assert least_time(4, [hourly]) == pytest.approx(3600, rel=0.01)
    assert least_time(5, [hourly]) == pytest.approx(7200, rel=0.01)
