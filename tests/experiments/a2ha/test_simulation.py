"""Bags on hosts that the estimator buys."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.provisioning.hosts import HostTerms
from adaptor.budget.provisioning.presets import AGGRESSIVE, CONSERVATIVE, FRUGAL, PREFERENCES, Preset
from adaptor_experiments.a2ha.bags import HOURLY, IMAGE, NORMAL, WHOLE_HOUR, Kind, optimal_hosts, runtimes
from adaptor_experiments.a2ha.simulation import CloudRun
from tests.examples import examples


def test_one_task_on_one_host():
    run = CloudRun([100.0], HOURLY, CONSERVATIVE).finish()
    assert (run.hosts, run.units, run.wall, run.work) == (1, 1, 400.0, 100.0)


def test_a_task_longer_than_the_unit_keeps_its_host():
    run = CloudRun([9000.0], HOURLY, CONSERVATIVE).finish()
    assert (run.hosts, run.units, run.wall, run.continued, run.cut) == (1, 3, 9300.0, 2, 0)


def test_equal_tasks_with_all_that_is_necessary_bought_at_once():
    # The first host ends its first task at 300 s; by then 35 tasks remain and it has time for 11.
    run = CloudRun([300.0] * 36, WHOLE_HOUR, Preset(name="all")).finish()
    assert (run.hosts, run.units, run.cut) == (3, 3, 0)
    assert run.wall == 300 + 12 * 300


def test_one_host_per_task_ends_with_the_longest():
    run = CloudRun([5000.0, 3000.0, 7000.0], WHOLE_HOUR, CONSERVATIVE, initial=3).finish()
    assert run.wall == 7000
    assert (run.hosts, run.units) == (3, 2 + 1 + 2)


@examples(60)
@given(
    st.sampled_from(list(PREFERENCES.values())),
    st.lists(st.floats(1, 20_000), min_size=1, max_size=60),
    st.sampled_from([0.0, 300.0]),
    st.none() | st.integers(1, 20),
)
def test_every_bag_ends_and_is_charged_for_the_time_that_it_took(preset, bag, startup, initial):
    terms = HostTerms(unit=3600.0, startup=startup)
    cloud = CloudRun(bag, terms, preset, initial=initial)
    run = cloud.finish()
    assert len(cloud.history) == len(bag)
    assert run.work == pytest.approx(math.fsum(bag))
    assert run.units >= run.hosts >= 1
    busy = run.work + run.wasted
    assert busy + startup * run.hosts <= run.units * terms.unit + startup * run.hosts + 1e-6
    assert run.wall >= startup + max(bag) - 1e-6
    assert cloud.history == sorted(cloud.history)


@pytest.mark.parametrize("kind", [IMAGE, NORMAL], ids=lambda kind: kind.key)
@pytest.mark.parametrize("preset", [CONSERVATIVE, AGGRESSIVE], ids=lambda preset: preset.name)
def test_the_daemon_buys_what_the_published_estimator_buys(kind: Kind, preset: Preset) -> None:
    """Run by run, each purchase at its instant."""
    for order in range(5):
        bag = list(map(float, runtimes(kind, 1, order)))
        published = CloudRun(bag, kind.terms, preset)
        daemon = CloudRun(bag, kind.terms, preset, bought="daemon")
        assert (daemon.finish(), daemon.history) == (published.finish(), published.history)


def test_frugal_buys_fewer_hosts_than_the_papers_where_tasks_differ():
    draw = np.random.default_rng(3)
    excess = {}
    for preset in (CONSERVATIVE, FRUGAL):
        found = []
        for _ in range(12):
            bag = list(map(float, draw.exponential(200, 250)))
            found.append(CloudRun(bag, HOURLY, preset).finish().units / optimal_hosts(sum(bag), HOURLY))
        excess[preset.name] = np.mean(found) - 1
    assert excess["frugal"] < 0.12 < excess["conservative"]
