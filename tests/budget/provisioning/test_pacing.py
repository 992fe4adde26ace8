"""How many slots a bag may ask for now: by A²HA, by its deadline, the same after every restart."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.provisioning.hosts import Advice, Hosts, HostTerms
from adaptor.budget.provisioning.pacing import (
    CORRECTION_PERIOD,
    Course,
    advise,
    longest_to_learn,
    needed_for_deadline,
    situation_of,
    terms_for,
)
from adaptor.budget.provisioning.presets import (
    AGGRESSIVE,
    BALANCED,
    CONSERVATIVE,
    FRUGAL,
    PREFERENCES,
    Preset,
)
from adaptor.runtimes.known import KnownRuntimes
from adaptor_experiments.a2ha.paper_presets import PublishedBuyer

TERMS = HostTerms(unit=3600, startup=300)
PERIOD = CORRECTION_PERIOD * TERMS.unit


def course(
    *,
    now: float = 0.0,
    finished: int = 0,
    running: int = 0,
    tasks: int = 100,
    runtime: float = 600.0,
    hosts: int = 0,
    ends: float = 3600.0,
    preset: Preset = PREFERENCES["cheap"],
    deadline: float | None = None,
    hint: float | None = None,
) -> Course:
    """Tasks that all take the same time; those that run have just started."""
    sums = KnownRuntimes(
        finished=finished,
        total=finished * runtime,
        squares=finished * runtime**2,
        running=running,
        starts=running * now,
        told=hint,
    )
    there = [Hosts(hosts, 0.0, ends)] if hosts else []
    return Course(
        now=now,
        tasks=tasks,
        known=sums,
        hosts=there,
        terms=TERMS,
        preset=preset,
        assumed=600.0,
        deadline=deadline,
    )


def asked(made: Course) -> Advice:
    return advise(made).advice


def test_without_a_hint_one_host_finds_out_how_long_the_tasks_take() -> None:
    assert asked(course(preset=BALANCED)).hosts == 1


def test_with_a_hint_what_is_preferred_says_how_boldly_it_begins() -> None:
    begun = {prefer: asked(course(preset=preset, hint=600.0)).hosts for prefer, preset in PREFERENCES.items()}
    assert begun["cheap"] < begun["balanced"]


@given(st.floats(1, 1e6), st.integers(1, 500))
def test_the_first_purchase_is_for_half_of_the_tasks_at_most(hint: float, tasks: int) -> None:
    for preset in PREFERENCES.values():
        assert 1 <= asked(course(preset=preset, hint=hint, tasks=tasks)).hosts <= max(1, tasks // 2)


def test_the_units_make_the_start_up_a_small_part() -> None:
    assert terms_for(1, 30.0) == HostTerms(unit=360, startup=30.0)
    assert terms_for(3600, 30.0) == HostTerms(unit=3600, startup=30.0)
    assert terms_for(300, 30.0).unit % 300 == 0


def test_long_tasks_are_bought_several_units() -> None:
    assert asked(course(preset=CONSERVATIVE, hint=600.0)).units == 1
    assert asked(course(preset=CONSERVATIVE, hint=5400.0)).units == 2
    long = course(finished=1, runtime=5400.0, preset=PREFERENCES["balanced"], hosts=1, ends=7200.0)
    assert advise(long, advise(course(hosts=1)).pace).advice.units == 4, "two tasks for each"


def test_a_decision_is_made_once_for_each_finish() -> None:
    """What was asked for is not asked for again until another task has finished, or the time has come."""
    before = advise(course(hosts=1, running=1, preset=CONSERVATIVE)).pace
    made = course(now=100.0, finished=1, running=1, hosts=1, preset=CONSERVATIVE)
    first = advise(made, before)
    assert first.advice.hosts > 0
    assert advise(made, first.pace) == first, "the daemon may look as often as it likes"
    rest = first.pace.without(3)
    assert advise(made, rest).advice.hosts == first.advice.hosts - 3, "the limits held the others"
    done = first.pace.without(first.advice.hosts)
    later = course(now=200.0, finished=1, running=1, hosts=1, preset=CONSERVATIVE)
    assert advise(later, done).advice.hosts == 0
    much_later = course(now=PERIOD, finished=1, running=1, hosts=1, preset=CONSERVATIVE)
    assert advise(much_later, done).advice.hosts > 0


def test_a_periodic_step_moves_the_ratio_too() -> None:
    before = advise(course(hosts=1, running=1, preset=CONSERVATIVE)).pace
    made = course(now=PERIOD, running=1, hosts=1, preset=CONSERVATIVE)
    made = msgspec.structs.replace(made, known=msgspec.structs.replace(made.known, starts=0.0))
    found = advise(made, before)
    assert found.advice.hosts > 0, "the running task alone says that more are needed"
    assert found.pace.ratio == 0.75


def test_a_bag_without_hosts_gets_one_whenever_it_is_looked_at() -> None:
    pace = advise(course(finished=5, hosts=1, preset=CONSERVATIVE)).pace
    assert advise(course(finished=5, preset=CONSERVATIVE), pace).advice.hosts >= 1


def test_willing_to_pay_twice_makes_hosts_work_for_half_of_their_time() -> None:
    preset = Preset(name="all")
    twice = msgspec.structs.replace(preset, willing_to_pay=2.0)
    before = advise(course(hosts=1, running=1)).pace
    once, double = (
        advise(course(finished=1, hosts=1, preset=each), before).advice.hosts for each in (preset, twice)
    )
    assert once * 2 - 1 <= double <= once * 2 + 1


@pytest.mark.parametrize("hours", [1, 2, 5, 10])
def test_a_deadline_asks_for_as_many_as_it_needs(hours: int) -> None:
    deadline = hours * 3600.0
    found = asked(msgspec.structs.replace(course(finished=30, deadline=deadline), whole_units=True))
    rounds = (deadline - 300) // 600
    assert found.hosts * rounds >= 70, "the waiting tasks are done in time"
    cheapest = asked(course(finished=30)).hosts
    half = max(1, int(deadline // 7200)) * 6 - 1
    assert found.hosts == cheapest or (found.hosts - 1) * half < 70 * 1.6, "in half of it, in whole units"


def running(age: float) -> Course:
    """100 tasks, of which 4 have run so long on 4 hosts."""
    made = course(now=age, running=4, hosts=4, ends=36_000.0, deadline=36_000.0)
    return msgspec.structs.replace(made, known=msgspec.structs.replace(made.known, starts=0.0), slow=True)


def test_a_deadline_learns_with_few_hosts_and_asks_for_more_as_its_tasks_run_on() -> None:
    """Whatever the first estimate says: 100 tasks of an hour would need more than 10 hosts at once."""
    before = advise(running(1.0)).pace
    bought = [advise(running(age), before).advice.hosts for age in (60.0, 600.0, 3000.0, 6000.0)]
    assert bought[0] == 0
    assert bought == sorted(bought)
    assert bought[-1] > 30


def by_deadline(finished: int, hosts: int, now: float, oldest: float = 0.0, **changes: Any) -> int:
    """Hosts to request for 256 tasks of about 200 s, by the hour, in requests of 16 at most."""
    made = course(
        now=now, finished=finished, running=hosts, hosts=hosts, tasks=256, runtime=200.0, deadline=3200.0
    )
    made = msgspec.structs.replace(
        made, slow=True, whole_units=True, widest=16, requests_left=3, newest=0.0,
        known=msgspec.structs.replace(made.known, first_start=now - oldest),
        terms=HostTerms(unit=3600, startup=30),
    )  # fmt: skip
    made = msgspec.structs.replace(made, **changes)
    return advise(made, advise(made).pace).advice.hosts


def test_by_the_hour_a_deadline_within_a_unit_buys_no_second_host_for_the_same_work() -> None:
    """51,200 s of work: 16 hosts for 3200 s at the least; as many again would be charged as much again."""
    assert 10 <= by_deadline(30, 5, 300.0) + 5 <= 22


def test_more_hosts_for_a_deadline_wait_for_what_the_newest_have_to_tell() -> None:
    assert by_deadline(30, 5, 100.0) == 0
    assert by_deadline(30, 5, 300.0) > 0


def test_a_deadline_says_what_it_waits_for_while_the_runtimes_are_unknown() -> None:
    assert "find out how long the tasks take" in advise(running(1.0)).advice.reason
    waits = course(now=100.0, finished=30, running=5, hosts=5, tasks=256, runtime=200.0, deadline=3200.0)
    waits = msgspec.structs.replace(waits, slow=True, newest=0.0)
    asked = advise(waits, advise(waits).pace).advice
    assert asked.hosts == 0
    assert "for 6m 11s the newest hosts find out" in asked.reason
    idle = msgspec.structs.replace(waits, tasks=36)
    assert advise(idle, advise(idle).pace).advice.reason == "the deadline needs no more"


def test_few_hosts_are_requested_later_as_each_request_is_one_of_few() -> None:
    found = [by_deadline(30 + int(now / 15), 15, now) for now in (300.0, 500.0, 700.0)]
    assert found[:2] == [0, 0]
    assert by_deadline(20, 15, 1500.0) > 0


def test_hosts_beyond_a_whole_request_wait() -> None:
    assert by_deadline(10, 3, 400.0, tasks=400) == 16


def test_the_last_request_that_a_site_allows_has_hosts_for_all_the_work_nearly_certainly() -> None:
    some, last = (by_deadline(6, 5, 300.0, requests_left=left) for left in (3, 1))
    assert some < last


def test_a_task_that_runs_on_leaves_others_as_much_time_before_the_deadline() -> None:
    usual, long = (by_deadline(30, 8, 900.0, oldest=oldest) for oldest in (100.0, 800.0))
    assert usual < long


def test_what_a_site_assumes_of_a_task_counts_for_the_first_hosts_of_a_near_deadline_alone() -> None:
    """A wrong assumption costs a few hosts."""
    first = [asked(course(tasks=256, deadline=hours * 3600.0)).hosts for hours in (4, 10, 100)]
    assert first == [12, 9, 3]


def by_the_hour(hosts: int, runtimes: list[float], age: float, requests_left: float) -> int:
    """How many a balanced bag of 256 tasks may buy; its hosts run tasks of this age."""
    made = course(now=500.0, hosts=hosts, preset=BALANCED, tasks=256)
    sums = KnownRuntimes(running=hosts, starts=hosts * (500.0 - age))
    before = advise(msgspec.structs.replace(made, known=sums)).pace
    for runtime in runtimes:
        sums.add(runtime)
    made = msgspec.structs.replace(made, known=sums, whole_units=True, requests_left=requests_left)
    return advise(made, before).advice.hosts


def test_the_last_request_of_a_balanced_bag_by_the_hour_has_the_hosts_for_all_that_is_left() -> None:
    """No request ends before an hour that would make room for more; and the first tasks are short ones."""
    bought = {left: by_the_hour(6, [40.0, 80.0, 120.0] * 3, 150.0, left) for left in (1000, 1)}
    assert bought[1000] == 0, "six hosts do tasks of 80 s in an hour"
    assert 4 < bought[1] < 20


def test_a_balanced_bag_by_the_hour_spends_none_of_few_requests_on_few_hosts() -> None:
    bought = {left: by_the_hour(12, [165.0] * 14, 10.0, left) for left in (1000, 2)}
    assert 0 < bought[1000] < 4
    assert bought[2] == 0


@given(st.floats(30, 1500), st.floats(0.1, 10), st.integers(1, 40))
def test_the_first_short_task_of_a_known_mean_misleads_a_balanced_bag_by_a_ninth_at_most(
    hint: float, part: float, hosts: int
) -> None:
    """What the user says counts as eight finished tasks."""
    sums = KnownRuntimes(finished=1, total=part * hint, squares=(part * hint) ** 2, told=hint)
    made = course(now=600.0, hosts=hosts, preset=BALANCED, tasks=400, hint=hint)
    seen = situation_of(msgspec.structs.replace(made, known=sums))
    assert seen.remaining == 399
    assert seen.runtimes.mean == pytest.approx(hint * (8 + part) / 9)


def hinted(hint: float = 200.0, sums: KnownRuntimes | None = None, **changes: Any) -> Course:
    """256 tasks of which their user says that they take 200 s, by the hour."""
    known = msgspec.structs.replace(sums or KnownRuntimes(), told=hint)
    made = Course(
        now=0.0, tasks=256, known=known, hosts=[], terms=HostTerms(unit=3600.0, startup=30.0),
        preset=FRUGAL, slow=True, whole_units=True, assumed=60.0, deadline=6500.0,
    )  # fmt: skip
    return msgspec.structs.replace(made, **changes)


def test_the_first_short_task_outweighs_no_time_that_the_user_said() -> None:
    """A sample of one says little: alone it would have three times as many hosts bought, by the hour."""
    first = advise(hinted()).advice.hosts
    assert 14 <= first <= 18
    sums = KnownRuntimes(finished=1, total=80.0, squares=6400.0, running=first - 1, starts=30.0 * (first - 1))
    there = [Hosts(first, 30.0, 6500.0)]
    made = hinted(now=110.0, hosts=there, sums=sums)
    assert advise(made, advise(made).pace).advice.hosts <= 2


@pytest.mark.parametrize("mean", [100.0, 220.0, 400.0])
def test_for_a_far_deadline_no_more_is_bought_while_no_task_has_finished(mean: float) -> None:
    """The requests end before it, and others may follow them, should the tasks take longer."""
    first = advise(hinted(deadline=20_400.0, hint=mean)).advice.hosts
    sums = KnownRuntimes(running=first, starts=30.0 * first)
    made = hinted(
        now=60.0, deadline=20_400.0, hint=mean, hosts=[Hosts(first, 30.0, 7200.0)], sums=sums, requests_left=3
    )
    assert needed_for_deadline(made) == 0


def test_a_bag_of_long_tasks_with_a_deadline_pays_for_as_many_units_as_they_take() -> None:
    made = hinted(deadline=400_000.0, hint=9000.0)
    there = msgspec.structs.replace(made, hosts=[Hosts(1, 0.0, 10_800.0)])
    assert [advise(each).advice.units for each in (made, there)] == [3, 1]


def test_a_deadline_that_cannot_be_kept_is_missed_by_as_little_as_can_be() -> None:
    found = asked(course(finished=30, deadline=500.0))
    assert found.hosts == 70
    assert "cannot be kept" in found.reason


def test_hosts_that_are_there_count_for_the_deadline() -> None:
    alone = asked(course(finished=30, deadline=3600.0)).hosts
    assert asked(course(finished=30, deadline=3600.0, hosts=alone)).hosts == 0


def test_a_bag_whose_tasks_have_all_finished_asks_for_nothing() -> None:
    assert asked(course(finished=100, deadline=10.0)).hosts == 0


@given(
    st.integers(0, 60), st.integers(0, 20), st.integers(0, 30), st.sampled_from(list(PREFERENCES.values())),
    st.one_of(st.none(), st.floats(-100, 1e6)), st.floats(1, 1e5), st.one_of(st.none(), st.floats(1, 1e5)),
)  # fmt: skip
def test_never_more_than_wait(
    finished: int,
    running: int,
    hosts: int,
    preset: Preset,
    deadline: float | None,
    runtime: float,
    hint: float | None,
) -> None:
    made = course(
        finished=finished,
        running=running,
        runtime=runtime,
        hosts=hosts,
        preset=preset,
        deadline=deadline,
        hint=hint,
    )
    found = asked(made)
    assert 0 <= found.hosts <= 100 - finished
    assert found.reason
    assert found.units >= 1


@given(st.integers(1, 40), st.sampled_from([BALANCED, AGGRESSIVE]), st.integers(1, 5))
def test_after_a_restart_the_estimator_is_where_it_was(finished: int, preset: Preset, hosts: int) -> None:
    """What it says of the next finish is what one says that has lived through every finish."""
    living = PublishedBuyer(100, TERMS, preset)
    there = [Hosts(hosts, 0.0, 3600.0)]
    for _ in range(finished):
        living.runtimes.start(0.0)
        living.runtimes.finish(0.0, 600.0)
        living.step(0.0, [])
    resumed = advise(course(finished=finished, hosts=hosts, preset=preset)).pace
    living.runtimes.start(0.0)
    living.runtimes.finish(0.0, 600.0)
    made = advise(course(finished=finished + 1, hosts=hosts, preset=preset), resumed)
    assert made.advice == living.step(0.0, there)


def test_the_only_request_of_a_bag_of_unknown_runtimes_lasts_for_a_quarter_of_the_time() -> None:
    alone = msgspec.structs.replace(course(deadline=40_000.0), requests_left=1)
    assert longest_to_learn(alone, 41_000, 630.0, 1) == 10_000
    assert longest_to_learn(alone, 5000, 630.0, 1) == 5000
    assert longest_to_learn(alone, 41_000, 12_000.0, 1) == 12_000, "a task fits"
    assert longest_to_learn(alone, None, 630.0, 1) is None, "no request keeps the deadline"


@pytest.mark.parametrize(
    "change",
    [
        {"requests_left": 2},
        {"known": KnownRuntimes(told=600.0)},
        {"hosts": [Hosts(1, 0.0, 9000.0)]},
        {"whole_units": True},
        {"deadline": None},
    ],
)
def test_other_requests_last_until_the_deadline(change: dict[str, Any]) -> None:
    other = msgspec.structs.replace(course(deadline=40_000.0), **{"requests_left": 1, **change})
    assert longest_to_learn(other, 41_000, 630.0, 1) == 41_000
