"""What unproven peers cost the daemon's ports: little memory, few descriptors, and no place of others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from adaptor.api import PROTOCOL
from adaptor.daemon.server import FOREIGN, PeerMessage, PortLimits, Server, port_limits
from adaptor.protocol.access import Credentials
from adaptor.protocol.keys import Keys, load_or_make_keys
from adaptor.protocol.listener import OUT_OF_DESCRIPTORS, ConnectionRoom
from tests.living import PATIENCE, until
from tests.protocol.peers import RECORD, call, client_hello, closed_by_peer, peer

MB = 2**20
_ROOM = ConnectionRoom(proven=3, silent=4, begun=4, patience=1.0, manners=0.1)
FEW = PortLimits(workers=_ROOM, clients=_ROOM)
PLENTY = port_limits(20_000, 1)
MORE_THAN_ARE_LEFT = 9
"""Callers: more than there are descriptors that the peer before them gives back a little later."""


class Running:
    """A server in a thread, which answers everything with what it was told."""

    def __init__(self, keys: Keys, rooms: PortLimits) -> None:
        self.keys = keys
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(rooms)), daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        assert self.worker_hears(), "its ports are open"

    async def _serve(self, rooms: PortLimits) -> None:
        self.server = Server(self.keys, rooms, loopback=True)
        self._loop = asyncio.get_running_loop()

        async def echo_worker(batch: list[PeerMessage]) -> None:
            for identity, data in batch:
                await self.server.send_worker(identity, data)

        async def echo_client(batch: list[PeerMessage]) -> None:
            for identity, data in batch:
                self.server.clients.send(identity, data)

        self._serving = asyncio.create_task(self.server.serve(echo_worker, echo_client))
        self._loop.call_soon(self._ready.set)
        with contextlib.suppress(asyncio.CancelledError):
            await self._serving

    @property
    def ports(self) -> tuple[int, int]:
        return self.server.worker_port, self.server.client_port

    def worker_hears(self, patience: float = 60.0, said: bytes = b"news", name: str = "worker") -> bool:
        own = getattr(self.keys, name)
        with peer(self.server.worker_port, self.keys.server.certificate, own, name=b"1-n-1") as worker:
            worker.send(said)
            return worker.poll(patience) and worker.receive() == said

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._serving.cancel)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return load_or_make_keys(tmp_path)


@pytest.fixture
def running(keys: Keys) -> Iterator[Running]:
    made = Running(keys, PLENTY)
    yield made
    made.close()


@pytest.fixture
def narrow(keys: Keys) -> Iterator[Running]:
    made = Running(keys, FEW)
    yield made
    made.close()


@pytest.mark.parametrize("port", [0, 1], ids=["workers", "command line"])
@pytest.mark.parametrize(
    "beginning",
    [client_hello(), RECORD + b"\x40\x00\1\0\xff\xff", RECORD + b"\xff\xff", b"\x16"],
    ids=["hello", "large hello", "large record", "one byte"],
)
def test_an_unproven_peer_cannot_fill_the_memory(running: Running, port: int, beginning: bytes) -> None:
    before = psutil.Process().memory_info().rss
    chunk = b"A" * MB
    callers = [call(running.ports[port]) for _ in range(4)]
    for caller in callers:
        with contextlib.suppress(ConnectionError):
            caller.sendall(beginning)
            for _ in range(20):
                caller.sendall(chunk)
    assert psutil.Process().memory_info().rss - before < 4 * MB
    assert all(closed_by_peer(caller) for caller in callers)
    assert running.worker_hears()


def test_proven_peers_may_say_as_much_as_they_need(running: Running) -> None:
    assert running.worker_hears(said=os.urandom(5 * MB))


def test_a_certificate_of_the_other_port_opens_nothing(running: Running) -> None:
    assert not running.worker_hears(name="client")
    assert running.worker_hears()


def test_clients_are_told_apart_without_a_name(running: Running) -> None:
    keys = (running.server.client_port, running.keys.server.certificate, running.keys.client)
    with peer(*keys) as one, peer(*keys) as other:
        one.send(b"one")
        other.send(b"other")
        assert (one.receive(), other.receive()) == (b"one", b"other")


def test_a_client_that_speaks_another_protocol_is_told_from_ours(keys: Keys) -> None:
    """By its identity, which the daemon gives it."""
    heard: list[bytes] = []

    async def serve() -> None:
        server = Server(keys, PLENTY, loopback=True)

        async def hear(batch: list[PeerMessage]) -> None:
            heard.extend(identity for identity, _ in batch)

        serving = asyncio.create_task(server.serve(hear, hear))
        for protocol in ("", "another", PROTOCOL):
            calling = (server.client_port, keys.server.certificate, keys.client)
            await asyncio.to_thread(say, *calling, protocol)
        while len(heard) < 3:
            await asyncio.sleep(0)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    def say(port: int, server: str, own: Credentials, protocol: str) -> None:
        with peer(port, server, own, protocol=protocol) as client:
            client.send(b"who are you?")
            client.poll(0.2)

    asyncio.run(serve())
    assert [identity.startswith(FOREIGN) for identity in heard] == [True, True, False]


def test_a_worker_that_connects_again_takes_its_name_over(running: Running) -> None:
    keys = (running.server.worker_port, running.keys.server.certificate, running.keys.worker)
    with peer(*keys, name=b"1-n-1") as before, peer(*keys, name=b"1-n-2") as other:
        for worker in (before, other):
            worker.send(b"here")
            assert worker.receive() == b"here"
        with peer(*keys, name=b"1-n-1") as again:
            again.send(b"news")
            assert again.receive() == b"news"
            assert not before.poll(), "its connection is closed"
        other.send(b"news")
        assert other.receive() == b"news"


def test_many_messages_of_one_peer_all_arrive(running: Running) -> None:
    keys = (running.server.worker_port, running.keys.server.certificate, running.keys.worker)
    messages = [b"%d" % number for number in range(2000)]
    with peer(*keys, name=b"1-n-1") as worker:
        for message in messages:
            worker.send(message)
        assert [worker.receive() for _ in messages] == messages


def test_a_handshake_has_to_end_in_time(narrow: Running) -> None:
    silent, slow = call(narrow.server.worker_port), call(narrow.server.worker_port)
    slow.sendall(client_hello()[:20])
    assert closed_by_peer(silent)
    assert closed_by_peer(slow)


@pytest.mark.parametrize("said", [b"", b"\x16", client_hello()], ids=["nothing", "a byte", "a hello"])
def test_unproven_peers_neither_keep_others_out_nor_take_more_than_their_room(
    narrow: Running, said: bytes
) -> None:
    callers = [call(narrow.server.worker_port) for _ in range(40)]
    for caller in callers:
        with contextlib.suppress(ConnectionError):
            caller.sendall(said)
    assert narrow.worker_hears()
    open_now = [each for each in psutil.Process().net_connections("tcp") if each.status == "ESTABLISHED"]
    inside = [each for each in open_now if each.laddr.port == narrow.server.worker_port]
    assert len(inside) <= _ROOM.silent + _ROOM.begun
    for caller in callers:
        caller.close()


def test_workers_beyond_the_room_wait_until_one_has_left(narrow: Running) -> None:
    keys = (narrow.server.worker_port, narrow.keys.server.certificate, narrow.keys.worker)
    with contextlib.ExitStack() as inside:
        for number in range(_ROOM.proven):
            worker = inside.enter_context(peer(*keys, name=b"%d" % number))
            worker.send(b"here")
            assert worker.poll()
        assert not narrow.worker_hears(patience=0.5)
    assert narrow.worker_hears()


def test_without_descriptors_it_waits_instead_of_spinning_and_recovers(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    """That it made after each burst of accepted connections, in seconds."""
    listener = running.server.workers.listener
    accept = listener._accept

    def look() -> float:
        pauses.append(accept())
        return pauses[-1]

    monkeypatch.setattr(listener, "_accept", look)
    callers = [socket.socket() for _ in range(MORE_THAN_ARE_LEFT)]
    spare = os.dup(0)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare, hard))  # none is left
    try:
        for caller in callers:
            caller.connect(("127.0.0.1", running.server.worker_port))
        until(lambda: pauses.count(OUT_OF_DESCRIPTORS) >= 2, "it looks again and again")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    os.close(spare)
    assert len(pauses) < 10
    for caller in callers:
        caller.close()
    assert running.worker_hears()


@pytest.mark.parametrize(("descriptors", "workers"), [(256, 75), (1024, 580), (4096, 3000), (65_536, 60_000)])
def test_workers_have_room_by_the_descriptors(descriptors: int, workers: int) -> None:
    rooms = port_limits(descriptors, sites=1)
    assert rooms.workers.proven >= workers
    connections = sum(room.proven + room.silent + room.begun for room in (rooms.workers, rooms.clients))
    assert connections <= descriptors - 48
