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
ALL, ALL_FILLED = Preset(name="all"), Preset(name="all", beyond_half="fill")


def estimator(preset=CONSERVATIVE, tasks=256, ran=(), running=()):
    """A buyer who has seen tasks run for these times, and others start at these."""
    made = PublishedBuyer(tasks, HOURLY, preset)
    for runtime in ran:
        made.runtimes.start(300.0)
        made.runtimes.finish(300.0, runtime)
    for started in running:
        made.runtimes.start(started)
    return made


def host_goes_on(made, now, ran, others, preset=CONSERVATIVE, tasks=256):
    seen = Situation(now=now, tasks=tasks, runtimes=made.runtimes, hosts=others, terms=HOURLY)
    return goes_on(seen, preset, ran)


def test_it_begins_with_one_host_or_with_the_corrected_hint():
    assert estimator().first().hosts == 1
    assert estimator().first(50).hosts == 25
    assert estimator(AGGRESSIVE).first(50).hosts == 38
    assert estimator(tasks=10).first(50).hosts == 10


def test_the_first_task_of_figure_3_and_5_and_the_ratio_that_grows_with_each():
    made = estimator(ran=[220])
    # 14 tasks are possible until 3600; (255 - 14) · 220 / 3300 = 16.07 hosts; half of them.
    advice = made.step(520, ONE)
    assert advice.hosts == 8
    assert advice.reason == "255 of 256 tasks remain, of 3m 40s each: hosts there 1, more to buy 8"
    # Nothing is bought of the 8, so the next step sees the need again, at a ratio of 0.75.
    assert [made.step(520, ONE).hosts for _ in range(2)] == [12, 14]


def test_2008_adds_one_and_2011_none_where_none_is_necessary():
    made = estimator(CONSERVATIVE_2008, ran=[220])
    assert made.step(520, ONE).hosts == 9
    assert made.step(520, [Hosts(17, 300, 3600)]).hosts == 1  # round(0.x) = 0 necessary, int(0) + 1
    assert estimator(AGGRESSIVE, ran=[220]).step(520, [Hosts(19, 300, 3600)]).hosts == 0


def test_the_periodic_step_of_2008_keeps_the_ratio():
    kept, moved = estimator(CONSERVATIVE_2008, running=[300]), estimator(running=[300])
    for made in (kept, moved):
        made.step(1200, ONE, periodic=True)
        made.runtimes.finish(300.0, 220)
    assert (kept.step(1200, ONE).hosts, moved.step(1200, ONE).hosts) == (9, 12)


def test_running_tasks_count_in_the_periodic_step_only():
    often, periodic = estimator(ran=[60], running=[360.0] * 3), estimator()
    # Mean over finished and running: (60 + 3 · 600) / 4.
    assert often.runtimes.corrected_mean(960.0) == 465
    hosts = [Hosts(4, 300, 3600)]
    periodic.runtimes = msgspec.structs.replace(often.runtimes)
    assert periodic.step(960, hosts, periodic=True).hosts > often.step(960, hosts).hosts


def test_short_running_tasks_do_not_pull_the_average_down():
    assert estimator(ran=[600], running=[900]).runtimes.corrected_mean(960.0) == 600


def test_before_any_task_has_finished_nothing_is_known_but_how_long_the_first_runs():
    assert estimator().step(0, ONE).hosts == 0
    assert estimator().step(0, []).hosts == 1
    assert estimator(running=[300]).step(1200, ONE, periodic=True).hosts > 0


@pytest.mark.parametrize(
    ("preset", "there", "bought"),
    [
        (ALL_FILLED, [Hosts(1, 300, 7200)], 127),
        (ALL, [Hosts(1, 300, 7200)], 0),  # as printed: no new ones beyond half of the tasks
        (ALL, [], 1),  # but one must be there
    ],
)
def test_long_tasks_get_hosts_for_half_of_them(preset, there, bought):
    advice = estimator(preset, ran=[5400]).step(5700, there)
    assert advice.hosts == bought
    assert "so that each runs two tasks at least" in advice.reason


def test_the_table_of_2011_counts_half_of_what_the_first_hosts_leave():
    made = estimator(PaperPreset(name="all", beside_hint=True, beyond_half="fill"))
    first = made.first(100).hosts
    for _ in range(first):
        made.runtimes.start(300.0)
    made.runtimes.finish(300.0, 5400)
    assert first + made.step(5700, [Hosts(first, 300, 7200)]).hosts == 178


def test_no_more_hosts_than_tasks_wait():
    advice = estimator(ALL_FILLED, 10, ran=[3000], running=[3300] * 7).step(3300, [Hosts(1, 300, 3600)])
    assert advice.hosts == 2
    assert advice.reason.endswith("because no more tasks wait")
    assert estimator(tasks=1, ran=[10]).step(400, ONE).hosts == 0, "all is done"


@pytest.mark.parametrize(
    ("preset", "ran", "expected"),
    [(CONSERVATIVE, 100, False), (CONSERVATIVE, 220, True), (FRUGAL, 100, False), (FRUGAL, 260, False)],
)
def test_who_goes_on_when_the_paid_time_is_over(preset, ran, expected):
    made = estimator(preset, 20, ran=[220] * 16, running=[3600 - ran])
    assert host_goes_on(made, 3600, ran, [Hosts(3, 600, 4500)], preset, 20) is expected


@pytest.mark.parametrize("preset", PREFERENCES.values())
def test_the_last_host_always_goes_on(preset):
    assert host_goes_on(estimator(preset, ran=[220], running=[3500]), 3600, 100, [], preset)


def test_a_task_that_no_other_host_has_time_for_goes_on():
    long = estimator(ran=[5400], running=[3000])
    assert host_goes_on(long, 3600, 600, [Hosts(5, 0, 7200)]), "longer than a unit: never cut at its end"
    frugal = estimator(FRUGAL, ran=[220] * 30, running=[600])
    assert host_goes_on(frugal, 3600, 3000, [Hosts(5, 300, 5000)], FRUGAL)


def test_by_the_rules_of_2008_every_host_ends_at_its_unit():
    made, others = estimator(CONSERVATIVE_2008, ran=[220], running=[3300]), [Hosts(3, 600, 4500)]
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
    made = estimator(preset, tasks, ran=runtimes)
    advice = made.step(3000, [Hosts(there, 300, 3600)] if there else [])
    assert 0 <= advice.hosts <= max(1, tasks // 2 - there)
    assert advice.hosts <= more


@pytest.mark.parametrize(
    ("field", "wrong"),
    [*(("creation_ratio", each) for each in (-0.1, 1.1)), ("increase_ratio", 2.0)]
    + [("certainty", each) for each in (0.5, 1.0)],
)
def test_presets_that_cannot_be(field, wrong):
    with pytest.raises(BudgetError):
        Preset(name="x", **{field: wrong})


@pytest.mark.parametrize("startup", [60, -1])
def test_terms_that_leave_no_time(startup):
    with pytest.raises(BudgetError):
        HostTerms(unit=60, startup=startup)
