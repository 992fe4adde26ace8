"""Many tasks are cancelled and put back in parts: as if at once, and others are answered between them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adaptor import api
from adaptor.api import BagInput, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.daemon.client import steering
from adaptor.protocol.messages import Hello, Report
from tests.daemon.client.test_bags import Daemon, play

TOTAL = 11
_SOME = st.none() | st.lists(st.integers(0, TOTAL + 1), max_size=TOTAL)
_STEPS = st.lists(st.tuples(st.sampled_from(["cancel", "retry", "run"]), _SOME), max_size=6)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path)
    yield daemon
    daemon.core.journal.close()


async def _new_bag(daemon: Daemon, order: str, linked: bool) -> None:
    spec = BagSpec(name="b", cwd="/", output="/x", environment={}, order=order, retries=0)
    tasks = [TaskInput("x", after=(number - 1,) if linked and number % 4 else ()) for number in range(TOTAL)]
    await daemon.ask(api.Submit(BagInput(spec=spec, tasks=tasks)))


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
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
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


def test_others_are_answered_between_two_parts_and_nothing_starts(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steering, "AT_ONCE", 2)

    async def scene() -> None:
        await _new_bag(daemon, "file", linked=False)
        cancelling = asyncio.create_task(daemon.ask(api.Cancel([1])))
        seen, broker = set(), daemon.core.broker
        now = daemon.core.now()
        hello = Hello(pilot=1, node="n", pid=1, version="1", processors=4, memory=1 << 30, deadline=now + 9e4)
        while not cancelling.done():
            await asyncio.sleep(0)
            (view,) = (await daemon.ask(api.GetBags())).bags
            seen.add(view.cancelled)
            if 0 < view.cancelled < TOTAL:
                broker.hello("w", hello, "here", now)
                broker.report("w", Report(free_processors=4, free_memory=1 << 30), now)
                assert not broker.state.workers["w"].held
        assert await cancelling == TOTAL
        assert seen >= {2, 4, 6}
        assert await daemon.ask(api.Retry([1])) == TOTAL
        assert broker.state.workers["w"].held

    play(scene)
