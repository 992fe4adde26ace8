"""The arithmetic of completions: what slots finish, what follows, and which request helps most."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.crafting.completion.progress import INSTANTS, NEVER, Progress, RequestSet
from adaptor.crafting.situation import Member
from adaptor.runtimes.known import Belief
from tests.examples import examples

ALIKE = Belief(600.0, 600.0, 1.0)
SPREAD = Belief(600.0, 1050.0, 1.0)


def progress(belief: Belief = ALIKE, tasks: int = 100, weight: float = 1.0, pad: float = 0.0) -> Progress:
    return Progress(msgspec.structs.replace(belief, weight=weight), tasks, pad, 0.55)


def done(found: Progress, member: Member, at: float) -> float:
    return found.done([found.curve(member)], at)


def best(found: RequestSet, offers: list[Member], *, alone: bool = False) -> int | None:
    """The number of the offer that shortens the completion most."""
    addition = found.best_addition(offers, 0.4, found.steps, alone=alone)
    return addition and addition[0]


@pytest.mark.parametrize(("at", "tasks"), [(599, 0), (600, 10), (1199, 10), (1200, 20), (3000, 30)])
def test_tasks_that_are_alike_end_together(at: float, tasks: float) -> None:
    """Three of them fit into the request of ten slots."""
    assert done(progress(), Member(0.0, 2000.0, 10), at) == tasks


def test_before_it_starts_and_in_its_pad_a_request_finishes_nothing() -> None:
    found = progress(pad=30.0)
    assert done(found, Member(1000.0, 630.0, 1), 1629.0) == 0
    assert done(found, Member(1000.0, 630.0, 1), 1630.0) == 1
    assert done(found, Member(1000.0, 629.0, 1), 1e6) == 0, "the pad leaves no time for the task"


def test_the_tasks_of_a_running_request_are_as_old_as_they_are() -> None:
    assert done(progress(), Member(0.0, 1000.0, 4, age=500.0), 100.0) == 4


def test_different_tasks_end_one_after_the_other() -> None:
    member = Member(0.0, 6000.0, 10)
    found = progress(SPREAD)
    assert done(found, member, 3000.0) == pytest.approx(45.0)
    assert done(found, member, 6000.0) == pytest.approx(10 * 5400 / 600)
    assert done(found, Member(0.0, 1049.0, 10), 1e6) == 0, "the longest does not fit"


def test_of_different_tasks_that_run_the_older_ends_sooner() -> None:
    """A task of at most 1,050 s that has run for 650 ends after 200 in the mean, and in 400 at most."""
    found, old, young = (
        progress(SPREAD),
        Member(0.0, 6000.0, 10, age=650.0),
        Member(0.0, 6000.0, 10, age=50.0),
    )
    assert done(found, old, 6000.0) == pytest.approx(10 * 5800 / 600)
    assert done(found, young, 6000.0) == pytest.approx(10 * 5500 / 600)
    assert done(found, old, 3000.0) - done(found, young, 3000.0) == pytest.approx(5.0)
    assert done(found, Member(0.0, 200.0, 10, age=650.0), 1e6) == pytest.approx(5.0), "half of them in 200 s"


def test_what_follows_a_request_is_what_could_be_had_now_at_part_of_the_speed() -> None:
    """Ten slots that are free now for an hour, again and again."""
    found = progress(tasks=10_000)
    member = Member(0.0, 3600.0, 10)
    found.foresee([member])
    at_end, later = done(found, member, 3600.0), done(found, member, 36_000.0)
    assert at_end == 60
    assert 60 + 0.2 * 32_400 / 60 < later < 60 + 0.55 * 32_400 / 60, "each again slower than that before"
    assert found.done([found.curve(member)], 36_000.0, 0.3) < later


def test_without_a_request_the_bag_is_never_done() -> None:
    assert RequestSet([progress()], []).ends == [INSTANTS[NEVER]]


def test_a_bag_is_done_when_its_last_task_is() -> None:
    (end,) = RequestSet([progress(tasks=30)], [Member(0.0, 2000.0, 10)]).ends
    assert end == pytest.approx(1800.0, rel=0.006)


def test_no_belief_outweighs_the_others() -> None:
    """The expected completion is the geometric mean."""
    short, long = Belief(60.0, 60.0, 1.0), Belief(6000.0, 6000.0, 1.0)
    both = [progress(belief, tasks=1, weight=0.5) for belief in (short, long)]
    assert RequestSet(both, [Member(0.0, 9000.0, 1)]).cost == pytest.approx(600.0, rel=0.01)


def test_the_first_of_several_requests_holds_the_tasks_of_all_beliefs() -> None:
    """Else what could follow it would speak for it, and no request would be there for long tasks."""
    beliefs = [progress(Belief(mean, mean, 1.0), tasks=10, weight=0.5) for mean in (60.0, 6000.0)]
    short, long = Member(0.0, 600.0, 10), Member(7000.0, 64_800.0, 10)
    for each in beliefs:
        each.foresee([short, Member(0.0, 6000.0, 10)])
    assert best(RequestSet(beliefs, []), [short, long], alone=True) == 0
    assert best(RequestSet(beliefs, []), [short, long]) == 1
    assert best(RequestSet(beliefs, [long]), [short]) == 0


members = st.builds(Member, st.floats(0, 20_000), st.floats(60, 64_800), st.integers(1, 64), st.just(0.0))
believed = st.floats(60, 20_000).flatmap(
    lambda mean: st.floats(1.0, 3.0).map(lambda spread: Belief(mean, mean * spread, 1.0))
)


@examples(200)
@given(
    st.lists(believed, min_size=1, max_size=4),
    st.lists(members, max_size=3),
    st.lists(members, min_size=1, max_size=8),
    st.integers(1, 2000),
    st.lists(members, max_size=4),
)
def test_the_best_addition_is_that_of_all_compared_in_full(
    beliefs: list[Belief], there: list[Member], offers: list[Member], tasks: int, later: list[Member]
) -> None:
    by_belief = [progress(belief, tasks, 1.0 / len(beliefs), pad=30.0) for belief in beliefs]
    for each in by_belief:
        each.foresee(later)
    found = RequestSet(by_belief, there)
    with_each = [RequestSet(by_belief, [*there, offer]) for offer in offers]
    worths = [joined.worth for joined in with_each]
    assert all(worth <= found.worth + 1e-9 for worth in worths), "no request makes the bag later"
    addition = found.best_addition(offers, 0.4, found.steps, alone=True)
    if addition is None:
        assert min(worths) >= found.worth - 0.4 - 1e-6
    else:
        number, steps = addition
        assert math.isclose(worths[number], min(worths), abs_tol=1e-6)
        assert steps == with_each[number].steps
