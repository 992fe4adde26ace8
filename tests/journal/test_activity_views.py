"""Attempts in sums, from a journal that a broker has written."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor import api
from adaptor.journal.activity_views import histogram, jobs_of_site
from adaptor.journal.queries import answer
from adaptor.model import PilotState
from tests.scheduling.broker_world import World


def activity(world: World, **options: int) -> api.Activity:
    pilots = [id for (id,) in world.journal.connection.execute("SELECT id FROM pilot")]
    return answer(world.journal.connection, api.GetActivity(pilots, **options), world.now)


def sums(world: World, bag: int) -> api.TaskSums:
    return answer(world.journal.connection, api.GetTaskSums(bag), world.now)


def test_attempts_one_by_one_and_in_parts_hold_the_same_processor_seconds(world: World) -> None:
    world.submit(12, cpus=2, retries=0)
    player = world.join("w", processors=4)
    for took in (10, 3, 7, 1):
        world.finish(player, took=took)
    world.finish(player, took=5, exit_code=3)
    each = activity(world)
    assert len(each.spans) == 5
    assert {span.use for span in each.spans} == {"result", "failed"}
    binned = activity(world, most=3, bins=7)
    assert binned.spans == []
    for use in ("result", "failed"):
        alone = sum(
            span.processors * ((span.ended or 0) - span.started) for span in each.spans if span.use == use
        )
        together = sum(sum(known.processors) * known.width for known in binned.busy if known.use == use)
        assert together == pytest.approx(alone, rel=0.01, abs=0.1), use


def test_endings_are_counted_with_the_newest_as_the_example(world: World) -> None:
    bag = world.submit(5, retries=0)
    player = world.join("w", processors=1)
    for code in (3, 3, 7, 0):
        world.finish(player, took=1, exit_code=code)
    found = sums(world, bag)
    assert [(each.exit_code, each.count) for each in found.failures] == [(3, 2), (7, 1)]
    newest = found.failures[0]
    assert newest.attempt == 1
    assert newest.ended is not None
    (ended,) = world.journal.connection.execute(
        "SELECT ended FROM attempt WHERE task = ?", (newest.task,)
    ).fetchone()
    assert newest.ended == ended
    assert found.other_failures == 0
    assert sum(each.count for each in found.runtimes) == 1
    assert found.progress[-1].done == 1


@given(st.lists(st.floats(0, 1e6), max_size=300))
def test_a_histogram_has_every_runtime_once(runtimes: list[float]) -> None:
    found = histogram(runtimes)
    assert sum(each.count for each in found) == len(runtimes)
    assert all(one.high == other.low for one, other in itertools.pairwise(found))
    assert all(each.low <= each.high for each in found)


def test_the_latest_bags_are_those_that_run_and_the_last_that_have_ended(world: World) -> None:
    for _ in range(3):
        world.submit(1)
        world.run_to_the_end()
    running = world.submit(1)
    told = answer(world.journal.connection, api.GetLatestBags(ended=2), world.now)
    assert [bag.id for bag in told.bags] == [2, 3, running]


def test_pilots_that_ended_since(world: World) -> None:
    world.submit(1)
    world.run_to_the_end()
    first = world.journal.connection.execute("SELECT MAX(id) FROM pilot").fetchone()[0]
    world.journal.update_pilot(
        first, state=PilotState.COMPLETED, job="17", started=100.0, ended=200.0, end_reason=""
    )
    for since, expected in ((0.0, 1), (200.0, 1), (201.0, 0)):
        question = api.GetPilots(ended=True, since=since)
        told = answer(world.journal.connection, question, world.now)
        assert len([pilot for pilot in told if pilot.id == first]) == expected
    assert jobs_of_site(world.journal.connection, "site", 150.0) == {"17": first}
    assert jobs_of_site(world.journal.connection, "site", 201.0) == {}
