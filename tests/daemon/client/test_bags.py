"""Open bags and events as the daemon serves them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest

from adaptor import api
from adaptor.api import BagInput, TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.daemon.client.bags import OVER_SSH
from adaptor.errors import JournalError
from adaptor.guard_rails import TimeLimit
from adaptor.protocol.messages import Report
from adaptor.resources import OwnNeeds, TaskSize
from backends.base import SchedulerError
from tests.alike import alike
from tests.bundles.staged import archive_of, packed
from tests.daemon.client.asked_daemon import SPEC, TRUE, Daemon
from tests.daemon.fake_site import told
from tests.daemon.lived_bags import hello
from tests.new_bag import NewBag


async def test_an_open_bag_takes_tasks_until_it_is_closed_and_ends_then(daemon: Daemon) -> None:
    bag = await daemon.open()
    assert await daemon.append(bag, "a", 2) == api.Added(0, 2)
    assert await daemon.append(bag, "b") == api.Added(2, 1)
    assert await daemon.append(bag, "a", 2) == api.Added(0, 2)
    await daemon.run(bag, 0, 1, 2)
    told = await daemon.events(bag)
    assert ([task.task for task in told.tasks], told.open, told.ended) == ([0, 1, 2], True, False)
    (view,) = (await daemon.ask(api.GetBags(str(bag)))).bags
    assert (view.state, view.ended, view.open, view.tasks) == ("open", None, True, 3)
    assert await daemon.ask(api.Close([bag])) == [bag]
    assert await daemon.ask(api.Close([bag])) == []
    told = await daemon.events(bag, told.last)
    assert (told.tasks, told.open, told.ended) == ([], False, True)
    failure = await daemon.failure(api.Add(bag, "c", 0, [TRUE]))
    assert failure.usage
    assert "is closed" in failure.message
    assert await daemon.append(bag, "b") == api.Added(2, 1), "it was appended in time"


@pytest.mark.parametrize("broken", ["journal.write", "broker.drain", "earlier.of"])
async def test_after_whatever_error_amid_an_append_the_journal_counts(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    bag = await daemon.open()
    part, name = broken.split(".")
    with monkeypatch.context() as patched:
        patched.setattr(getattr(daemon.core, part), name, Mock(side_effect=RuntimeError("a fault")))
        with pytest.raises(JournalError, match=r"internal error.*a fault"):
            await daemon.append(bag, "a", 2)
    assert not daemon.core.journal.connection.in_transaction
    daemon.core.recover()  # as the daemon does after a JournalError
    assert daemon.core.broker.state.bags[bag].total == 0
    assert await daemon.append(bag, "a", 2) == api.Added(0, 2)
    assert daemon.core.broker.state.bags[bag].total == 2


async def test_a_restart_keeps_open_bags_and_the_numbers_of_events(daemon: Daemon) -> None:
    bag = await daemon.open(key="mine")
    await daemon.append(bag, "a", 2)
    await daemon.run(bag, 0)
    before = await daemon.events(bag)
    daemon.fake.restart()
    assert await daemon.open(key="mine") == bag
    assert await daemon.append(bag, "a", 2) == api.Added(0, 2)
    assert await daemon.append(bag, "b") == api.Added(2, 1)
    await daemon.run(bag, 2)
    after = await daemon.events(bag, before.last)
    assert [task.task for task in after.tasks] == [2]
    assert after.last == before.last + 1


async def test_a_client_waits_until_something_happens(daemon: Daemon) -> None:
    bag, other = await daemon.open(2), await daemon.open(1)
    asked = asyncio.create_task(daemon.events(bag, 0, wait=30))
    while not len(daemon.core.listeners):
        await asyncio.sleep(0)
    await daemon.run(other, 0)
    await daemon.append(bag, "a")
    assert not asked.done(), "nothing has ended in that bag"
    await daemon.run(bag, 1)
    told = await asked
    assert [(task.task, task.state, task.exit_code) for task in told.tasks] == [(1, "done", 0)]
    asked = asyncio.create_task(daemon.events(bag, told.last, wait=30))
    while not len(daemon.core.listeners):
        await asyncio.sleep(0)
    await daemon.ask(api.Close([bag]))
    assert not (await asked).open
    assert not len(daemon.core.listeners)


async def test_nobody_waits_for_bags_that_have_ended_or_beyond_the_time(daemon: Daemon) -> None:
    bag = await daemon.open(1)
    assert (await daemon.events(bag, 0, wait=0.01)).tasks == []
    await daemon.ask(api.Cancel([bag]))
    last = (await daemon.events(bag)).last
    assert (await daemon.events(bag, last, wait=30)).ended
    assert "no bag 99" in (await daemon.failure(api.GetEvents({99: 0}, 30))).message


async def test_answers_are_bounded_and_go_on(daemon: Daemon) -> None:
    bag = await daemon.open(5)
    await daemon.run(bag, 3, 1, 4, 0)
    found, since = [], 0
    while True:
        told = await daemon.events(bag, since, most=3)
        assert len(told.tasks) <= 3
        found += [task.task for task in told.tasks]
        since = told.last
        if not told.more:
            break
    assert found == [3, 1, 4, 0]


async def test_a_bag_is_not_retried_before_the_one_that_spoiled_it(daemon: Daemon) -> None:
    first = await daemon.open(1)
    second = await daemon.open(1, after=(first,))
    await daemon.ask(api.Cancel([first]))
    await daemon.ask(api.Add(second, "a", 0, [TRUE]))
    ended = {task.task: (task.state, task.error) for task in (await daemon.events(second)).tasks}
    assert ended == dict.fromkeys(range(2), ("cancelled", f"it runs after bag {first}, which was cancelled"))
    failure = await daemon.failure(api.Retry([second]))
    assert failure.usage
    assert f"adaptor retry {first} && adaptor retry {second}" in failure.message
    assert await daemon.ask(api.Retry([second, first])) == 3


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        (OwnNeeds(cpus=0), "cpus: 0 is not from 1 to 1,000,000,000"),
        (OwnNeeds(cpus=-(2**63)), "cpus: -9223372036854775808 is not from 1"),
        (OwnNeeds(memory=2**63), "mem: 9223372036854775808 is not from 1"),
        (OwnNeeds(nodes=-1), "nodes: -1 is not from 1"),
        (OwnNeeds(gpus=float("nan")), "gpus: nan is not from 0"),
        (OwnNeeds(gpus=0.7), "gpus: 0.7 of a GPU is no share"),
        (OwnNeeds(gpus=1, gpu_type="x" * 65), "has more than 64 letters"),
        (OwnNeeds(time=float("nan")), "time: nan is not from 0.001"),
        (OwnNeeds(time=1e300), "time: 1e+300 is not from 0.001"),
        (OwnNeeds(time=5e-324), "time: 5e-324 is not from 0.001"),
    ],
)
async def test_needs_that_cannot_be_meant_are_refused_wherever_they_come_from(
    daemon: Daemon, needs: OwnNeeds, words: str
) -> None:
    bag = await daemon.open(1)
    odd = TaskInput("x", needs=needs)
    failure = await daemon.failure(api.Add(bag, "a", 0, [TRUE, odd]))
    assert failure.usage
    assert failure.message.startswith("task 1: ")
    assert words in failure.message
    written = msgspec.structs.replace(odd, line=7)
    failure = await daemon.failure(NewBag(BagInput(spec=SPEC, tasks=[TRUE, written])))
    assert failure.message.startswith("line 7: ")
    failure = await daemon.failure(NewBag(BagInput(spec=SPEC, tasks=[TRUE, written], file="a.jsonl")))
    assert failure.message.startswith("a.jsonl:7: ")
    failure = await daemon.failure(api.Add(bag, "a", 0, [TRUE, written], "a.jsonl"))
    assert failure.message.startswith("a.jsonl:7: ")
    await daemon.ask(api.Cancel([bag]))
    failure = await daemon.failure(api.Retry([bag], None, needs))
    assert words in failure.message
    assert (await daemon.append(await daemon.open(), "b")).tasks == 1, "the daemon is as well as before"


async def test_what_nothing_can_run_is_refused_by_task_when_it_is_appended(daemon: Daemon) -> None:
    bag = await daemon.open(1)
    large, linked = TaskInput("x", needs=OwnNeeds(cpus=3)), TaskInput("x", after=(2,))
    told = await daemon.ask(api.Add(bag, "a", 0, [TRUE, large, linked]))
    assert (told.first, told.tasks, told.refused) == (1, 3, 1)
    assert told.reasons == ["task 2: tasks of 3 cpus fit into no request: max_proc is 2"]
    ended = {task.task: (task.state, task.error) for task in (await daemon.events(bag)).tasks}
    assert ended == {
        2: ("failed", "tasks of 3 cpus fit into no request: max_proc is 2"),
        3: ("failed", "it runs after task 2, which failed"),
    }
    again = await daemon.ask(api.Add(bag, "a", 0, [TRUE, large, linked]))
    assert again == api.Added(1, 3)
    written = msgspec.structs.replace(large, line=9)
    told = await daemon.ask(api.Add(bag, "c", 0, [written], "a.jsonl"))
    assert told.reasons == ["a.jsonl:9: tasks of 3 cpus fit into no request: max_proc is 2"]
    lost = TaskInput("x", after=("lost",), line=4)
    failure = await daemon.failure(api.Add(bag, "d", 0, [lost], "a.jsonl"))
    assert failure.message == "a.jsonl:4: after: no task has the id 'lost'"
    odd = TaskInput("x", needs=OwnNeeds(nodes=2, gpus=0.5))
    failure = await daemon.failure(api.Add(bag, "b", 0, [TRUE, odd]))
    assert failure.usage
    assert "whole number" in failure.message
    assert daemon.core.broker.state.bags[bag].total == 5, "nothing of it is appended"


async def test_a_task_is_not_to_take_longer_than_the_limit_of_its_bag(daemon: Daemon) -> None:
    spec = BagSpec(name="b", cwd="/", output="/o", environment={}, timeout=TimeLimit(seconds=300.0))
    bag = BagInput(spec=spec, tasks=[TRUE, TaskInput("x", needs=OwnNeeds(time=600.0), line=7)])
    failure = await daemon.failure(NewBag(bag))
    assert failure.message.startswith("line 7: --timeout 5m would end it before the 10m that it is to take")


async def test_cancelling_some_tasks_leaves_a_bag_open_and_cancelling_all_closes_it(daemon: Daemon) -> None:
    bag = await daemon.open(4)
    some = api.Cancel([bag], [1, 1, 3, 77])
    assert await daemon.ask(some) == 2
    assert [task.task for task in (await daemon.events(bag)).tasks] == [1, 3]
    assert await daemon.ask(api.Retry([bag], [3, 0])) == 1
    again = await daemon.events(bag, 2)
    assert [(task.task, task.state) for task in again.tasks] == [(3, "waiting")]
    assert (await daemon.append(bag, "a")).first == 4
    assert await daemon.ask(api.Cancel([bag])) == 4
    told = await daemon.events(bag, again.last)
    assert (told.open, told.ended, told.cancelled) == (False, True, 5)


async def test_sites_are_woken_when_work_comes_and_not_for_every_task(daemon: Daemon) -> None:
    bag = await daemon.open()
    assert not daemon.woken, "the look would put off that for its first tasks"
    for number in range(64):
        await daemon.append(bag, f"k{number}")
    assert 1 <= daemon.woken <= 10


async def test_sites_are_woken_once_when_a_program_turns_out_to_refill_its_bag(daemon: Daemon) -> None:
    bag = await daemon.open()
    await daemon.append(bag, "first", 64)
    before = daemon.woken
    for number in range(20):
        await daemon.run(bag, number)
        await daemon.append(bag, f"k{number}")
    assert daemon.woken == before + 1


async def test_a_disk_that_refuses_tasks_leaves_neither_them_nor_their_leases(daemon: Daemon) -> None:
    bag = await daemon.open()
    journal, now = daemon.core.journal, daemon.core.now()
    daemon.core.broker.hello("w", hello(processors=1), "here", now)
    daemon.core.broker.report("w", Report(free_processors=1, free_memory=1 << 30), now)
    journal.connection.execute(
        "CREATE TEMP TRIGGER full BEFORE UPDATE OF events ON bag BEGIN SELECT RAISE(ABORT, 'full'); END"
    )
    with pytest.raises(JournalError, match="full"):
        await daemon.append(bag, "k")
    journal.connection.execute("DROP TRIGGER full")
    daemon.core.recover()
    assert (await daemon.events(bag)).total == 0
    assert (await daemon.append(bag, "k")).first == 0


async def test_tasks_are_put_back_with_other_needs_which_outlive_a_restart(daemon: Daemon) -> None:
    bag = await daemon.open(4)
    await daemon.ask(api.Cancel([bag], [1, 2, 3]))
    wanted = api.Retry([bag], [1, 2], OwnNeeds(memory=1 << 30, time=60.0))
    assert await daemon.ask(wanted) == 2
    for _ in range(2):
        known = daemon.core.broker.state.bags[bag]
        assert [known.sizes.of(task).memory for task in range(4)] == [None, 1 << 30, 1 << 30, None]
        assert [known.sizes.time(task) for task in range(4)] == [None, 60.0, 60.0, None]
        assert sorted(known.waiting) == [0, 1, 2]
        daemon.fake.restart()
    await daemon.ask(api.Cancel([bag], [1]))
    await daemon.ask(api.Retry([bag], [1], OwnNeeds(cpus=2)))
    daemon.fake.restart()
    known = daemon.core.broker.state.bags[bag]
    assert known.sizes.of(1) == TaskSize(processors=2, memory=1 << 30), "what is not said stays"
    told = await daemon.ask(api.GetWhy(None, None, 20, ["needs"]))
    assert [line.text for line in told.lines] == [
        f"2 tasks of bag {bag} put back with mem 1G, time 1m",
        f"1 task of bag {bag} put back with cpus 2",
    ]


async def test_needs_that_no_node_holds_put_no_task_back(daemon: Daemon) -> None:
    bag = await daemon.open(2)
    await daemon.ask(api.Cancel([bag], [0, 1]))
    failure = await daemon.failure(api.Retry([bag], None, OwnNeeds(cpus=100_000)))
    assert failure.usage
    assert "task 0" in failure.message
    assert "nothing is changed" in failure.message
    mixed = api.Retry([bag], None, OwnNeeds(nodes=2, gpus=0.5))
    assert "whole number" in (await daemon.failure(mixed)).message
    known = daemon.core.broker.state.bags[bag]
    assert not known.lines.any_waits
    assert known.sizes.of(0) == TaskSize()


async def test_what_a_bag_stages_must_be_there_and_is_for_tasks_on_one_node(
    daemon: Daemon, tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("content")
    bundle = packed(daemon.core.directory, tmp_path / "data")
    spec = BagSpec(name="b", cwd="/", output="/o", environment={}, stage=("/data",), bundle=bundle)

    async def refusal(spec: BagSpec, *tasks: TaskInput) -> str:
        failure = await daemon.failure(NewBag(api.BagInput(spec=spec, tasks=list(tasks or (TRUE,)))))
        assert failure.usage
        return failure.message

    several = "--stage: for tasks on one node each"
    assert several in await refusal(msgspec.structs.replace(spec, nodes=2))
    assert several in await refusal(spec, TRUE, TaskInput("x", needs=OwnNeeds(nodes=2)))
    gone = "the archive is not there: submit the bag again"
    assert gone in await refusal(msgspec.structs.replace(spec, bundle=None))
    archive_of(daemon.core.directory, bundle).unlink()
    assert gone in await refusal(spec)


async def test_a_bag_that_stages_is_warned_of_sites_over_ssh(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("content")
    bundle = packed(daemon.core.directory, tmp_path / "data")
    spec = BagSpec(name="b", cwd="/", output="/o", environment={}, stage=("/data",), bundle=bundle)
    await daemon.submit(NewBag(api.BagInput(spec=spec, tasks=[TRUE])))
    assert OVER_SSH not in told(daemon.core.journal, "problem")
    daemon.fake.state.remote_folder = Mock()
    await daemon.submit(NewBag(api.BagInput(spec=spec, tasks=[TRUE])))
    assert told(daemon.core.journal, "problem").count(OVER_SSH) == 1


async def test_the_first_bag_of_a_daemon_is_refused_at_once_if_no_node_holds_it(daemon: Daemon) -> None:
    """A daemon without bags reads no queue: it is read for the first one."""
    daemon.fake.backend.node_sizes = alike(4, 2, 4 * 2**30)
    assert daemon.fake.state.memory.seen is None
    large = msgspec.structs.replace(SPEC, memory=8 * 2**30)
    failure = await daemon.failure(NewBag(BagInput(spec=large, tasks=[TRUE])))
    assert failure.message.startswith("no node can run these tasks: here: ")


async def test_a_scheduler_that_does_not_answer_refuses_no_bag(daemon: Daemon) -> None:
    daemon.fake.backend.silent = SchedulerError("squeue hangs")
    large = msgspec.structs.replace(SPEC, memory=8 * 2**30)
    assert (await daemon.submit(NewBag(BagInput(spec=large, tasks=[TRUE])))).bag == 1
