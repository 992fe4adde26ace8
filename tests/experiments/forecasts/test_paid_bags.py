"""In which order the tasks of a bag file come, and run."""

from __future__ import annotations

from adaptor_experiments.forecasts.paid_bags import BAG, WAYS, Settings, bag_of
from adaptor_experiments.forecasts.site_run import submitted

SETTINGS = Settings(seed=3, orders=2)


def file_of(key, order=0):
    return bag_of(key, SETTINGS, order)


def run_order_of(key, number):
    """The places of the tasks in the file, as they wait."""
    bag = submitted(file_of(key), WAYS[0].site, number=number, order=BAG[key].order).bag
    return list(bag.waiting)


def test_the_same_tasks_in_three_ways():
    tasks = file_of("shuffled")
    assert tasks != sorted(tasks)
    assert file_of("sorted") == file_of("sorted-file") == sorted(tasks)


def test_a_sorted_file_runs_at_random_unless_its_user_says_otherwise():
    places = list(range(len(file_of("sorted"))))
    assert run_order_of("sorted-file", 1) == run_order_of("shuffled", 1) == places
    one, two = run_order_of("sorted", 1), run_order_of("sorted", 2)
    assert sorted(one) == sorted(two) == places
    assert places != one != two


def test_only_of_a_sorted_bag_in_file_order_nothing_is_promised():
    assert [key for key, bag in BAG.items() if not bag.promised] == ["sorted-file"]


def test_all_kinds_that_users_may_meet_are_there():
    wanted = {"sorted", "sorted-file", "shuffled", "two-kinds", "rare-long", "log-normal", "levy", "demo"}
    assert wanted <= {*BAG}


def test_a_budget_alone_is_one_of_three_times_the_work():
    alone = {way.title: way.budget([1800.0] * 4) for way in WAYS}
    assert alone == {"cheap, 1m": None, "cheap, 1h": None, "budget, 1m": 6.0, "budget, 1h": 6.0}


def test_the_measured_tasks_are_stretched():
    assert min(file_of("demo")) > 10
