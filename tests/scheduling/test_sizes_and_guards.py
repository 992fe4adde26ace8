"""Tasks of several sizes in bags that are open, paused, limited, or whose tasks run after others."""

from __future__ import annotations

import pytest

from adaptor.api import TaskInput
from adaptor.guard_rails import MostFails, TimeLimit
from adaptor.protocol.messages import Ending, Hello, Report
from adaptor.resources import OwnNeeds
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.task_sizes import MOST
from adaptor_simulation.worker import Attempt
from tests.scheduling.broker_world import Player, World
from tests.scheduling.test_task_sizes import bag, pilot, scene

GIB = 1 << 30


def demanded(world: World) -> dict[int, int]:
    """By processors of a task: how many wait."""
    return {demand.task.processors: demand.waiting for demand in world.broker.demands("site")}


def inputs(*cpus: int, **links: list[int | str]) -> list[TaskInput]:
    return [TaskInput("x", needs=OwnNeeds(cpus=each), **links) for each in cpus]


def worker(world: World, name: str, gib: int = 1) -> Player:
    player = world.join(name, processors=8)
    player.memory = gib * GIB
    world.greet(player)
    return player


@pytest.mark.parametrize("crash", [False, True])
def test_tasks_that_join_an_open_bag_make_classes_of_their_sizes(world: World, crash: bool) -> None:
    id = world.open()
    world.append(id, "a", [TaskInput("x"), *inputs(2, 2)], crash=crash)
    assert demanded(world) == {1: 1, 2: 2}
    world.append(id, "b", inputs(4, 1, 2), crash=crash)
    assert demanded(world) == {1: 2, 2: 3, 4: 1}
    world.restart()
    assert demanded(world) == {1: 2, 2: 3, 4: 1}


def test_an_open_bag_has_few_classes_however_many_sizes_join_it(world: World) -> None:
    id = world.open()
    for number in range(40):
        needs = OwnNeeds(cpus=number + 1, memory=(40 - number) * GIB)
        world.append(id, str(number), [TaskInput("x", needs=needs)])
    assert len(world.broker.state.bags[id].lines) == MOST + 1
    assert sum(demand.waiting for demand in world.broker.demands("site")) == 40


def test_a_paused_bag_asks_for_none_of_its_sizes(world: World) -> None:
    id = world.open()
    world.append(id, "a", inputs(1, 2, 4))
    world.broker.pause(id)
    assert demanded(world) == {}
    assert not any(player.running for player in [worker(world, "w")])
    world.broker.resume(id, world.now)
    assert demanded(world) == {1: 0, 2: 0, 4: 0}, "all have started"


def test_tasks_that_wait_for_others_are_in_no_line(world: World) -> None:
    id = world.open()
    world.append(id, "a", [TaskInput("x"), *inputs(4, after=[0])])
    assert demanded(world) == {1: 1}
    player = worker(world, "w")
    world.finish(player)
    assert [key.task for key in player.running] == [1]


def test_what_max_running_leaves_goes_to_the_sizes_in_their_turn() -> None:
    workers = scene()
    made = bag(12, {task: OwnNeeds(cpus=2) for task in range(2, 10)}, max_running=3)
    workers.add_bag(made, lambda _key, _site: Attempt(5.0), 0.0)
    assert together(workers.broker) == {1: 3, 2: 0}, "the next tasks of the file need one processor"
    workers.start(pilot(1, 16), 0.0)
    ran = 0
    for second in range(100):
        workers.advance(float(second))
        running = sum(map(len, made.live.values()))
        ran = max(ran, running)
        assert running <= 3
        assert sum(together(workers.broker).values()) <= 3
        if made.ended:
            break
    assert (ran, made.ended) == (3, True)


def together(broker) -> dict[int, int | None]:
    return {demand.task.processors: demand.together for demand in broker.demands("here")}


def test_growth_counts_towards_no_limit_on_failures(world: World) -> None:
    id = world.submit(30, memory=GIB, on_oom=2.0, max_fails=MostFails(tasks=1), canary="yes")
    player = worker(world, "w", gib=64)
    for _ in range(25):
        world.now += 1.0
        smallest = min(player.running, key=lambda key: size_of(made(world, id), key.task))
        player.end(smallest, Ending.OUT_OF_MEMORY, world.now)
        player.start(world.cpus, world.now)
        world.report(player)
    assert not made(world, id).guard.paused
    assert made(world, id).failures == 0


def size_of(known: Bag, task: int) -> int:
    return known.sizes.of(task).memory or 0


def made(world: World, id: int) -> Bag:
    return world.broker.state.bags[id]


def test_a_time_limit_in_parts_goes_by_the_time_of_the_task_itself() -> None:
    broker = scene().broker
    needs = {0: OwnNeeds(time=100.0), 1: OwnNeeds(cpus=2)}
    broker.add_bag(bag(3, needs, timeout=TimeLimit(part=3.0), time=10.0), 0.0)
    hello = Hello(pilot=1, node="n", pid=1, version="1", processors=4, memory=GIB, deadline=9e4)
    broker.hello("w", hello, "here", 0.0)
    broker.report("w", Report(free_processors=4, free_memory=GIB), 0.0)
    _, drafts = broker.drain()
    limits = {lease.key.task: lease.timeout for lease in drafts["w"].leases}
    assert limits == {0: 300.0, 1: None, 2: None}, "the others have that of their bag"
