"""The steps of Silva et al., by hand; and the daemon beside them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.a2ha import Situation
from adaptor.budget.provisioning.hosts import Hosts, HostTerms
from adaptor.budget.provisioning.presets import AGGRESSIVE, CONSERVATIVE, FRUGAL, PREFERENCES, Preset
from adaptor_experiments.a2ha.paper_presets import CONSERVATIVE_2008, PaperPreset, PublishedBuyer, goes_on

HOURLY = HostTerms(unit=3600, startup=300)
ONE = [Hosts(1, ready=300, ends=3600)]


def estimator(preset=CONSERVATIVE, tasks=256, terms=HOURLY):
    return PublishedBuyer(tasks, terms, preset)


def host_goes_on(made, now, ran, others, preset=CONSERVATIVE, tasks=256):
    seen = Situation(now=now, tasks=tasks, runtimes=made.runtimes, hosts=others, terms=HOURLY)
    return goes_on(seen, preset, ran)


def run(made, runtime, started=300.0):
    made.runtimes.start(started)
    made.runtimes.finish(started, runtime)


def test_it_begins_with_one_host_or_with_the_corrected_hint():
    assert estimator().first().hosts == 1
    assert estimator().first(50).hosts == 25
    assert estimator(AGGRESSIVE).first(50).hosts == 38
    assert estimator(tasks=10).first(50).hosts == 10


def test_the_first_task_of_figure_3_and_5():
    made = estimator()
    run(made, 220)
    # 14 tasks are possible until 3600; (255 - 14) · 220 / 3300 = 16.07 hosts; half of them.
    advice = made.step(520, ONE)
    assert advice.hosts == 8
    assert advice.reason == "255 of 256 tasks remain, of 3m 40s each: hosts there 1, more to buy 8"


def test_the_ratio_grows_with_each_finished_task():
    made = estimator()
    run(made, 220)
    made.step(520, ONE)
    # Nothing is bought of the 8, so the next step sees the need again, at a ratio of 0.75.
    assert made.step(520, ONE).hosts == 12
    assert made.step(520, ONE).hosts == 14


def test_2008_adds_one():
    made = estimator(CONSERVATIVE_2008)
    run(made, 220)
    assert made.step(520, ONE).hosts == 9
    enough = [Hosts(17, 300, 3600)]
    assert made.step(520, enough).hosts == 1  # round(0.x) = 0 necessary, int(0) + 1


def test_the_periodic_step_of_2008_keeps_the_ratio():
    kept, moved = estimator(CONSERVATIVE_2008), estimator()
    for made in (kept, moved):
        made.runtimes.start(300.0)
        made.step(1200, ONE, periodic=True)
        made.runtimes.finish(300.0, 220)
    assert (kept.step(1200, ONE).hosts, moved.step(1200, ONE).hosts) == (9, 12)


def test_2011_adds_none_where_none_is_necessary():
    made = estimator(AGGRESSIVE)
    run(made, 220)
    assert made.step(520, [Hosts(19, 300, 3600)]).hosts == 0


def test_running_tasks_count_in_the_periodic_step_only():
    made = estimator()
    run(made, 60)
    for _ in range(3):
        made.runtimes.start(360.0)
    # Mean over finished and running: (60 + 3 · 600) / 4.
    assert made.runtimes.corrected_mean(960.0) == 465
    hosts = [Hosts(4, 300, 3600)]
    often, periodic = made, estimator()
    periodic.runtimes = msgspec.structs.replace(made.runtimes)
    assert periodic.step(960, hosts, periodic=True).hosts > often.step(960, hosts).hosts


def test_short_running_tasks_do_not_pull_the_average_down():
    made = estimator()
    run(made, 600)
    made.runtimes.start(900.0)
    assert made.runtimes.corrected_mean(960.0) == 600


def test_before_any_task_has_finished_nothing_is_known():
    made = estimator()
    assert made.step(0, ONE).hosts == 0
    assert made.step(0, []).hosts == 1


def test_a_first_task_that_runs_long_brings_hosts_all_the_same():
    made = estimator()
    made.runtimes.start(300.0)
    assert made.step(1200, ONE, periodic=True).hosts > 0


def test_long_tasks_get_hosts_for_half_of_them():
    made = estimator(Preset(name="all", beyond_half="fill"))
    run(made, 5400)
    advice = made.step(5700, [Hosts(1, 300, 7200)])
    assert advice.hosts == 127
    assert "so that each runs two tasks at least" in advice.reason


def test_as_printed_there_are_no_new_hosts_beyond_half_of_the_tasks():
    made = estimator(Preset(name="all"))
    run(made, 5400)
    assert made.step(5700, [Hosts(1, 300, 7200)]).hosts == 0
    assert made.step(5700, []).hosts == 1, "but one must be there"


def test_the_table_of_2011_counts_half_of_what_the_first_hosts_leave():
    made = estimator(PaperPreset(name="all", beside_hint=True, beyond_half="fill"))
    first = made.first(100).hosts
    for _ in range(first):
        made.runtimes.start(300.0)
    made.runtimes.finish(300.0, 5400)
    assert first + made.step(5700, [Hosts(first, 300, 7200)]).hosts == 178


def test_no_more_hosts_than_tasks_wait():
    made = estimator(Preset(name="all", beyond_half="fill"), tasks=10)
    run(made, 3000)
    for _ in range(7):
        made.runtimes.start(3300.0)
    advice = made.step(3300, [Hosts(1, 300, 3600)])
    assert advice.hosts == 2
    assert advice.reason.endswith("because no more tasks wait")


def test_when_all_is_done_nothing_is_bought():
    made = estimator(tasks=1)
    run(made, 10)
    assert made.step(400, ONE).hosts == 0


@pytest.mark.parametrize(
    ("preset", "ran", "expected"),
    [(CONSERVATIVE, 100, False), (CONSERVATIVE, 220, True), (FRUGAL, 100, False), (FRUGAL, 260, False)],
)
def test_who_goes_on_when_the_paid_time_is_over(preset, ran, expected):
    made = estimator(preset, tasks=20)
    for _ in range(16):
        run(made, 220)
    made.runtimes.start(3600 - ran)
    assert host_goes_on(made, 3600, ran, [Hosts(3, 600, 4500)], preset, 20) is expected


def test_the_last_host_always_goes_on():
    for preset in PREFERENCES.values():
        made = estimator(preset)
        run(made, 220)
        made.runtimes.start(3500.0)
        assert host_goes_on(made, 3600, 100, [], preset)


def test_tasks_longer_than_a_unit_are_never_cut_at_its_end():
    made = estimator()
    run(made, 5400)
    made.runtimes.start(3000.0)
    assert host_goes_on(made, 3600, 600, [Hosts(5, 0, 7200)])


def test_frugal_keeps_a_task_that_no_other_host_has_time_for():
    made = estimator(FRUGAL)
    for _ in range(30):
        run(made, 220)
    made.runtimes.start(600.0)
    assert host_goes_on(made, 3600, 3000, [Hosts(5, 300, 5000)], FRUGAL)


def test_by_the_rules_of_2008_every_host_ends_at_its_unit():
    made = estimator(CONSERVATIVE_2008)
    run(made, 220)
    made.runtimes.start(3300.0)
    others = [Hosts(3, 600, 4500)]
    assert not host_goes_on(made, 3600, 300, others, CONSERVATIVE_2008)
    assert host_goes_on(made, 3600, 300, others, CONSERVATIVE)
    assert host_goes_on(made, 3600, 3300, others, CONSERVATIVE_2008), "no host would ever have time for it"


@given(
    st.sampled_from(list(PREFERENCES.values())),
    st.lists(st.floats(1, 20_000), min_size=1, max_size=40),
    st.integers(1, 400),
    st.integers(0, 300),
)
def test_hosts_are_never_more_than_half_of_the_tasks_unless_the_hint_was(preset, runtimes, more, there):
    tasks = len(runtimes) + more
    made = estimator(preset, tasks)
    for runtime in runtimes:
        run(made, runtime)
    advice = made.step(3000, [Hosts(there, 300, 3600)] if there else [])
    assert 0 <= advice.hosts <= max(1, tasks // 2 - there)
    assert advice.hosts <= more


@pytest.mark.parametrize(
    "wrong",
    [
        {"creation_ratio": -0.1},
        {"creation_ratio": 1.1},
        {"increase_ratio": 2.0},
        {"certainty": 0.5},
        {"certainty": 1.0},
    ],
)
def test_presets_that_cannot_be(wrong):
    with pytest.raises(BudgetError):
        Preset(name="x", **wrong)


@pytest.mark.parametrize("wrong", [{"unit": 60, "startup": 60}, {"unit": 60, "startup": -1}])
def test_terms_that_leave_no_time(wrong):
    with pytest.raises(BudgetError):
        HostTerms(**wrong)
