"""Which bags' ends are forecast anew in a step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.decisions.outlook.endings import INTERVAL, SOON, ToldEnd, bags_ahead
from tests.scheduling.broker_world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def test_a_forecast_is_made_anew_when_it_is_old_or_twice_as_much_is_known(world: World) -> None:
    bag, player = world.submit(20), world.join("w1")

    def due(finished: int, age: float) -> bool:
        told = {bag: ToldEnd(world.now - age, None, finished)}
        return [each.facts.id for each in bags_ahead(world.broker.state, told, world.now)] == [bag]

    assert bags_ahead(world.broker.state, {}, world.now), "it was never made"
    assert not due(0, INTERVAL - 1)
    assert due(0, INTERVAL)
    world.finish(player)
    assert due(0, SOON), "the first task has finished"
    assert not due(0, SOON / 2)
    assert not due(1, SOON)
    for _ in range(3):
        world.finish(player)
    assert due(2, SOON)
    assert not due(3, SOON)
    assert due(4, -1.0), "the clock was set back"
