"""Large new bags: the daemon answers others while it reads them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor import api
from adaptor.api import BagInput, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.daemon.client import new_tasks
from adaptor.daemon.client.commands import takes_time
from adaptor.journal.bag_rows import end_of_bag
from adaptor.journal.recovery import load_bag
from adaptor.model import TaskState
from tests.daemon.client.test_bags import Daemon, play

SPEC = BagSpec(name="b", cwd="/", output="/nowhere/{bag}", environment={})
MANY = [TaskInput(["true"], after=[number - 1] if number else []) for number in range(3000)]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path)
    yield daemon
    daemon.core.journal.close()


def test_others_are_answered_while_a_large_bag_is_read_and_it_is_there_once(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, reading = threading.Event(), new_tasks._prepared

    def slowly(spec: BagSpec, tasks: list[TaskInput]) -> new_tasks.NewTasks:
        assert go_on.wait(60)
        return reading(spec, tasks)

    monkeypatch.setattr(new_tasks, "_prepared", slowly)
    question = api.Submit(BagInput(spec=SPEC, tasks=MANY), key="mine")

    async def scene() -> None:
        large = [asyncio.create_task(daemon.ask(question)) for _ in range(2)]
        await asyncio.sleep(0)
        assert (await daemon.ask(api.GetBags())).bags == []
        go_on.set()
        assert {answer.bag for answer in await asyncio.gather(*large)} == {1}
        assert len((await daemon.ask(api.GetBags())).bags) == 1

    play(scene)


def test_a_new_bag_in_memory_is_as_the_journal_has_it(daemon: Daemon) -> None:
    tasks = [TaskInput(["x"], after=[2], after_any=[1]), TaskInput(["x"]), TaskInput(["x"], after_any=[1])]

    async def scene() -> None:
        told = await daemon.ask(api.Submit(BagInput(spec=SPEC, tasks=tasks)))
        made, kept = daemon.core.broker.state.bags[told.bag], load_bag(daemon.core.journal, told.bag)
        assert [made.state(task) for task in range(3)] == [kept.state(task) for task in range(3)]
        assert made.blocked == [0, 2]
        assert made.tally() == kept.tally()
        await daemon.run(told.bag, 1)
        assert made.state(2) in (TaskState.WAITING, TaskState.LEASED)
        await daemon.run(told.bag, 2)
        await daemon.run(told.bag, 0)
        assert daemon.core.journal.read(end_of_bag, told.bag) is TaskState.DONE

    play(scene)


def test_a_large_question_is_answered_beside_others() -> None:
    assert takes_time(api.encode_question(api.Submit(BagInput(spec=SPEC, tasks=MANY))))
    assert not takes_time(api.encode_question(api.Submit(BagInput(spec=SPEC, tasks=MANY[:1]))))
