"""How many slots a bag may ask for now: by A²HA, by its deadline, the same after every restart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.estimation.runtime_sums import Sums
from adaptor.budget.provisioning.hosts import Hosts, HostTerms
from adaptor.budget.provisioning.pacing import Course, advise, terms_for
from adaptor.budget.provisioning.presets import PREFERENCES
from adaptor.experiments.a2ha.buyers import PublishedBuyer

TERMS = HostTerms(unit=3600, startup=300)


def course(
    *,
    finished: int = 0,
    running: int = 0,
    tasks: int = 100,
    runtime: float = 600.0,
    hosts: int = 0,
    ends: float = 3600.0,
    prefer: str | None = None,
    deadline: float | None = None,
    hint: float = 600.0,
) -> Course:
    """Tasks that all take the same time; those that run have just started."""
    sums = Sums(
        finished=finished,
        total=finished * runtime,
        squares=finished * runtime**2,
        running=running,
        starts=0.0,
    )
    there = [Hosts(hosts, 0.0, ends)] if hosts else []
    return Course(
        now=0.0, tasks=tasks, sums=sums, hosts=there, terms=TERMS, hint=hint, prefer=prefer, deadline=deadline
    )


def test_what_is_preferred_says_how_boldly_it_begins() -> None:
    begun = {prefer: advise(course(prefer=prefer)).hosts for prefer in PREFERENCES}
    assert begun["cheap"] < begun["balanced"] < begun["fast"]


def test_the_units_make_the_start_up_a_small_part() -> None:
    assert terms_for(1, 30.0) == HostTerms(unit=360, startup=30.0)
    assert terms_for(3600, 30.0) == HostTerms(unit=3600, startup=30.0)
    assert terms_for(300, 30.0).unit % 300 == 0


@pytest.mark.parametrize("hours", [1, 2, 5, 10])
def test_a_deadline_asks_for_as_many_as_it_needs(hours: int) -> None:
    deadline = hours * 3600.0
    found = advise(course(finished=30, deadline=deadline, prefer="cheap"))
    rounds = (deadline - 300) // 600
    assert found.hosts * rounds >= 70, "the waiting tasks are done in time"
    cheapest = advise(course(finished=30, prefer="cheap")).hosts
    assert found.hosts == cheapest or (found.hosts - 1) * rounds < 70 * 1.6, "with little more than that"


def test_a_deadline_that_cannot_be_kept_is_missed_by_as_little_as_can_be() -> None:
    found = advise(course(finished=30, deadline=500.0))
    assert found.hosts == 70
    assert "cannot be kept" in found.reason


def test_hosts_that_are_there_count_for_the_deadline() -> None:
    alone = advise(course(finished=30, deadline=3600.0)).hosts
    assert advise(course(finished=30, deadline=3600.0, hosts=alone)).hosts == 0


def test_a_bag_whose_tasks_have_all_finished_asks_for_nothing() -> None:
    assert advise(course(finished=100, deadline=10.0)).hosts == 0


@given(
    st.integers(0, 60), st.integers(0, 20), st.integers(0, 30), st.sampled_from([*PREFERENCES, None]),
    st.one_of(st.none(), st.floats(-100, 1e6)), st.floats(1, 1e5),
)  # fmt: skip
def test_never_more_than_wait(
    finished: int, running: int, hosts: int, prefer: str | None, deadline: float | None, runtime: float
) -> None:
    found = advise(
        course(
            finished=finished, running=running, runtime=runtime, hosts=hosts, prefer=prefer, deadline=deadline
        )
    )
    assert 0 <= found.hosts <= 100 - finished
    assert found.reason


@given(st.integers(1, 40), st.sampled_from(["balanced", "fast"]), st.integers(0, 5))
def test_after_a_restart_the_estimator_is_where_it_was(finished: int, prefer: str, hosts: int) -> None:
    """One that lived through every finish says what one says that is made from the sums."""
    living = PublishedBuyer(100, TERMS, PREFERENCES[prefer])
    there = [Hosts(hosts, 0.0, 3600.0)] if hosts else []
    for _ in range(finished):
        living.runtimes.start(0.0)
        living.runtimes.finish(0.0, 600.0)
        living.step(0.0, [])
    made = advise(course(finished=finished, hosts=hosts, prefer=prefer))
    assert made == living.step(0.0, there, periodic=True)
