"""The bags have the published statistics."""

from __future__ import annotations

import numpy as np
import pytest

from adaptor_experiments.a2ha import bags
from adaptor_experiments.a2ha.bags import (
    DEMO,
    IMAGE,
    IMAGE_LISTS,
    KINDS,
    LONG,
    NORMAL,
    TESTING,
    TESTING_LISTS,
    fixed,
    optimal_hosts,
    runtimes,
)
from adaptor_experiments.tables import texts

ORIGINS = dict(texts("a2ha").tables["bags"].rows)


@pytest.mark.parametrize(("kind", "mean", "deviation"), [(NORMAL, 150, 30), (LONG, 5400, 1200)])
def test_the_normal_ones_are_drawn_anew(kind, mean, deviation):
    drawn = np.array([runtimes(kind, 1, order) for order in range(40)])
    assert drawn.shape == (40, 256)
    assert drawn.mean() == pytest.approx(mean, rel=0.02)
    assert drawn.std() == pytest.approx(deviation, rel=0.03)
    assert (drawn[0] != drawn[1]).any()


@pytest.mark.parametrize("kind", [IMAGE, *IMAGE_LISTS, TESTING, *TESTING_LISTS, DEMO])
def test_the_others_are_only_put_into_another_order(kind):
    one, two = (runtimes(kind, 1, order) for order in (0, 1))
    assert (one != two).any()
    assert sorted(one) == sorted(two)
    assert (one == runtimes(kind, 1, 0)).all()


@pytest.mark.parametrize("kind", bags.OTHERS, ids=lambda kind: kind.key)
def test_bags_of_other_kinds_are_what_they_say(kind):
    orders = [runtimes(kind, 1, order) for order in range(5)]
    origin = ORIGINS[kind.title]
    assert {f"synthetic: {len(order)} tasks" for order in orders} == {
        origin.partition(" tasks")[0] + " tasks"
    }
    assert all(order.min() > 0 for order in orders)
    assert all(order.max() < kind.terms.usable for order in orders if kind.key != "log-normal")
    assert (runtimes(kind, 1, 0) == orders[0]).all()
    assert kind.key == "constant" or (orders[0] != orders[1]).any()


@pytest.mark.parametrize(("kind", "optimal"), [(IMAGE, 18), (NORMAL, 12), (TESTING, 27)])
def test_the_optimal_numbers(kind, optimal):
    """As in the paper, but for the software testing, of which it says 29 (see `page.yaml`)."""
    found = [optimal_hosts(runtimes(kind, 1, order).sum(), kind.terms) for order in range(20)]
    assert np.median(found) == optimal


def test_the_measured_list_comes_with_the_package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tasks = bags.measured()
    assert len(tasks) == 256
    assert 0 < tasks.min() < tasks.max()
    assert sorted(runtimes(DEMO, 1, 0)) == sorted(tasks)


def test_every_bag_says_where_it_comes_from():
    assert [*ORIGINS] == [kind.title for kind in KINDS.values()]
    assert all(origin.startswith(("synthetic: ", "measured: ")) for origin in ORIGINS.values())


@pytest.mark.parametrize("kind", [IMAGE, *IMAGE_LISTS], ids=lambda kind: kind.key)
def test_the_image_rendering(kind):
    """2011, §4; 2008, §3."""
    tasks = fixed(kind.key)
    assert len(tasks) == 256
    assert (tasks.mean(), tasks.std()) == (pytest.approx(220), pytest.approx(125))
    assert (tasks.min(), tasks.max()) == (25, 25 + 9 * 60)


@pytest.mark.parametrize("kind", [TESTING, *TESTING_LISTS[:2]], ids=lambda kind: kind.key)
def test_the_software_testing(kind):
    """2011, §4."""
    tasks = fixed(kind.key)
    assert len(tasks) == 1480
    assert tasks.mean() == pytest.approx(60)
    assert (tasks < 30).mean() == 0.5
    assert 1 <= (tasks > 900).sum() <= 20


def test_the_list_that_makes_29_hosts_differs_in_its_mean_only():
    tasks = fixed("testing-64")
    assert tasks.mean() == pytest.approx(64.4)
    assert (len(tasks), (tasks < 30).mean()) == (1480, 0.5)


def test_the_lists_differ():
    for kinds in ((IMAGE, *IMAGE_LISTS), (TESTING, *TESTING_LISTS)):
        quartiles = {tuple(np.quantile(fixed(kind.key), [0.25, 0.75]).round()) for kind in kinds}
        assert len(quartiles) == len(kinds)
