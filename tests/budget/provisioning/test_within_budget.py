"""How many hosts a budget pays for, and for how long."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adaptor.budget.provisioning.hosts import Hosts, HostTerms
from adaptor.budget.provisioning.pacing import Course
from adaptor.budget.provisioning.presets import FRUGAL
from adaptor.budget.provisioning.within_budget import Purse, cheaper_anew, hosts_within, useful_seconds
from adaptor.runtimes.known import KnownRuntimes

TASKS, STARTUP = 256, 30.0


def course(finished: int = 0, running: int = 0, hosts: int = 0, **fields: object) -> Course:
    """256 tasks of 200 s."""
    sums = KnownRuntimes(
        finished=finished, total=200.0 * finished, squares=200.0**2 * finished, running=running
    )
    made = Course(
        now=0.0,
        tasks=TASKS,
        known=sums,
        hosts=[Hosts(hosts, 0.0, 600.0)] if hosts else [],
        terms=HostTerms(unit=360.0, startup=STARTUP),
        preset=FRUGAL,
        assumed=60.0,
    )
    return msgspec.structs.replace(made, **fields)


def purse(work: float, reserved: float = 0.0) -> Purse:
    """A multiple of the work of all tasks."""
    return Purse(work * TASKS * 200.0 - reserved, reserved)


@pytest.mark.parametrize("work", [1.1, 1.5, 10.0])
def test_while_nothing_is_known_all_the_money_is_divided_among_a_host_for_each_task(work: float) -> None:
    """If the budget does not bind, the bag is as soon done as without one, and hosts give back what they do
    not use; and none more is bought until a runtime is known."""
    first = hosts_within(course(), purse(work))
    assert first == TASKS
    each = useful_seconds(course(), purse(work), first, 60.0)
    assert each * first == pytest.approx(purse(work).whole)
    assert hosts_within(course(running=first, hosts=first), purse(work)) == 0


def test_starts_of_hosts_take_no_more_than_a_third_of_the_money() -> None:
    few = hosts_within(course(), Purse(10 * STARTUP, 0.0))
    assert 0 < few * STARTUP <= 10 * STARTUP / 3


def test_the_first_host_is_a_number_that_reasons_can_name() -> None:
    little = Purse(3 * STARTUP, 0.0)
    assert str(hosts_within(course(), little)) == "1"
    assert str(hosts_within(course(running=1, hosts=1), little)) == "0"


@given(st.integers(1, 200), st.integers(1, 64), st.floats(1.0, 1.8))
def test_within_a_tight_budget_no_more_hosts_are_there_than_tasks_have_finished(
    finished: int, hosts: int, work: float
) -> None:
    known = course(finished=finished, running=min(hosts, 256 - finished), hosts=hosts)
    assume(not known.blind)
    left = purse(work * (256 - finished) / 256, reserved=600.0 * hosts)
    assume(left.left > 0)
    assert hosts_within(known, left) <= max(0, finished - hosts)
    hinted = msgspec.structs.replace(known, known=msgspec.structs.replace(known.known, told=200.0))
    assert hosts_within(hinted, left) >= 1


def test_one_short_task_buys_no_more_hosts_than_its_budget_surely_pays_for() -> None:
    """15 hosts for 60 s each of a heavy-tailed bag: 14 of 25 tasks were done, and 24 with less budget."""
    sums = KnownRuntimes(finished=1, total=20.0, squares=400.0, running=1)
    one = course(hosts=1, tasks=25, known=sums)
    assert hosts_within(one, Purse(1680.0, 840.0)) <= 2
    assert hosts_within(one, Purse(20_000.0, 840.0)) > 10


@given(st.floats(1.0, 10.0), st.floats(1.0, 3.0), st.integers(20, 200))
def test_more_money_never_buys_fewer_hosts(work: float, more: float, finished: int) -> None:
    known = course(finished=finished)
    assert hosts_within(known, purse(work)) <= hosts_within(known, purse(work * more))


@pytest.mark.parametrize("finished", [0, 20, 200])
def test_however_little_is_left_a_bag_without_hosts_may_have_one(finished: int) -> None:
    assert hosts_within(course(finished=finished), purse(0.01)) >= 1


def test_one_host_is_not_bought_for_the_whole_budget() -> None:
    """`--budget 20 --prefer fast` asked for one processor for 19 hours."""
    assert useful_seconds(course(), purse(1.3), 1, 0.0) < 0.05 * purse(1.3).whole


def test_the_first_host_has_time_for_two_tasks_as_long_as_the_site_takes_them_to_be() -> None:
    """Else no task may start there, once its start has taken longer than the pad."""
    assert useful_seconds(course(), purse(1.0), 1, 3600.0) >= STARTUP + 2 * 3600


def test_known_hosts_have_time_for_their_part_of_the_work_and_for_one_task_more() -> None:
    known = course(finished=100, running=0)
    seconds = useful_seconds(known, purse(3.0), 16, 300.0)
    assert seconds >= STARTUP + 156 * 200 / 16 + 300


def test_a_known_mean_lets_more_hosts_begin_than_an_exponential_distribution_would() -> None:
    """Equal tasks with `--time` took 6.5 times as long as they could with 1.1 times the work."""
    hinted = hosts_within(course(known=KnownRuntimes(told=200.0)), purse(1.1))
    assert hinted > 0.05 * TASKS
    assert hinted < 64


DRAINING = course(finished=100, running=4)


def test_a_pilot_that_idles_for_few_tasks_ends_where_others_wait_without_credits() -> None:
    assert cheaper_anew(DRAINING, purse(0.0), 16, [100.0, 100.0], 230.0)


@pytest.mark.parametrize(
    ("left", "slots", "ages", "seconds"),
    [
        (10.0, 16, [100.0, 100.0], 230.0),  # there are credits for those that wait
        (0.0, 16, [100.0] * 9, 230.0),  # most of its slots work
        (0.0, 16, [5.0, 5.0], 230.0),  # its workers have just come
        (0.0, 16, [100.0, 100.0], 5000.0),  # it has time for those that wait
        (0.0, 16, [3000.0, 3000.0], 230.0),  # its tasks have run for long
        (0.0, 1, [100.0], 230.0),
        (0.0, 16, [], 230.0),
    ],
)
def test_any_other_goes_on(left: float, slots: int, ages: list[float], seconds: float) -> None:
    assert not cheaper_anew(DRAINING, purse(left), slots, ages, seconds)


def test_where_no_task_waits_the_last_ones_go_on() -> None:
    last = course(finished=TASKS - 2, running=2)
    assert not cheaper_anew(last, purse(0.0), 16, [100.0, 100.0], 230.0)
