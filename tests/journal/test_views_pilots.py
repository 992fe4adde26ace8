"""What pilots held, and what of it became results."""

from __future__ import annotations

import pytest

from adaptor.journal.views import pilots
from adaptor.model import PilotState
from tests.journal.test_views import MANY, limit_parameters
from tests.scheduling.broker_world import Player, World


def runs(world: World, player: Player, started: float, ended: float | None = None) -> None:
    state = PilotState.RUNNING if ended is None else PilotState.COMPLETED
    world.journal.update_pilot(
        player.pilot, state=state, job="1", started=started, ended=ended, end_reason=""
    )


def test_a_pilot_that_runs_has_held_its_processors_until_now(world: World) -> None:
    world.submit(1, cpus=2)
    player = world.join("w", processors=3)
    begin = world.now
    runs(world, player, begin)
    world.finish(player, took=10)
    (record,) = pilots(world.journal.connection, "site = ?", ("site",), begin + 30)
    assert (record.used, record.wasted) == (pytest.approx(2 * 10), pytest.approx(3 * 30 - 20))


def test_processors_that_were_given_back_are_not_held(world: World) -> None:
    player = world.join("w", processors=4)
    runs(world, player, world.now, world.now + 100)
    world.journal.note_freed(player.pilot, 3, world.now + 20)
    (record,) = pilots(world.journal.connection, "state = 'completed'", (), world.now + 1e6)
    assert (record.used, record.wasted) == (0, pytest.approx(100 + 3 * 20))


def test_only_the_chosen_pilots_however_many_there_are(world: World) -> None:
    player = world.join("w")
    with world.journal.transaction() as db:
        db.executemany(
            "INSERT INTO pilot (site, tag, state, p, tr, submitted, reason)"
            " VALUES ('there', ?, 'completed', 1, 1, 0, '')",
            ((str(number),) for number in range(MANY)),
        )
    db = world.journal.connection
    limit_parameters(db)
    assert len(pilots(db, "site = ?", ("there",), world.now)) == MANY
    assert [record.id for record in pilots(db, "site = ?", ("site",), world.now)] == [player.pilot]
