"""Figures of donated nodes."""

from __future__ import annotations

import pytest

from adaptor.journal.activity_views import donation_of_bag, donation_of_site
from adaptor.model import PilotState
from adaptor.protocol.messages import Leaving
from adaptor.scheduling.donation_facts import DonatedNode
from tests.scheduling.broker_world import Player, World


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
