"""What a user is told of lent time, from the journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.journal.donation_views import donation_of_bag, donation_of_site
from adaptor.model import PilotState
from adaptor.protocol.messages import Leaving
from adaptor.scheduling.donation_facts import DonatedNode
from tests.scheduling.broker_world import Player, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


def lease(world: World, id: str) -> Player:
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


def test_nothing_is_told_where_nothing_was_lent(world: World) -> None:
    bag = world.submit(1)
    world.finish(world.join("w"))
    assert donation_of_bag(world.journal.connection, bag) is None
    assert donation_of_site(world.journal.connection, "site", world.now) is None


def test_lent_used_and_lost_time_and_how_fast_nodes_were_given_back(world: World) -> None:
    bag = world.submit(6)
    for number, (took, yielded) in enumerate([(10.0, 0.5), (20.0, 1.5), (30.0, None)]):
        player = lease(world, f"w{number}")
        world.finish(player, took=took)
        world.now += 5
        world.leave(player, Leaving.SIGNAL)
        end(world, player, PilotState.PREEMPTED, took + 5, yielded)
    still = lease(world, "there")
    world.now += 100
    end(world, still, PilotState.RUNNING, 100)
    world.journal.connection.execute("UPDATE pilot SET ended = NULL WHERE state = 'running'")
    told = donation_of_site(world.journal.connection, "site", world.now)
    assert told is not None
    assert told.held == pytest.approx(2 * (15 + 25 + 35 + 100), abs=0.1)
    assert (told.nodes, told.donations, told.reclaims) == (1, 4, 3)
    assert (told.latency, told.slowest) == (1.0, 1.5)
    # Of the two tasks of each node one finished and one, or its successor, lost its node.
    assert told.used == pytest.approx(60, abs=0.1)
    assert told.lost > 0
    of_bag = donation_of_bag(world.journal.connection, bag)
    assert of_bag is not None
    assert (of_bag.used, of_bag.lost) == (told.used, told.lost)
    assert of_bag.held == told.used + told.lost
