"""Buying only what will be paid for anyway."""

from __future__ import annotations

import random

import pytest

from adaptor.budget.provisioning import work_bound
from adaptor.budget.provisioning.hosts import Hosts, HostTerms
from adaptor.runtimes.known import KnownRuntimes

HOURLY = HostTerms(unit=3600, startup=300)


def known(*values):
    made = KnownRuntimes()
    for value in values:
        made.start(0.0)
        made.finish(0.0, value)
    return made


def test_the_bound_rises_with_what_is_known_and_stays_below_the_estimate():
    bounds = [work_bound.lower_bound(known(*[200.0, 240.0] * n), 100, 0.0, 0.8) for n in (1, 4, 16, 64)]
    assert bounds == sorted(bounds)
    assert bounds[-1] < 100 * 220


def test_more_certainty_is_a_lower_bound():
    some = known(100.0, 300.0, 250.0)
    assert work_bound.lower_bound(some, 50, 0.0, 0.95) < work_bound.lower_bound(some, 50, 0.0, 0.6)


@pytest.mark.parametrize(
    ("drawn", "most"),
    [
        (lambda chance: chance.expovariate(1 / 200), 0.92),
        (lambda chance: chance.uniform(10, 400), 0.95),
        (lambda chance: chance.gauss(200, 40), 1.0),
    ],
    ids=["exponential", "uniform", "normal"],
)
def test_the_bound_holds_as_often_as_it_says(drawn, most):
    """And hardly more often where tasks differ much; where they are alike the prior makes it careful."""
    chance = random.Random(5)
    held = 0
    for _ in range(400):
        sample = known(*(drawn(chance) for _ in range(20)))
        held += sum(drawn(chance) for _ in range(100)) >= work_bound.lower_bound(sample, 100, 0.0, 0.8)
    assert 0.75 <= held / 400 <= most


def test_hosts_with_time_to_spare_leave_nothing_over():
    some = known(*[220.0] * 10)
    plenty = [Hosts(20, 300, 3600)]
    assert work_bound.overflow(some, 100, plenty, 300, 0.8) < 0
    assert work_bound.necessary(some, work_bound.overflow(some, 100, plenty, 300, 0.8), HOURLY) == 0


def test_a_begun_unit_is_bought_whole():
    some = known(*[220.0] * 10)
    assert work_bound.necessary(some, 1.0, HOURLY) == 1
    assert work_bound.necessary(some, 3190.0 + 1, HOURLY) == 2  # 110 s of the last task are lost


def test_a_long_first_task_counts_while_it_runs():
    made = KnownRuntimes()
    made.start(0.0)
    assert work_bound.lower_bound(made, 10, 600.0, 0.8) > work_bound.lower_bound(made, 10, 60.0, 0.8) > 0


@pytest.mark.parametrize(("tasks", "hosts"), [(1, 1), (99, 1), (100, 2), (256, 3), (10_000, 20)])
def test_large_bags_are_sampled_on_several_hosts(tasks, hosts):
    assert work_bound.samples(tasks) == hosts
