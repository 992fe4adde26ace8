"""The best of a small bag, and the factor to it."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor_experiments.frontier.design import Wish, site_of, sites_of
from adaptor_experiments.frontier.search import Policy, factor, frontier, loads, offer_of
from tests.examples import examples

STARTUP = 15
POLICIES = [Policy(100.0, 50.0), Policy(200.0, 25.0), Policy(400.0, 20.0)]


def brute_force(runtimes: list[float], unit: int) -> tuple[float, float]:
    """The least cost and the least time of all ways to spread the tasks over hosts, each its own pilot."""
    cost = time = math.inf
    for hosts in itertools.product(range(len(runtimes)), repeat=len(runtimes)):
        work = [0.0] * len(runtimes)
        for runtime, host in zip(runtimes, hosts, strict=True):
            work[host] += runtime
        used = [STARTUP + each for each in work if each]
        cost = min(cost, sum(math.ceil(each / unit) * unit for each in used))
        time = min(time, max(used))
    return cost, time


@examples(30)
@given(st.lists(st.floats(1, 5000), min_size=1, max_size=4), st.sampled_from([1, 60, 3600]))
def test_the_search_finds_the_least_time_and_nearly_the_least_cost_of_a_small_bag(runtimes, unit):
    found = frontier(runtimes, site_of(unit))
    cost, time = brute_force(runtimes, unit)
    assert found[-1].end == pytest.approx(time)
    # Two hosts of different length may cost less than the same hosts by the longest task first.
    assert cost <= found[0].cost + 1e-6 <= cost + 2 * unit


@given(st.lists(st.floats(1, 5000), min_size=1, max_size=40), st.integers(1, 9))
def test_no_work_is_lost_and_no_host_has_a_task_more_than_another(runtimes, hosts):
    found = loads(runtimes, hosts)
    assert math.fsum(found) == pytest.approx(math.fsum(runtimes))
    assert found[0] - found[-1] <= max(runtimes) + 1e-6


@given(st.lists(st.floats(1, 5000), min_size=1, max_size=80), st.sampled_from([1, 60, 3600]))
def test_who_pays_more_is_done_sooner(runtimes, unit):
    found = frontier(runtimes, site_of(unit))
    assert all(a.cost < b.cost and a.end > b.end for a, b in itertools.pairwise(found))
    assert found[0].cost >= math.fsum(runtimes)


@examples(20)
@given(
    st.lists(st.floats(1, 3000), min_size=1, max_size=40),
    st.sampled_from([1, 60, 3600]),
    st.sampled_from(["two", "donated"]),
)
def test_cheaper_hosts_make_it_cheaper_and_no_work_is_free(runtimes, unit, sites):
    first, second = sites_of(sites, unit)
    found, alone = frontier(runtimes, first, second), frontier(runtimes, first)
    assert all(a.cost < b.cost and a.end > b.end for a, b in itertools.pairwise(found))
    assert found[0].cost <= alone[0].cost
    assert found[-1].end <= alone[-1].end
    cheapest = min(offer_of(first).price, offer_of(second).price)
    assert found[0].cost >= cheapest * math.fsum(runtimes) - 1e-6


@given(st.lists(st.floats(1, 3000), min_size=1, max_size=40), st.integers(1, 16), st.floats(1, 20_000))
def test_what_is_filled_ends_in_time_and_in_a_window(runtimes, hosts, until):
    offer = offer_of(sites_of("donated", 1)[1])
    tasks = sorted(runtimes, reverse=True)
    done, left = offer.filled(tasks, hosts, until)
    assert done.end <= until
    assert done.cost >= offer.price * (math.fsum(tasks) - math.fsum(left)) - 1e-6
    assert (done.cost == 0) == (len(left) == len(tasks))
    assert not done.end or any(begin < done.end <= end for begin, end in offer.windows)


@pytest.mark.parametrize(
    ("wish", "budget", "by", "best"),
    [
        (Wish(budget=1.5), 250.0, math.inf, 30 / 25),
        (Wish("fast"), math.inf, math.inf, 30 / 20),
        (Wish("fast", budget=1.5), 250.0, math.inf, 30 / 25),
        (Wish(deadline=2.0), math.inf, 40.0, 210 / 200),
        (Wish("cheap"), math.inf, math.inf, 210 / 100),
        (Wish("cheap", budget=1.5), 250.0, math.inf, 210 / 100),
        (Wish(budget=1.5, deadline=2.0), 250.0, 40.0, 210 / 200),
        (Wish("balanced"), math.inf, math.inf, 30 / 25),
        (Wish(), math.inf, math.inf, 30 / 25),
    ],
)
def test_the_factor_is_in_what_the_wish_leaves_open(wish, budget, by, best):
    assert factor(POLICIES, wish, 210.0, 30.0, budget, by) == pytest.approx(best)


def test_a_wish_that_no_policy_meets_has_no_factor():
    assert factor(POLICIES, Wish(budget=1.1), 90.0, 60.0, 99.0, math.inf) is None
    assert factor(POLICIES, Wish(deadline=1.5), 90.0, 60.0, math.inf, 19.0) is None
