"""Large new bags: the daemon answers others while it reads them."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from adaptor import api
from adaptor.api import BagInput, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.daemon.client import new_tasks
from adaptor.daemon.upkeep.retention import STALE, Retention
from adaptor.journal.adding import FORGOTTEN
from adaptor.journal.bag_rows import TaskRows, end_of_bag
from adaptor.journal.recovery import load_bag
from adaptor.model import TaskState
from adaptor.resources import OwnNeeds
from tests.daemon.client.asked_daemon import SPEC, Daemon, play
from tests.examples import examples
from tests.living import PATIENCE
from tests.new_bag import NewBag, questions

MANY = [TaskInput(["true"], after=(number - 1,) if number else ()) for number in range(3000)]


async def test_others_are_answered_while_a_large_bag_is_read_and_it_is_there_once(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, reading = threading.Event(), new_tasks.task_rows

    def slowly(tasks: Sequence[TaskInput], file: str) -> TaskRows:
        assert go_on.wait(PATIENCE)
        return reading(tasks, file=file)

    monkeypatch.setattr(new_tasks, "task_rows", slowly)
    question = NewBag(BagInput(spec=SPEC, tasks=MANY), key="mine")

    large = [asyncio.create_task(daemon.submit(question)) for _ in range(2)]
    await asyncio.sleep(0)
    assert (await daemon.ask(api.GetBags())).bags == []
    go_on.set()
    assert {answer.bag for answer in await asyncio.gather(*large)} == {1}
    (view,) = (await daemon.ask(api.GetBags())).bags
    assert (view.tasks, view.blocked) == (len(MANY), len(MANY) - 1)


async def test_a_new_bag_in_memory_is_as_the_journal_has_it(daemon: Daemon) -> None:
    tasks = [TaskInput(["x"], after=(2,), after_any=(1,)), TaskInput(["x"]), TaskInput(["x"], after_any=(1,))]

    told = await daemon.submit(NewBag(BagInput(spec=SPEC, tasks=tasks)))
    made, kept = daemon.core.broker.state.bags[told.bag], load_bag(daemon.core.journal, told.bag)
    assert [made.state(task) for task in range(3)] == [kept.state(task) for task in range(3)]
    assert made.blocked == [0, 2]
    assert made.tally() == kept.tally()
    await daemon.run(told.bag, 1)
    assert made.state(2) in (TaskState.WAITING, TaskState.LEASED)
    await daemon.run(told.bag, 2)
    await daemon.run(told.bag, 0)
    assert daemon.core.journal.read(end_of_bag, told.bag) is TaskState.DONE


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
        question = NewBag(BagInput(spec=spec, tasks=tasks), open=is_open, key="k")
        daemon = Daemon(tmp_path_factory.mktemp("state"))
        answer = await daemon.submission(question, len(tasks) if whole else part)
        seen: list[object] = [answer, await daemon.serve(api.GetBags())]
        if isinstance(answer, api.Submitted):
            assert await daemon.ask(api.Publish("k")) == api.Submitted(answer.bag), "it is repeated"
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
    question = api.Open("k", spec)
    assert "no site 'nowhere'" in (await daemon.failure(question)).message
    large = [TaskInput("true", needs=OwnNeeds(cpus=99))] * 7
    new = NewBag(BagInput(spec=SPEC, tasks=large), key="k")
    failure = await daemon.submission(new, 2)
    assert isinstance(failure, api.Failure)
    assert "task 0: tasks of 99 cpus fit into no request" in failure.message
    assert (await daemon.failure(api.Publish("k"))).message == FORGOTTEN
    assert (await daemon.ask(api.GetBags())).bags == []
    assert "was not published" in (await daemon.failure(api.Add(0, "k", 7, large))).message


MANY_ALIKE = [TaskInput("true")] * 7


@pytest.mark.parametrize("killed", range(6))
@pytest.mark.parametrize("lost", [False, True])
async def test_a_daemon_that_is_killed_before_a_bag_is_published_has_no_such_bag_and_the_client_goes_on(
    daemon: Daemon, killed: int, lost: bool
) -> None:
    """`killed`: before which question; `lost`: its answer is lost, so that it is repeated."""
    steps, answer = questions(NewBag(BagInput(spec=SPEC, tasks=MANY_ALIKE), key="k"), 2), None
    told: api.Submitted | None = None
    at = 0
    while told is None:
        try:
            question = steps.send(answer)
        except StopIteration as end:
            told = end.value
            break
        if lost and at == killed:
            await daemon.ask(question)
        if at == killed:
            daemon.fake.restart()
        if not isinstance(question, api.Publish):
            assert (await daemon.ask(api.GetBags())).bags == []
            assert not daemon.core.broker.state.bags, "nothing of it runs"
        answer = await daemon.ask(question)
        at += 1
    daemon.fake.restart()
    (view,) = (await daemon.ask(api.GetBags())).bags
    assert (view.id, view.tasks, view.waiting) == (told.bag, 7, 7)


async def test_a_bag_continues_earlier_ones_however_it_comes(daemon: Daemon) -> None:
    first = await daemon.submit(NewBag(BagInput(spec=SPEC, tasks=[TaskInput(f"{n}") for n in range(3)])))
    await daemon.run(first.bag, 1)
    new = NewBag(BagInput(spec=SPEC, tasks=[TaskInput(f"{n}") for n in range(5)]), resume=True)
    second = await daemon.submit(new, 2)
    assert second.taken_over == [api.TakenOver(first.bag, 1, 2)]
    assert [task.command for task in await daemon.ask(api.GetTasks(second.bag))] == ["3", "4"]
    again = await daemon.submit(new, 2)
    assert (again.bag, [taken.bag for taken in again.taken_over]) == (0, [second.bag, first.bag])
    assert [view.id for view in (await daemon.ask(api.GetBags())).bags] == [first.bag, second.bag]


async def test_a_bag_that_is_never_published_is_forgotten_an_hour_after_its_last_tasks(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, core = time.time(), daemon.core
    monkeypatch.setattr(core, "now", lambda: now)
    assert await daemon.ask(api.Open("k", SPEC)) == 0
    for part in range(3):
        now += STALE - 1.0
        await daemon.ask(api.Add(0, "k", part, MANY_ALIKE[:1]))
        await Retention(core, None)._forget_old(lambda: True)
    now += STALE + 1.0
    house = Retention(core, None)
    await house._forget_old(lambda: True)
    await house.compact(lambda: True)
    assert core.journal.connection.execute("SELECT COUNT(*) FROM task").fetchone() == (0,)
    assert (await daemon.failure(api.Publish("k"))).message == FORGOTTEN
