"""A scripted agent: tools by the SDK's own client, and questions by the raw protocol with the agent's key."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sqlite3
import threading
from collections.abc import Coroutine, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from adaptor import api
from adaptor.api.question import A
from adaptor.budget.accounting.credits import MILLION
from adaptor.budget.accounting.entries import Entry, Reserved, Settled
from adaptor.client.asking import DaemonConnection
from adaptor.protocol.access import KEY_VARIABLE, host_and_port, key_access, read_access
from adaptor.protocol.channel import LARGEST_FROM_DAEMON, Channel, Party
from tests.e2e.lab import Lab
from tests.new_bag import NewBag, submitted

if TYPE_CHECKING:  # it takes seconds to import, and every process of pytest collects this file
    from mcp import ClientSession

SITE = """
sites:
  here: {backend: local, processors: 4, initial_tr: 20, idle_timeout: 1s, price: {explicit: 100}}
"""
"""A processor for 36 s costs a credit."""
T = TypeVar("T")


class ToolFailed(Exception):
    """An error as the agent reads it."""


class Agent:
    """A session with `adaptor mcp --key NAME`, in a thread of its own."""

    def __init__(self, lab: Lab, key: str, *options: str) -> None:
        from mcp import StdioServerParameters

        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        words = [*lab.command("mcp", "--key", key, *options)]
        self._server = StdioServerParameters(
            command=words[0],
            args=words[1:],
            env={"ADAPTOR_DIR": str(lab.state), "PATH": os.environ["PATH"]},
            cwd=lab.work,
        )
        self._leave = asyncio.Event()
        self._ready: asyncio.Future[ClientSession] = self._wait(self._future())
        self._life = asyncio.run_coroutine_threadsafe(self._live(), self._loop)
        self.session = self._wait(self._joined())

    async def _future(self) -> asyncio.Future[ClientSession]:
        return asyncio.get_running_loop().create_future()

    async def _joined(self) -> ClientSession:
        return await self._ready

    async def _live(self) -> None:
        """The contexts of the SDK belong to one task."""
        import anyio
        from mcp import ClientSession, stdio_client

        try:
            with anyio.fail_after(300):
                async with stdio_client(self._server) as (read, write), ClientSession(read, write) as session:
                    await session.initialize()
                    self._ready.set_result(session)
                    with anyio.CancelScope(shield=True):
                        await self._leave.wait()
        except Exception as error:
            if not self._ready.done():
                self._ready.set_exception(error)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(300)

    def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in self._wait(self.session.list_tools()).tools}

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer. Raises ToolFailed."""
        answer = self._wait(self.session.call_tool(tool, arguments))
        text = "".join(getattr(each, "text", "") for each in answer.content)
        if answer.is_error:
            raise ToolFailed(text)
        assert answer.structured_content is not None
        assert json.loads(text) == answer.structured_content
        return dict(answer.structured_content)

    def refusal(self, tool: str, **arguments: Any) -> str:
        """Why a call failed."""
        try:
            answer = self.call(tool, **arguments)
        except ToolFailed as error:
            return str(error)
        raise AssertionError(f"{tool} was not refused: {answer}")

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._leave.set)
        self._life.result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)


@contextmanager
def holding(key: str) -> Iterator[None]:
    """This process asks with a key."""
    os.environ[KEY_VARIABLE] = key
    try:
        yield
    finally:
        os.environ.pop(KEY_VARIABLE, None)


def ask(lab: Lab, question: api.Question[A], key: str = "") -> A:
    """The answer of the daemon, by the raw protocol; without a key as its user."""
    with closing(DaemonConnection(lab.state)) as connection:
        if not key:
            return connection.ask(question, 60.0)
        with holding(key):
            return connection.ask(question, 60.0)


def submitted_raw(lab: Lab, new: NewBag, key: str = "") -> api.Submitted:
    """The answer of the daemon to the last question of a submission, by the raw protocol."""
    answer: api.Submitted = submitted(lambda question: ask(lab, question, key), new)
    return answer


@contextmanager
def connected(lab: Lab, key: str, port_of: str = "") -> Iterator[tuple[socket.socket, Channel]]:
    """A socket to the port of the clients, or of the workers of a site, with the certificate of a key."""
    access = read_access(lab.state / key_access(key))
    there = read_access(lab.state / port_of) if port_of else access
    party = Party(access.own, access.server, server=False, protocol=api.PROTOCOL)
    channel = party.channel(LARGEST_FROM_DAEMON)
    with socket.create_connection(host_and_port(there.addresses[0]), timeout=60) as connection:
        while not channel.proven:
            connection.sendall(channel.outgoing())
            channel.receive(connection.recv(65536))
        connection.sendall(channel.outgoing())
        yield connection, channel


def rows(lab: Lab, query: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(f"file:{lab.state / 'journal.sqlite'}?mode=ro", uri=True)) as journal:
        return journal.execute(query, values).fetchall()


def most_spent(lab: Lab, bags: set[int]) -> float:
    """The most that these bags had used and reserved at a time, in credits, by the entries of the ledger."""
    decode, most, used = msgspec.msgpack.Decoder(Entry).decode, 0, 0
    reserved: dict[int, int] = {}
    for (packed,) in rows(lab, "SELECT entry FROM credit ORDER BY id"):
        entry = decode(packed)
        if not isinstance(entry, Reserved | Settled):
            continue
        amount = sum(part.amount for part in entry.parts if part.bag in bags)
        reserved.pop(entry.pilot, None)
        if isinstance(entry, Reserved):
            reserved[entry.pilot] = amount
        else:
            used += amount
        most = max(most, used + sum(reserved.values()))
    return most / MILLION


def processors_at_once(lab: Lab, bags: set[int]) -> int:
    """The most that pilots of these bags held at a time, by the journal: from submission to end."""
    marks = ",".join("?" * len(bags))
    found = rows(
        lab, f"SELECT p, submitted, COALESCE(ended, 9e18) FROM pilot WHERE bag IN ({marks})", *sorted(bags)
    )
    times = [begin for _, begin, _ in found]
    return max((sum(p for p, begin, end in found if begin <= at < end) for at in times), default=0)
