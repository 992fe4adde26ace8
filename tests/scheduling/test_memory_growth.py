"""Tasks that run out of memory: tried again with more, up to the largest node, at no charge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from adaptor.journal.recovery import load_bag
from adaptor.model import QueueState
from adaptor.protocol.messages import AttemptKey, Ending, Report
from adaptor.resources import Node
from tests.scheduling.broker_world import Player, World

GIB = 1 << 30


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    made.broker.state.queues["site"] = nodes(4, 6)
    yield made
    made.close()


def nodes(*gib: int) -> QueueState:
    """Nodes of so much memory."""
    found = tuple(Node(name=f"n{number}", processors=8, memory=size * GIB) for number, size in enumerate(gib))
    return QueueState(now=0.0, processors=8 * len(found), nodes=found)


def run_out(world: World, player: Player, key: AttemptKey | None = None, peak_memory: int = 0) -> None:
    world.now += 1.0
    ended = key or next(iter(player.running))
    player.end(ended, Ending.OUT_OF_MEMORY, world.now, peak_memory=peak_memory)
    player.start(world.cpus, world.now)
    world.report(player)


def worker(world: World, name: str, gib: int) -> Player:
    player = world.join(name, processors=8)
    player.memory = gib * GIB
    world.greet(player)
    return player


def ends(world: World) -> list[tuple[str, str | None]]:
    rows = world.journal.connection.execute(
        "SELECT outcome, error FROM attempt WHERE outcome IS NOT NULL ORDER BY task, number"
    )
    return list(rows)


def memory(world: World, bag: int, task: int = 0) -> int | None:
    return load_bag(world.journal, bag).sizes.of(task).memory


def test_a_task_gets_more_memory_until_the_largest_node_has_no_more(world: World) -> None:
    bag = world.submit(1, memory=2 * GIB, on_oom=2.0, retries=5)
    player = worker(world, "w", 16)
    for _ in range(3):
        run_out(world, player)
    assert ends(world) == [
        ("out_of_memory", "out of memory at 2G: again with 4G"),
        ("out_of_memory", "out of memory at 4G: again with 6G"),
        ("failed", "out of memory at 6G, the most that a node has for it"),
    ]
    assert world.states(bag) == ["failed"]


@pytest.mark.parametrize(("peak", "again"), [(1, "2G"), (2, "4G"), (3, "4G")])
def test_a_task_gets_more_than_it_was_seen_to_hold(world: World, peak: int, again: str) -> None:
    """It held more than it had asked for, so that the next step would not be enough either."""
    world.submit(1, memory=GIB, on_oom=2.0)
    run_out(world, worker(world, "w", 16), peak_memory=peak * GIB)
    assert ends(world) == [("out_of_memory", f"out of memory at 1G: again with {again}")]


def test_where_no_node_is_known_yet_a_task_gets_more_all_the_same(world: World) -> None:
    world.broker.state.queues.clear()
    player = worker(world, "w", 4)
    bag = world.submit(1, memory=GIB, on_oom=2)
    run_out(world, player)
    assert memory(world, bag) == 2 * GIB


def test_growth_is_no_retry(world: World) -> None:
    bag = world.submit(1, memory=2 * GIB, on_oom=2.0, retries=0)
    player = worker(world, "w", 16)
    run_out(world, player)
    world.finish(player)
    assert world.states(bag) == ["done"]
    assert world.journal.connection.execute("SELECT charged FROM task").fetchall() == [(0,)]


def test_without_the_option_it_is_a_failure_like_any_other(world: World) -> None:
    bag = world.submit(1, memory=2 * GIB, retries=1)
    player = worker(world, "w", 16)
    run_out(world, player)
    assert ends(world) == [("failed", "out of memory at 2G")]
    assert memory(world, bag) == 2 * GIB
    run_out(world, player)
    assert world.states(bag) == ["failed"]


def test_a_bag_that_says_no_memory_is_told_what_its_node_had(world: World) -> None:
    world.submit(1)
    run_out(world, worker(world, "w", 16))
    ((_, error),) = ends(world)
    assert error == "out of memory: ask for memory (all tasks on its node had 16G together)"


def test_a_restart_forgets_no_growth(world: World) -> None:
    bag = world.submit(2, memory=2 * GIB, on_oom=2.0)
    small = worker(world, "small", 2)
    run_out(world, small)
    world.restart()
    assert [memory(world, bag, task) for task in (0, 1)] == [4 * GIB, 2 * GIB]
    assert sorted(demand.task.memory or 0 for demand in world.broker.demands("site")) == [2 * GIB, 4 * GIB]
    world.greet(small)
    world.finish(small)
    assert world.states(bag) == ["waiting", "done"], "there is no room for the larger one"
    world.finish(worker(world, "large", 4))
    assert world.states(bag) == ["done", "done"]


def test_where_the_bag_names_no_memory_the_peak_is_what_grows(world: World) -> None:
    bag = world.submit(1, on_oom=1.5)
    player = worker(world, "w", 16)
    key = next(iter(player.running))
    player.end(key, Ending.OUT_OF_MEMORY, world.now)
    player.unacknowledged[key] = msgspec.structs.replace(player.unacknowledged[key], peak_memory=2 * GIB)
    world.report(player)
    assert memory(world, bag) == 3 * GIB


def test_the_user_is_told_once_for_each_step(world: World) -> None:
    world.submit(3, memory=2 * GIB, on_oom=2.0)
    player = worker(world, "w", 16)
    for key in list(player.running):
        player.end(key, Ending.OUT_OF_MEMORY, world.now)
    world.broker.report(player.id, player_report(player), world.now)
    changes, _ = world.broker.drain()
    assert [each.memory for each in changes.raised] == [4 * GIB] * 3
    assert [each.text for each in changes.raised if each.text] == [
        "task 0 of bag 1 ran out of memory at 2G: again with 4G (on-oom)"
    ]


def player_report(player: Player) -> Report:
    return Report(results=list(player.unacknowledged.values()), free_processors=0, free_memory=0)
