"""Bags that run are changed, and a change that makes no sense changes nothing."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from adaptor import api
from adaptor.api import BagInput, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.daemon.client import steering
from adaptor.guard_rails import EarlySignal, TimeLimit
from adaptor.model import Request
from adaptor.protocol.messages import Report
from adaptor.resources import OwnNeeds, TaskSize
from tests.daemon.client.asked_daemon import Daemon, play
from tests.daemon.lived_bags import hello
from tests.examples import examples
from tests.new_bag import NewBag


async def test_what_a_user_has_learned_of_a_bag_is_said_while_it_runs(daemon: Daemon) -> None:
    bag = await daemon.open(4)
    state = daemon.core.broker.state
    state.learner(bag, "here")
    deadline = time.time() + 3600
    change = api.ChangeOptions(
        [bag],
        api.OptionChanges(time=90.0, timeout=TimeLimit(seconds=600.0), deadline=deadline, sites=("here",)),
    )
    assert await daemon.ask(change) == [bag]
    spec = daemon.core.journal.bag_spec(bag)
    assert (spec.time, spec.deadline, spec.sites) == (90.0, deadline, ("here",))
    assert state.learner(bag, "here").estimate == 90.0
    assert bag in state.alone, "a bag with a deadline pays for its own pilots"


async def test_unfinished_tasks_need_something_else_from_now_on(daemon: Daemon) -> None:
    bag = await daemon.open(4)
    await daemon.run(bag, 0)
    change = api.ChangeOptions([bag], needs=OwnNeeds(cpus=2, memory=1 << 30))
    assert await daemon.ask(change) == [bag]
    for _ in range(2):
        known = daemon.core.broker.state.bags[bag]
        assert sorted(known.waiting) == [1, 2, 3]
        sizes = [known.sizes.of(task) for task in range(4)]
        assert sizes == [TaskSize(), *[TaskSize(processors=2, memory=1 << 30)] * 3]
        daemon.fake.restart()
    told = await daemon.ask(api.GetWhy(None, None, 20, ["needs"]))
    (line,) = told.lines
    assert line.text == f"3 unfinished tasks of bag {bag} changed to cpus 2, mem 1G"


async def test_needs_that_no_request_holds_change_nothing(daemon: Daemon) -> None:
    bag = await daemon.open(2)
    failure = await daemon.failure(
        api.ChangeOptions([bag], api.OptionChanges(priority=7), needs=OwnNeeds(cpus=3))
    )
    assert failure.usage
    assert "tasks of 3 cpus fit into no request: max_proc is 2; nothing is changed" in failure.message
    known = daemon.core.broker.state.bags[bag]
    assert (known.spec.priority, known.sizes.of(0)) == (0, TaskSize())


async def test_a_budget_is_changed_for_all_bags_or_for_none(daemon: Daemon) -> None:
    first, second = await daemon.open(4), await daemon.open(4)
    assert await daemon.ask(api.ChangeOptions([first, second], api.OptionChanges(budget=5.0))) == [
        first,
        second,
    ]
    assert {first, second} <= daemon.core.broker.state.alone
    ledger = daemon.core.treasury.ledger
    ledger.reserve(1, "here", Request(2, 3600, 60), "explicit", {second: 1}, daemon.core.now())
    failure = await daemon.failure(api.ChangeOptions([first, second], api.OptionChanges(budget=1.0)))
    assert "used or reserved already" in failure.message
    budgets = [ledger.budget_of(bag) for bag in (first, second)]
    assert [each and each.budget.amount for each in budgets] == [5_000_000, 5_000_000]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sites": ("far",)}, "there is no site 'far'"),
        ({"deadline": 1.0}, "in the past"),
        ({"time": 900.0, "timeout": TimeLimit(seconds=60.0)}, "--timeout 1m would end tasks"),
    ],
)
async def test_a_change_that_makes_no_sense_is_refused(
    daemon: Daemon, options: dict[str, object], message: str
) -> None:
    bag = await daemon.open(4)
    before = daemon.core.journal.bag_spec(bag)
    failure = await daemon.failure(api.ChangeOptions([bag], api.OptionChanges(**options)))  # type: ignore[arg-type]
    assert message in failure.message
    assert daemon.core.journal.bag_spec(bag) == before


async def test_a_bag_that_has_ended_is_tried_again_with_other_options(daemon: Daemon) -> None:
    spec = BagSpec(
        name="b", cwd="/", output="/x", environment={}, timeout=TimeLimit(seconds=4.0), canary="no"
    )
    bag = (await daemon.submit(NewBag(BagInput(spec=spec, tasks=[TaskInput("x")])))).bag
    await daemon.run(bag, 0, exit_code=1)
    assert daemon.core.broker.state.bags.get(bag) is None
    longer = TimeLimit(seconds=20.0)
    failure = await daemon.failure(api.Retry([bag], needs=OwnNeeds(time=20.0)))
    assert "--timeout 4s would end tasks that take the 20s of --time: write a longer" in failure.message
    both = api.Retry([bag], needs=OwnNeeds(time=20.0), options=api.OptionChanges(timeout=longer, budget=7.0))
    assert await daemon.ask(both) == 1
    for _ in range(2):
        assert daemon.core.broker.state.bags[bag].spec.timeout == longer
        assert daemon.core.journal.bag_spec(bag).timeout == longer
        held = daemon.core.treasury.ledger.budget_of(bag)
        assert held is not None
        assert held.budget.amount == 7_000_000
        daemon.fake.restart()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"begin": 1.0}, "the begin is"),
        (
            {"begin": 4e9, "deadline": 3e9},
            "after its deadline: write an earlier --begin or a later --deadline",
        ),
        ({"sites": ("far",)}, "there is no site 'far'"),
    ],
)
async def test_options_that_make_no_sense_put_nothing_back(
    daemon: Daemon, options: dict[str, object], message: str
) -> None:
    bag = await daemon.open(1)
    await daemon.ask(api.Cancel([bag]))
    failure = await daemon.failure(api.Retry([bag], options=api.OptionChanges(**options)))  # type: ignore[arg-type]
    assert message in failure.message
    assert bag not in daemon.core.broker.state.bags


async def test_workers_get_the_new_options_with_the_next_leases(daemon: Daemon) -> None:
    bag = await daemon.open(3)
    core = daemon.core
    assert core._context(bag).signal is None
    signal = EarlySignal("SIGUSR1", 60.0)
    await daemon.ask(api.ChangeOptions([bag], api.OptionChanges(signal=signal)))
    assert core._context(bag).signal == signal


TOTAL = 11
_SOME = st.none() | st.lists(st.integers(0, TOTAL + 1), max_size=TOTAL)
_STEPS = st.lists(st.tuples(st.sampled_from(["cancel", "retry", "run"]), _SOME), max_size=6)


async def _new_bag(daemon: Daemon, order: str, linked: bool) -> None:
    spec = BagSpec(name="b", cwd="/", output="/x", environment={}, order=order, retries=0)
    tasks = [TaskInput("x", after=(number - 1,) if linked and number % 4 else ()) for number in range(TOTAL)]
    await daemon.submit(NewBag(BagInput(spec=spec, tasks=tasks)))


async def _step(daemon: Daemon, name: str, tasks: list[int] | None) -> object:
    if name == "cancel":
        return await daemon.serve(api.Cancel([1], tasks))
    if name == "retry":
        return await daemon.serve(api.Retry([1], tasks))
    bag = daemon.core.broker.state.bags.get(1)
    first = next(iter(bag.waiting), None) if bag else None
    if first is not None:
        await daemon.run(1, first, exit_code=len(tasks or ()) % 2)
    return first


@given(_STEPS, st.sampled_from(["file", "random"]), st.booleans())
@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_parts_come_to_the_same_as_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, list[int] | None]],
    order: str,
    linked: bool,
) -> None:
    told: dict[int, list[str]] = {}

    def scene_with(at_once: int) -> Callable[[], object]:
        async def scene() -> None:
            daemon = Daemon(tmp_path_factory.mktemp("state"))
            await _new_bag(daemon, order, linked)
            seen: list[object] = []
            for name, tasks in steps:
                seen.append(await _step(daemon, name, tasks))
                seen.append(sorted(await _tasks(daemon)))
                seen.append((await daemon.events(1)).last)
            seen.append(sorted((await daemon.events(1)).tasks, key=lambda each: each.event))
            told[at_once] = [re.sub(r"(started|ended)=[\d.]+|1\d{9}\.\d+", "", repr(each)) for each in seen]
            daemon.core.journal.close()

        return scene

    for at_once in (3, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(steering, "AT_ONCE", at_once)
            play(scene_with(at_once))  # type: ignore[arg-type]
    assert told[3] == told[1000]


async def _tasks(daemon: Daemon) -> list[tuple[int, str]]:
    return [(task.task, task.state) for task in await daemon.ask(api.GetTasks(1))]


async def test_others_are_answered_between_two_parts_and_nothing_starts(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steering, "AT_ONCE", 2)

    await _new_bag(daemon, "file", linked=False)
    cancelling = asyncio.create_task(daemon.ask(api.Cancel([1])))
    seen, broker = set(), daemon.core.broker
    now = daemon.core.now()
    while not cancelling.done():
        await asyncio.sleep(0)
        (view,) = (await daemon.ask(api.GetBags())).bags
        seen.add(view.cancelled)
        if 0 < view.cancelled < TOTAL:
            broker.hello("w", hello(processors=4), "here", now)
            broker.report("w", Report(free_processors=4, free_memory=1 << 30), now)
            assert not broker.state.workers["w"].held
    assert await cancelling == TOTAL
    assert seen >= {2, 4, 6}
    assert await daemon.ask(api.Retry([1])) == TOTAL
    assert broker.state.workers["w"].held
