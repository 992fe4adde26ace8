"""What strangers cost the daemon's ports: little memory, few descriptors, and nobody's place."""

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

from adaptor.daemon.ports.rooms import Rooms, rooms_for
from adaptor.daemon.ports.server import Message, Server
from adaptor.protocol.gate import _OUT_OF_DESCRIPTORS, Room
from adaptor.protocol.keys import Keys, load_or_make_keys
from tests.e2e.lab import until
from tests.protocol.curve import GREETING, HELLO, call, closed_by_peer, oversized, peer

MB = 2**20
FEW = Rooms(
    workers=Room(known=3, strangers=4, patience=1.0), clients=Room(known=3, strangers=4, patience=1.0)
)
PLENTY = rooms_for(20_000, 1)
MORE_THAN_ARE_LEFT = 9
"""Callers: more than there are descriptors that the peer before them gives back a little later."""


class Running:
    """A server in a thread, which answers everything with what it was told."""

    def __init__(self, keys: Keys, rooms: Rooms) -> None:
        self.keys = keys
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(rooms)), daemon=True)
        self._thread.start()
        assert self._ready.wait(60)
        assert self.worker_hears(), "its doors are open"

    async def _serve(self, rooms: Rooms) -> None:
        self.server = Server(self.keys, rooms, loopback=True)
        self._loop = asyncio.get_running_loop()

        async def echo_worker(batch: list[Message]) -> None:
            for identity, data in batch:
                await self.server.send_worker(identity, data)

        async def echo_client(batch: list[Message]) -> None:
            for identity, data in batch:
                await self.server.send_client(identity, data)

        self._serving = asyncio.create_task(self.server.serve(echo_worker, echo_client))
        self._loop.call_soon(self._ready.set)
        with contextlib.suppress(asyncio.CancelledError):
            await self._serving
        self.server.close()

    @property
    def ports(self) -> tuple[int, int]:
        return self.server.worker_port, self.server.client_port

    def worker_hears(self, patience: float = 60.0, said: bytes = b"news", key: str = "worker") -> bool:
        pair = getattr(self.keys, key)
        keys = (self.keys.server.public, pair.public, pair.secret)
        with peer(self.server.worker_port, *keys, name=b"1-n-1") as dealer:
            dealer.send(said)
            return bool(dealer.poll(int(patience * 1000))) and dealer.recv() == said

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._serving.cancel)
        self._thread.join(60)
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
    [GREETING + oversized(500 * MB), GREETING + HELLO + oversized(60 * MB), GREETING, b"\xff"],
    ids=["large command", "large command after HELLO", "greeting", "one byte"],
)
def test_a_stranger_cannot_fill_the_memory(running: Running, port: int, beginning: bytes) -> None:
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


def test_known_peers_may_say_as_much_as_they_need(running: Running) -> None:
    assert running.worker_hears(said=os.urandom(5 * MB))


def test_a_key_that_is_not_on_the_ports_list_opens_nothing(running: Running) -> None:
    assert not running.worker_hears(patience=1.0, key="client")
    assert running.worker_hears()


def test_who_dawdles_has_to_go(narrow: Running) -> None:
    silent, slow = call(narrow.server.worker_port), call(narrow.server.worker_port)
    slow.sendall(GREETING[:20])
    assert closed_by_peer(silent)
    assert closed_by_peer(slow)


def test_strangers_neither_keep_newcomers_out_nor_cost_more_than_their_room(narrow: Running) -> None:
    callers = [call(narrow.server.worker_port) for _ in range(40)]
    assert narrow.worker_hears()
    open_now = [each for each in psutil.Process().net_connections("tcp") if each.status == "ESTABLISHED"]
    inside = [each for each in open_now if each.laddr.port == narrow.server.worker_port]
    assert len(inside) <= FEW.workers.strangers
    for caller in callers:
        caller.close()


def test_workers_beyond_the_room_wait_until_one_has_left(narrow: Running) -> None:
    keys = (narrow.keys.server.public, narrow.keys.worker.public, narrow.keys.worker.secret)
    with contextlib.ExitStack() as inside:
        for number in range(FEW.workers.known):
            dealer = inside.enter_context(peer(narrow.server.worker_port, *keys, name=b"%d" % number))
            dealer.send(b"here")
            assert dealer.poll(60_000)
        assert narrow.server.worker_gate.known == FEW.workers.known
        assert not narrow.worker_hears(patience=0.5)
    assert narrow.worker_hears()


def test_without_descriptors_it_waits_instead_of_spinning_and_recovers(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    """That it made after each look at its newcomers, in seconds."""
    gate = running.server.worker_gate
    let_in = gate._let_in

    def look() -> float:
        pauses.append(let_in())
        return pauses[-1]

    monkeypatch.setattr(gate, "_let_in", look)
    callers = [socket.socket() for _ in range(MORE_THAN_ARE_LEFT)]
    spare = os.dup(0)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare, hard))  # none is left
    try:
        for caller in callers:
            caller.connect(("127.0.0.1", running.server.worker_port))
        until(lambda: pauses.count(_OUT_OF_DESCRIPTORS) >= 2, "it looks again and again")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    os.close(spare)
    assert len(pauses) < 10
    for caller in callers:
        caller.close()
    assert running.worker_hears()


def test_the_inner_sockets_have_no_name_that_another_process_could_use(running: Running) -> None:
    names = [each.laddr for each in psutil.Process().net_connections("unix") if "adaptor-" in str(each.laddr)]
    assert all(not os.path.exists(str(name)) for name in names)


@pytest.mark.parametrize(("descriptors", "workers"), [(256, 25), (1024, 250), (4096, 1000), (65_536, 20_000)])
def test_workers_have_room_by_the_descriptors(descriptors: int, workers: int) -> None:
    rooms = rooms_for(descriptors, sites=1)
    assert rooms.workers.known >= workers
    passages = sum(room.known + 2 * room.strangers for room in (rooms.workers, rooms.clients))
    assert 3 * passages <= descriptors - 48
