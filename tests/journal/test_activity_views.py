"""Attempts in sums, from a journal that a broker has written."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor import api
from adaptor.api import MeasuredView, TaskInput, Totals
from adaptor.errors import UsageError
from adaptor.journal.activity_views import (
    donation_of_bag,
    donation_of_site,
    histogram,
    jobs_of_site,
    measured,
)
from adaptor.journal.queries import answer
from adaptor.model import PilotState
from adaptor.protocol.messages import Leaving
from adaptor.resources import OwnNeeds
from adaptor.scheduling.donation_facts import DonatedNode
from tests.scheduling.broker_world import Player, World


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


def test_a_task_that_its_user_cancelled_was_not_cut_by_its_pilot(world: World) -> None:
    bag = world.submit(1)
    player = world.join("w")
    world.now += 5
    world.broker.cancel(bag)
    world.commit()
    world.report(player)
    (span,) = activity(world).spans
    assert span.use == "cancelled"


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


TOTALS = Totals(requests=1, paid=0.0, used=0.0, wasted=0.0, turnaround=None, first_result=None)


def after(world: World, *tasks: TaskInput) -> MeasuredView:
    """Of a bag of these tasks, each of which has taken ten seconds longer than the one before."""
    bag = world.open()
    world.append(bag, "a", tasks)
    player = world.join("w", processors=1)
    for number in range(len(tasks)):
        world.finish(player, took=10.0 * (number + 1))
    return measured(world.journal.connection, bag, TOTALS)


def test_all_tasks_of_a_bag_of_one_size_count(world: World) -> None:
    seen = after(world, TaskInput("x"), TaskInput("x"))
    assert (seen.done, seen.wall, seen.longest, seen.first_tr) == (2, 30.0, 20.0, 10_000.0)


def test_tasks_with_needs_of_their_own_do_not(world: World) -> None:
    seen = after(world, TaskInput("x"), TaskInput("x", needs=OwnNeeds(time=5.0)), TaskInput("x"))
    assert (seen.done, seen.wall, seen.longest) == (2, 40.0, 30.0)
    assert seen.first_tr is None, "it was not the bag that the first request was for"


def test_an_unknown_bag(world: World) -> None:
    with pytest.raises(UsageError, match="there is no bag 9"):
        measured(world.journal.connection, 9, TOTALS)


def donated(world: World, id: str) -> Player:
    return world.join(id, processors=2, donated=DonatedNode(since=world.now))


def end(world: World, player: Player, state: PilotState, after: float, yielded: float | None = None) -> None:
    world.journal.update_pilot(
        player.pilot,
        state=state,
        job="1",
        started=world.now - after,
        ended=world.now,
        end_reason="",
        yielded=yielded,
    )


def test_no_figures_where_no_node_was_used(world: World) -> None:
    bag = world.submit(1)
    world.finish(world.join("w"))
    assert donation_of_bag(world.journal.connection, bag) is None
    assert donation_of_site(world.journal.connection, "site", world.now) is None


def test_held_used_and_lost_time_and_how_fast_nodes_were_reclaimed(world: World) -> None:
    bag = world.submit(6)
    for number, (took, yielded) in enumerate([(10.0, 0.5), (20.0, 1.5), (30.0, None)]):
        player = donated(world, f"w{number}")
        world.finish(player, took=took)
        world.now += 5
        world.leave(player, Leaving.SIGNAL)
        end(world, player, PilotState.PREEMPTED, took + 5, yielded)
    still = donated(world, "there")
    world.now += 100
    end(world, still, PilotState.RUNNING, 100)
    world.journal.connection.execute("UPDATE pilot SET ended = NULL WHERE state = 'running'")
    seen = donation_of_site(world.journal.connection, "site", world.now)
    assert seen is not None
    assert seen.held == pytest.approx(2 * (15 + 25 + 35 + 100), abs=0.1)
    assert (seen.nodes, seen.donations, seen.reclaims) == (1, 4, 3)
    assert (seen.latency, seen.slowest) == (1.0, 1.5)
    # Of the two tasks of each node one finished and one, or its successor, lost its node.
    assert seen.used == pytest.approx(60, abs=0.1)
    assert seen.lost > 0
    of_bag = donation_of_bag(world.journal.connection, bag)
    assert of_bag is not None
    assert (of_bag.used, of_bag.lost) == (seen.used, seen.lost)
    assert of_bag.held == seen.used + seen.lost
