"""Calls of a program in its bag, and how it hears of their ends."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from adaptor import api
from adaptor.api import BagInput, TaskInput
from adaptor.bag_spec import Interpreter
from adaptor.daemon.client.commands import ClientEndpoint
from adaptor.errors import JournalError
from adaptor.protocol.messages import AttemptKey, Ending, Orders, Report, Result, decode_to_worker
from tests.daemon.client.asked_daemon import SPEC, Daemon
from tests.daemon.lived_bags import FREE, hello
from tests.new_bag import NewBag

CALL = TaskInput("f()", call=b"v")
CALLS = msgspec.structs.replace(SPEC, interpreter=Interpreter(("python3",), "3.11"))


KEY = "program"


async def opened(daemon: Daemon) -> int:
    return (await daemon.submit(NewBag(BagInput(spec=CALLS, tasks=[]), open=True, key=KEY))).bag


def greet(daemon: Daemon, *holding: AttemptKey) -> None:
    said = hello(holding=list(holding), started=list(holding))
    daemon.core.broker.hello("w", said, "here", daemon.core.now())


async def test_a_program_numbers_its_calls_itself_and_each_counts_once(daemon: Daemon) -> None:
    bag = await opened(daemon)
    await daemon.ask(api.Add(bag, KEY, 0, [CALL]))
    await daemon.ask(api.Add(bag, KEY, 1, [CALL, CALL]))
    await daemon.ask(api.Add(bag, KEY, 1, [CALL, CALL]))
    (view,) = (await daemon.ask(api.GetBags(str(bag)))).bags
    assert view.tasks == 3
    for question, why in (
        (api.Add(bag, KEY, 4, [CALL]), "has 3 tasks by this key, so the next one has not number 4"),
        (api.Add(bag, "a", 0, [CALL]), "has the calls of a program"),
        (api.Add(99, KEY, 0, [CALL]), "no bag 99"),
    ):
        failure = await daemon.failure(question)
        assert why in failure.message
        assert failure.usage
    await daemon.ask(api.Close([bag]))
    assert "is closed" in (await daemon.failure(api.Add(bag, KEY, 3, [CALL]))).message
    await daemon.ask(api.Add(bag, KEY, 2, [CALL]))
    daemon.fake.restart()
    await daemon.ask(api.Add(bag, KEY, 1, [CALL, CALL]))


async def test_a_worker_gets_a_call_while_it_is_brought_to_the_disk(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []

    async def send(_worker: bytes, data: bytes) -> None:
        message = decode_to_worker(data)
        assert isinstance(message, Orders)
        done.append([lease.key for lease in message.leases])

    bag = await opened(daemon)
    greet(daemon)
    daemon.core.broker.report("w", FREE, daemon.core.now())
    await daemon.core.commit()
    monkeypatch.setattr(daemon.core.server, "send_worker", send)
    monkeypatch.setattr(type(daemon.core.journal), "sync", lambda _: done.append("on disk"))
    await daemon.ask(api.Add(bag, KEY, 0, [CALL]))
    assert done == [[AttemptKey(bag, 0, 1)], "on disk"]

    def fail(_: object) -> None:
        raise JournalError("Input/output error")

    monkeypatch.setattr(type(daemon.core.journal), "sync", fail)
    with pytest.raises(JournalError):
        await daemon.serve(api.Add(bag, KEY, 1, [CALL]))


async def test_who_waits_for_a_result_is_told_before_its_worker(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    async def send(_worker: bytes, data: bytes) -> None:
        message = decode_to_worker(data)
        assert isinstance(message, Orders)
        told.extend("worker" for _ in message.acknowledged)

    core, bag = daemon.core, await opened(daemon)
    greet(daemon)
    core.broker.report("w", FREE, core.now())
    await daemon.ask(api.Add(bag, KEY, 0, [CALL]))

    async def listen() -> None:
        await core.listeners.wait({bag: 0}, 60.0)
        told.append("client")

    waiting = asyncio.create_task(listen())
    await asyncio.sleep(0)
    monkeypatch.setattr(core.server, "send_worker", send)
    result = Result(AttemptKey(bag, 0, 1), Ending.EXITED, started=1.0, wall=1.0, exit_code=0)
    core.broker.report("w", Report(results=[result]), core.now())
    changes = await core.commit()
    assert not changes.at_rest, "the program may call again"
    await waiting
    while len(told) < 2:
        await asyncio.sleep(0)
    assert told == ["client", "worker"]


async def test_a_call_that_a_power_cut_took_is_ended_where_it_runs(daemon: Daemon) -> None:
    """The disk had not got it when the machine went, and its program was not answered."""

    bag = await opened(daemon)
    lost = AttemptKey(bag, 0, 1)
    greet(daemon, lost)
    _, orders = daemon.core.write()
    assert orders["w"].abort == [lost]


async def test_who_follows_bags_asks_once_and_is_told_until_they_have_ended(daemon: Daemon) -> None:
    told: list[api.BagEvents] = []
    question = api.GetEvents({1: 0}, wait=30, follow=True)
    read = asyncio.Event()

    def send(_identity: bytes, data: bytes) -> None:
        told.extend(api.decode_answer(question, data))

    async def reads(_identity: bytes) -> bool:
        await read.wait()
        return True

    bag = await daemon.open(2)
    running: Any = Mock(core=daemon.core, sites={"here": daemon.fake.state}, stalled="")
    endpoint = ClientEndpoint(running, Mock(), send, Mock(), reads)
    await endpoint.receive([(b"me", api.encode_question(question))])
    await daemon.run(bag, 0)
    while not told:
        await asyncio.sleep(0)
    await daemon.run(bag, 1)
    await asyncio.sleep(0)
    assert len(told) == 1, "it has not read that yet"
    read.set()
    await daemon.ask(api.Close([bag]))
    await asyncio.gather(*endpoint._background)
    assert [task.task for each in told for task in each.tasks] == [0, 1]
    assert told[-1].ended


async def test_who_has_left_is_not_told_any_more(daemon: Daemon) -> None:
    told: list[bytes] = []

    def send(_identity: bytes, data: bytes) -> None:
        told.append(data)

    async def reads(_identity: bytes) -> bool:
        return False

    bag = await daemon.open(2)
    await daemon.run(bag, 0)
    running: Any = Mock(core=daemon.core, sites={"here": daemon.fake.state}, stalled="")
    endpoint = ClientEndpoint(running, Mock(), send, Mock(), reads)
    question = api.GetEvents({bag: 0}, wait=30, follow=True)
    await endpoint.receive([(b"me", api.encode_question(question))])
    await asyncio.gather(*endpoint._background)
    assert len(told) == 1


async def test_a_program_follows_no_bag_once_its_connection_is_lost(daemon: Daemon) -> None:
    """A killed one has a question left, which is answered after up to 30 s."""
    there = {b"killed", b"other"}
    bag, other = await daemon.open(2), await daemon.open(2)
    running: Any = Mock(core=daemon.core, sites={"here": daemon.fake.state}, stalled="")
    endpoint = ClientEndpoint(running, Mock(), Mock(), there.__contains__, Mock())
    for identity, number in ((b"killed", bag), (b"other", other)):
        question = api.GetEvents({number: 0}, wait=30, follow=True)
        await endpoint.receive([(identity, api.encode_question(question))])
    await asyncio.sleep(0)
    assert endpoint.followed == {bag, other}
    there.remove(b"killed")
    assert endpoint.followed == {other}
    await daemon.ask(api.Close([bag, other]))
    there.clear()
    for task in endpoint._background:
        task.cancel()
