"""Bags that run are changed, and a change that makes no sense changes nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from adaptor import api
from adaptor.guard_rails import TimeLimit
from adaptor.model import Request
from adaptor.resources import OwnNeeds, TaskSize
from tests.daemon.client.test_bags import Daemon, play


@pytest.fixture
def daemon(tmp_path: Path) -> Daemon:
    return Daemon(tmp_path / "state")


def test_what_a_user_has_learned_of_a_bag_is_said_while_it_runs(daemon: Daemon) -> None:
    async def scene() -> None:
        bag = await daemon.open(4)
        state = daemon.core.broker.state
        state.learner(bag, "here")
        deadline = time.time() + 3600
        change = api.ChangeOptions(
            [bag], time=90.0, timeout=TimeLimit(seconds=600.0), deadline=deadline, sites=("here",)
        )
        assert await daemon.ask(change) == [bag]
        spec = daemon.core.journal.bag_spec(bag)
        assert (spec.time, spec.deadline, spec.sites) == (90.0, deadline, ("here",))
        assert state.learner(bag, "here").estimate == 90.0
        assert bag in state.alone, "a bag with a deadline pays for its own pilots"

    play(scene)


def test_unfinished_tasks_need_something_else_from_now_on(daemon: Daemon) -> None:
    async def scene() -> None:
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

    play(scene)


def test_needs_that_no_request_holds_change_nothing(daemon: Daemon) -> None:
    async def scene() -> None:
        bag = await daemon.open(2)
        failure = await daemon.failure(api.ChangeOptions([bag], priority=7, needs=OwnNeeds(cpus=3)))
        assert failure.usage
        assert "tasks of 3 cpus fit into no request: max_proc is 2; nothing is changed" in failure.message
        known = daemon.core.broker.state.bags[bag]
        assert (known.spec.priority, known.sizes.of(0)) == (0, TaskSize())

    play(scene)


def test_a_budget_is_changed_for_all_bags_or_for_none(daemon: Daemon) -> None:
    async def scene() -> None:
        first, second = await daemon.open(4), await daemon.open(4)
        assert await daemon.ask(api.ChangeOptions([first, second], budget=5.0)) == [first, second]
        assert {first, second} <= daemon.core.broker.state.alone
        ledger = daemon.core.treasury.ledger
        ledger.reserve(1, "here", Request(2, 3600, 60), "explicit", {second: 1}, daemon.core.now())
        failure = await daemon.failure(api.ChangeOptions([first, second], budget=1.0))
        assert "used or reserved already" in failure.message
        budgets = [ledger.budget_of(bag) for bag in (first, second)]
        assert [each and each.budget.amount for each in budgets] == [5_000_000, 5_000_000]

    play(scene)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sites": ("far",)}, "there is no site 'far'"),
        ({"deadline": 1.0}, "in the past"),
        ({"time": 900.0, "timeout": TimeLimit(seconds=60.0)}, "--timeout 1m would end tasks"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(
    daemon: Daemon, options: dict[str, object], message: str
) -> None:
    async def scene() -> None:
        bag = await daemon.open(4)
        before = daemon.core.journal.bag_spec(bag)
        failure = await daemon.failure(api.ChangeOptions([bag], **options))  # type: ignore[arg-type]
        assert message in failure.message
        assert daemon.core.journal.bag_spec(bag) == before

    play(scene)
