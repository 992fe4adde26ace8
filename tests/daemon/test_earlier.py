"""What a daemon knows of a new bag by the earlier ones, and what it forgets."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from adaptor import api
from adaptor.api import BagInput, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.daemon.earlier import Earlier
from adaptor.journal.kind_rows import insert_records
from adaptor.protocol.messages import Ending, Report, Result
from adaptor.resources import Node
from adaptor.scheduling.bag import Bag
from tests.daemon.budgeted_site import steps
from tests.daemon.client.asked_daemon import Daemon
from tests.daemon.lived_bags import begin, end_pilots, forget, hear, keeper, leased
from tests.new_bag import NewBag

MIB = 1 << 20


def submit(daemon: Daemon, tasks: int = 4, command: str = "./fit {}", **options: Any) -> int:
    spec = BagSpec(**{"name": "b", "cwd": "/w", "output": "/nowhere/{bag}", "environment": {}, **options})
    bag = BagInput(spec=spec, tasks=[TaskInput(command.format(number)) for number in range(tasks)])
    return asyncio.run(daemon.submit(NewBag(bag))).bag


def run(daemon: Daemon, wall: float, *, peak: int = 0, most: int = 1000) -> None:
    """A pilot runs the waiting tasks, each for these seconds, and ends."""
    site = daemon.fake
    pilot = begin(site)
    worker = f"w{pilot}"
    while (keys := leased(site, worker)) and most > 0:
        begun = time.time() - wall
        done = [
            Result(key=key, ending=Ending.EXITED, started=begun, wall=wall, exit_code=0, peak_memory=peak)
            for key in keys
        ]
        hear(site, worker, Report(started=keys), Report(results=done, free_processors=2, free_memory=1 << 30))
        most -= len(keys)
    if not leased(site, worker):
        end_pilots(site, pilot)


def bag_of(daemon: Daemon, number: int) -> Bag:
    found: Bag = daemon.core.broker.state.bags[number]
    return found


def estimate(daemon: Daemon, number: int) -> float:
    return float(daemon.core.broker.state.learner(number, "here").estimate)


def test_a_second_bag_of_a_program_is_taken_to_run_as_the_first(daemon: Daemon) -> None:
    first = submit(daemon)
    assert (estimate(daemon, first), bag_of(daemon, first).earlier) == (60, {})
    run(daemon, 7.0)
    second = submit(daemon)
    earlier = bag_of(daemon, second).earlier["here"]
    assert (earlier.kind, earlier.tasks, earlier.low, earlier.high) == ("fit", 4, 7.0, 7.0)
    assert estimate(daemon, second) == 7.0
    (demand,) = daemon.core.broker.demands("here")
    assert demand.times.earlier == earlier
    assert demand.times.told is None
    assert daemon.fake.told("earlier") == ["4 earlier tasks of fit took 7s"]


def test_what_its_user_says_counts_first(daemon: Daemon) -> None:
    submit(daemon)
    run(daemon, 7.0)
    assert estimate(daemon, submit(daemon, time=30.0)) == 30.0


def test_another_program_is_not_known(daemon: Daemon) -> None:
    submit(daemon)
    run(daemon, 7.0)
    other = submit(daemon, command="./other {}")
    assert (bag_of(daemon, other).earlier, estimate(daemon, other)) == ({}, 60)
    named = submit(daemon, kind="fit")
    assert bag_of(daemon, named).earlier == {}


def test_a_restart_knows_it_too(daemon: Daemon) -> None:
    submit(daemon)
    run(daemon, 7.0)
    second = submit(daemon)
    before = bag_of(daemon, second).earlier
    daemon.fake.restart()
    assert bag_of(daemon, second).earlier == before
    assert estimate(daemon, second) == 7.0
    daemon.core.recover()
    assert bag_of(daemon, second).earlier == before


def test_a_bag_that_waits_learns_from_one_that_ends(daemon: Daemon) -> None:
    submit(daemon)
    second = submit(daemon, after=(1,))
    assert bag_of(daemon, second).earlier == {}
    run(daemon, 7.0, most=4)
    assert bag_of(daemon, second).earlier["here"].tasks == 4
    assert estimate(daemon, second) == 7.0


def test_a_bag_learns_from_one_that_is_still_at_work(daemon: Daemon) -> None:
    submit(daemon, 100)
    run(daemon, 7.0, most=4)
    assert bag_of(daemon, submit(daemon)).earlier == {}, "four results of a hundred may be the shortest"
    work = bag_of(daemon, 1)
    while work.tally().done < 8:
        (worker,) = daemon.core.broker.state.workers
        keys = leased(daemon.fake, worker)
        done = [Result(key=key, ending=Ending.EXITED, started=1.0, wall=7.0, exit_code=0) for key in keys]
        hear(daemon.fake, worker, Report(results=done, free_processors=2, free_memory=1 << 30))
    earlier = bag_of(daemon, submit(daemon)).earlier["here"]
    assert earlier.tasks >= 8
    assert bag_of(daemon, 2).earlier == {"here": earlier}
    assert work.earlier == {}


def test_the_first_tasks_of_an_open_bag_tell_its_kind(daemon: Daemon) -> None:
    submit(daemon, 2, command="true")
    run(daemon, 7.0)

    async def scene() -> int:
        bag = await daemon.open()
        assert bag_of(daemon, bag).earlier == {}
        await daemon.append(bag, "a", 2)
        return bag

    # Its command is a list, which is of the same kind.
    bag = asyncio.run(scene())
    assert bag_of(daemon, bag).earlier["here"].tasks == 2
    assert daemon.core.journal.bag_spec(bag).kinds[0].name == "true"


def test_memory_is_asked_for_as_earlier_tasks_needed_it(daemon: Daemon) -> None:
    first = submit(daemon, memory="auto")
    assert (bag_of(daemon, first).task.memory, bag_of(daemon, first).spec.on_oom) == (None, 2.0)
    run(daemon, 7.0, peak=200 * MIB)
    second = submit(daemon, memory="auto", on_oom=1.5)
    assert (bag_of(daemon, second).task.memory, bag_of(daemon, second).spec.on_oom) == (256 * MIB, 1.5)
    third = submit(daemon)
    assert (bag_of(daemon, third).task.memory, bag_of(daemon, third).spec.on_oom) == (None, None)
    told = daemon.fake.told("earlier")
    assert told[0] == "mem=auto: no earlier task of its kind was measured, so no memory is asked for"
    assert told[2] == "mem=auto: 256M for each task, as earlier ones needed"


def test_no_more_memory_is_asked_for_than_a_node_has(daemon: Daemon) -> None:
    submit(daemon)
    run(daemon, 7.0, peak=3000 * MIB)
    daemon.fake.backend.node_sizes = (Node(name="n", processors=4, memory=3500 * MIB),)
    steps(daemon.fake)
    daemon.fake.state.memory.read(daemon.fake.backend.queue_state())
    assert bag_of(daemon, submit(daemon, memory="auto")).task.memory == 3500 * MIB


def test_a_kind_whose_tasks_run_a_thousand_times_longer_is_told_of_and_no_longer_counts(
    daemon: Daemon,
) -> None:
    submit(daemon)
    run(daemon, 2.0)
    second = submit(daemon, 40)
    run(daemon, 2000.0, most=4)
    assert estimate(daemon, second) == 2000.0
    told = daemon.fake.told("earlier")[1]
    assert told.startswith("the first ")
    assert told.endswith(
        "tasks of bag 2 took 33m 20s on average, but 4 earlier tasks of fit took 2s: these no longer count"
    )


def test_a_kind_that_stays_the_same_is_not_told_of(daemon: Daemon) -> None:
    for wall in (2.0, 4.0, 3.0):
        submit(daemon)
        run(daemon, wall)
    assert not [text for text in daemon.fake.told("earlier") if "no longer" in text]


def test_a_forgotten_bag_has_taught_nothing(daemon: Daemon) -> None:
    first = submit(daemon)
    run(daemon, 7.0)
    forget(daemon.fake, first)
    assert bag_of(daemon, submit(daemon)).earlier == {}


def test_a_bag_that_became_old_has(daemon: Daemon) -> None:
    submit(daemon)
    run(daemon, 7.0)
    house = keeper(daemon.fake, keep=0.0)
    asyncio.run(house._forget_old(lambda: True))
    assert asyncio.run(daemon.ask(api.GetBags())).bags == []
    assert bag_of(daemon, submit(daemon)).earlier["here"].tasks == 4


def test_a_site_that_is_not_to_remember_keeps_and_uses_nothing(daemon: Daemon) -> None:
    submit(daemon)
    run(daemon, 7.0)
    core = daemon.core
    core.terms["here"] = msgspec.structs.replace(core.terms["here"], remember=False)
    assert bag_of(daemon, submit(daemon)).earlier == {}
    rows = "SELECT COUNT(*) FROM kind"
    assert core.journal.connection.execute(rows).fetchone() == (1,)
    Earlier(core.journal, core.terms)  # as the next daemon makes it
    assert core.journal.connection.execute(rows).fetchone() == (0,)
    run(daemon, 7.0)
    assert core.journal.connection.execute(rows).fetchone() == (0,)


def test_a_plan_tells_what_the_bag_would_be_told(daemon: Daemon) -> None:
    from adaptor.daemon.client.plans import read_plan
    from adaptor.kinds.recognising import kinds_of

    submit(daemon)
    run(daemon, 7.0, peak=200 * MIB)
    spec = BagSpec(name="b", cwd="/w", output="/nowhere", environment={}, memory="auto")
    spec = msgspec.structs.replace(spec, kinds=kinds_of(spec, [TaskInput("./fit 3")]))
    found = asyncio.run(read_plan(daemon.fake.running, api.GetPlan(spec, 12)))
    assert found.earlier == [
        "4 earlier tasks of fit took 7s",
        "mem=auto: 256M for each task, as earlier ones needed",
    ]
    assert {each.tr < 60 + 12 * 7 for each in found.requests} == {True}
    unknown = BagSpec(name="b", cwd="/w", output="/nowhere", environment={})
    before = asyncio.run(read_plan(daemon.fake.running, api.GetPlan(unknown, 12)))
    assert before.end is not None
    assert found.end is not None
    assert found.end.high - found.now < before.end.high - before.now
    paying = asyncio.run(read_plan(daemon.fake.running, api.GetPlan(spec, 12, 10.0)))
    assert found.choices == [], "nobody has set a price"
    fastest = paying.choices[-1]
    assert fastest.processors == {"here": 4}
    assert fastest.seconds.value < 60, "earlier tasks took 7 s"
    assert fastest.seconds.high > 2 * fastest.seconds.value, "of another bag"
    assert not paying.known, "4 tasks"


def test_a_retried_bag_is_counted_once(daemon: Daemon) -> None:
    bag = submit(daemon)
    run(daemon, 7.0)
    with daemon.core.journal.transaction() as db:
        insert_records(db, bag, ["here"], daemon.core.now())
    assert bag_of(daemon, submit(daemon)).earlier["here"].tasks == 4
