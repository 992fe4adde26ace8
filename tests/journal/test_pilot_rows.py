"""Pilots as rows: their intents, their ends, and what attempts held of them."""

from __future__ import annotations

import pytest

from adaptor.budget.accounting.cost_shares import Use
from adaptor.journal.pilot_rows import (
    EndedPilot,
    ended_pilots,
    held_by_attempts,
    pilot_waits,
    pilots_in_system,
    started_in,
    submitted_since,
    uses_of,
)
from adaptor.model import AttemptOutcome, CraftedRequest, PilotState, Request
from adaptor.protocol.messages import AttemptKey, Leaving
from tests.scheduling.broker_world import World


def end(world: World, pilot: int, state: PilotState, started: float | None, ended: float | None) -> None:
    world.journal.update_pilot(pilot, state=state, job="1", started=started, ended=ended, end_reason="")


def test_an_intent_is_in_the_system_with_a_tag_of_its_own(world: World) -> None:
    crafted = CraftedRequest(Request(3, 60), 5.0, 1, "because")
    first = world.journal.add_pilots("here", "tag-", [crafted], 7.0, bag=4)[0]
    second = world.journal.add_pilots("there", "tag-", [crafted], 8.0, node="n1")[0]
    one, two = world.journal.read(pilots_in_system)
    assert (one.tag, one.bag, one.node, one.p, one.tr) == (f"tag-{first}", 4, "", 3, 60)
    assert (two.tag, two.bag, two.node, two.submitted) == (f"tag-{second}", None, "n1", 8.0)
    assert one.state == PilotState.SUBMITTING.value
    end(world, first, PilotState.COMPLETED, 9.0, 10.0)
    assert [row.id for row in world.journal.read(pilots_in_system)] == [second]


def test_when_requests_were_sent_with_refused_ones_and_without_donated_nodes(world: World) -> None:
    for site, at, node in (("here", 5.0, ""), ("here", 7.0, ""), ("here", 8.0, "n1"), ("there", 8.0, "")):
        crafted = CraftedRequest(Request(1, 60), None, 1, "")
        pilot = world.journal.add_pilots(site, "tag-", [crafted], at, node=node)[0]
        end(world, pilot, PilotState.REFUSED, None, at)
    assert world.journal.read(submitted_since, "here", 5.0) == [7.0]
    assert world.journal.read(submitted_since, "here", 4.0) == [5.0, 7.0]


def test_only_the_last_waits_of_a_site_the_oldest_first(world: World) -> None:
    for number in range(4):
        crafted = CraftedRequest(Request(1, 60), float(number), 1, "")
        pilot = world.journal.add_pilots("here", "tag-", [crafted], 0.0)[0]
        state = PilotState.REFUSED if number == 3 else PilotState.COMPLETED
        end(world, pilot, state, number + 0.5, number + 1.0)
    world.journal.add_pilots("here", "tag-", [CraftedRequest(Request(1, 60), 9.0, 1, "")], 0.0)
    assert [wait.predicted_start for wait in world.journal.read(pilot_waits, "here", 2)] == [1.0, 2.0]
    assert world.journal.read(pilot_waits, "there") == []


def test_the_times_of_an_ended_pilot_are_the_schedulers(world: World) -> None:
    player = world.join("w")
    assert ended_pilots(world.journal.connection, [player.pilot]) == {}
    end(world, player.pilot, PilotState.CANCELLED, 100.0, 160.0)
    assert ended_pilots(world.journal.connection, [player.pilot]) == {player.pilot: EndedPilot(100.0, 160.0)}


def test_a_pilot_that_never_ran_ended_when_it_was_submitted(world: World) -> None:
    player = world.join("w")
    end(world, player.pilot, PilotState.REFUSED, None, None)
    assert ended_pilots(world.journal.connection, [player.pilot]) == {
        player.pilot: EndedPilot(None, world.now)
    }


def test_where_the_scheduler_lost_its_record_the_workers_reports_count(world: World) -> None:
    world.submit(1)
    player = world.join("w")
    begin = world.now
    world.finish(player, took=30)
    end(world, player.pilot, PilotState.VANISHED, None, begin + 500)
    (found,) = ended_pilots(world.journal.connection, [player.pilot]).values()
    assert (found.started, found.ended) == (pytest.approx(begin), pytest.approx(begin + 30))


def test_what_attempts_held_by_bag_and_outcome(world: World) -> None:
    narrow, wide = world.submit(2, retries=0), world.submit(1, cpus=2)
    player = world.join("w", processors=4)
    world.finish(player, AttemptKey(narrow, 0, 1), took=10)
    world.finish(player, AttemptKey(narrow, 1, 1), exit_code=1, took=5)
    world.leave(player, Leaving.SIGNAL)
    db = world.journal.connection
    held = {(each.bag, each.outcome): each.seconds for each in held_by_attempts(db, "1", ())}
    assert held == {
        (narrow, AttemptOutcome.DONE): pytest.approx(10),
        (narrow, AttemptOutcome.FAILED): pytest.approx(15),
        (wide, AttemptOutcome.LOST): pytest.approx(2 * 15),
    }
    uses = uses_of(db, player.pilot)
    assert uses[narrow] == Use(useful=pytest.approx(10), wasted=pytest.approx(15))
    assert uses[wide] == Use(useful=0, wasted=pytest.approx(30))


def test_attempts_by_the_pilot_in_which_they_were_started(world: World) -> None:
    bag = world.submit(2)
    one, two = world.join("one"), world.join("two")
    keys = [AttemptKey(bag, 0, 1), AttemptKey(bag, 1, 1), AttemptKey(bag, 0, 9)]
    assert started_in(world.journal.connection, keys) == {
        (one.pilot, "site"): [keys[0]],
        (two.pilot, "site"): [keys[1]],
    }
