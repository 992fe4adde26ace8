"""Large new bags: the daemon answers others while it reads them."""

from __future__ import annotations

import asyncio
import re
import threading
from functools import partial

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from adaptor import api
from adaptor.api import BagInput, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.daemon.client import new_tasks
from adaptor.journal.bag_rows import end_of_bag
from adaptor.journal.recovery import load_bag
from adaptor.model import TaskState
from adaptor.resources import OwnNeeds
from tests.daemon.client.asked_daemon import SPEC, Daemon, play
from tests.examples import examples
from tests.living import PATIENCE

MANY = [TaskInput(["true"], after=(number - 1,) if number else ()) for number in range(3000)]


async def test_others_are_answered_while_a_large_bag_is_read_and_it_is_there_once(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, reading = threading.Event(), new_tasks._prepared

    def slowly(spec: BagSpec, tasks: list[TaskInput]) -> new_tasks.NewTasks:
        assert go_on.wait(PATIENCE)
        return reading(spec, tasks)

    monkeypatch.setattr(new_tasks, "_prepared", slowly)
    question = api.Submit(BagInput(spec=SPEC, tasks=MANY), key="mine")

    large = [asyncio.create_task(daemon.ask(question)) for _ in range(2)]
    await asyncio.sleep(0)
    assert (await daemon.ask(api.GetBags())).bags == []
    go_on.set()
    assert {answer.bag for answer in await asyncio.gather(*large)} == {1}
    assert len((await daemon.ask(api.GetBags())).bags) == 1


async def test_a_new_bag_in_memory_is_as_the_journal_has_it(daemon: Daemon) -> None:
    tasks = [TaskInput(["x"], after=(2,), after_any=(1,)), TaskInput(["x"]), TaskInput(["x"], after_any=(1,))]

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


async def in_parts(daemon: Daemon, question: api.Submit, part: int) -> api.Submit:
    tasks = question.bag.tasks
    for begin in range(0, len(tasks), part):
        await daemon.ask(api.Stage(question.key, begin, tasks[begin : begin + part]))
    bag = BagInput(spec=question.bag.spec, budget=question.bag.budget, tasks=[])
    return api.Submit(bag, question.open, question.key, staged=len(tasks))


NEEDS = (None, OwnNeeds(cpus=2), OwnNeeds(time=60.0), OwnNeeds(cpus=10_000))


@given(
    st.lists(st.sampled_from(NEEDS), min_size=1, max_size=12), st.integers(1, 5), st.booleans(), st.booleans()
)
@examples(30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_bag_that_came_in_parts_is_as_one_that_came_at_once(
    tmp_path_factory: pytest.TempPathFactory,
    needs: list[OwnNeeds | None],
    part: int,
    is_open: bool,
    is_random: bool,
) -> None:
    spec = BagSpec(name="b", cwd="/", output="/x", environment={}, order="random" if is_random else "file")
    tasks = [TaskInput(f"run {number}", needs=own) for number, own in enumerate(needs)]
    told: list[object] = []

    async def scene(*, whole: bool) -> None:
        question = api.Submit(BagInput(spec=spec, tasks=tasks), open=is_open, key="k")
        daemon = Daemon(tmp_path_factory.mktemp("state"))
        asked = question if whole else await in_parts(daemon, question, part)
        answer = await daemon.serve(asked)
        seen: list[object] = [answer, await daemon.serve(api.GetBags())]
        if isinstance(answer, api.Submitted):
            assert await daemon.ask(asked) == api.Submitted(answer.bag), "a repetition changes nothing"
            made = daemon.core.broker.state.bags.get(answer.bag)
            seen += [made and (made.tally(), [*made.waiting], made.spec), await daemon.ask(api.GetTasks(1))]
        told.append([without_times(each) for each in seen])
        daemon.core.journal.close()

    play(partial(scene, whole=False))
    play(partial(scene, whole=True))
    assert told[0] == told[1]


def without_times(found: object) -> object:
    return re.sub(r"submitted=[\d.]+", "", repr(found))


async def test_what_is_refused_leaves_no_tasks_and_its_user_is_told_why(daemon: Daemon) -> None:
    spec = BagSpec(name="b", cwd="/", output="/x", environment={}, sites=("nowhere",))
    question = await in_parts(daemon, api.Submit(BagInput(spec=spec, tasks=MANY_ALIKE), key="k"), 2)
    assert "no site 'nowhere'" in (await daemon.failure(question)).message
    assert (await daemon.failure(question)).message == (
        "the tasks that came for this bag are forgotten: submit it again"
    )
    assert (await daemon.ask(api.GetBags())).bags == []


MANY_ALIKE = [TaskInput("true")] * 7


@pytest.mark.parametrize("parts", [1, 2, 3])
async def test_a_daemon_that_is_killed_between_two_parts_has_no_such_bag_and_the_client_goes_on(
    daemon: Daemon, parts: int
) -> None:
    for part in range(4):
        if part == parts:
            daemon.fake.restart()
            assert (await daemon.ask(api.GetBags())).bags == []
            assert not daemon.core.broker.state.bags
        await daemon.ask(api.Stage("k", 2 * part, MANY_ALIKE[2 * part : 2 * part + 2]))
    answer = await daemon.ask(api.Submit(BagInput(spec=SPEC, tasks=[]), key="k", staged=7))
    daemon.fake.restart()
    (view,) = (await daemon.ask(api.GetBags())).bags
    assert (view.id, view.tasks, view.waiting) == (answer.bag, 7, 7)
