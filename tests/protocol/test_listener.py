"""Who has to go if too many unproven connections are open."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from unittest.mock import Mock

import msgspec
import psutil
import pytest

from adaptor.protocol import listener
from adaptor.protocol.access import host_and_port
from adaptor.protocol.listener import Caller, ConnectionRoom, Listener
from tests.living import PATIENCE

ELSEWHERE, HERE = "192.0.2.7", "127.0.0.1"
ROOM = ConnectionRoom(proven=9, silent=3, begun=3)


class Accepting:
    """In place of a listening socket: connections from these addresses are waiting."""

    def __init__(self, *addresses: str) -> None:
        pairs = [(address, socket.socketpair()) for address in addresses]
        self.callers = [ours for _, (ours, _) in pairs]
        self.waiting = [(theirs, (address, 1)) for address, (_, theirs) in pairs]
        self._ready, self._tell = socket.socketpair()
        self._tell.send(b"!")

    def fileno(self) -> int:
        return self._ready.fileno()

    def setblocking(self, _blocking: bool) -> None: ...

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        if not self.waiting:
            raise BlockingIOError
        return self.waiting.pop(0)

    def close(self) -> None:
        self._ready.close()

    def kept(self) -> list[int]:
        """The places, among the addresses, of the connections that are open."""
        return [place for place, caller in enumerate(self.callers) if not _is_closed(caller)]


def _is_closed(caller: socket.socket) -> bool:
    try:
        caller.setblocking(False)
        return caller.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:  # reset, or closed here
        return True


def kept(
    accepting: Accepting,
    room: ConnectionRoom,
    make: type[Caller] = Caller,
    then: Callable[[], None] | None = None,
) -> list[int]:
    """Which callers, none of whom says anything, are connected once those that may are accepted."""

    async def serve() -> list[int]:
        serving = asyncio.create_task(Listener(accepting, room, "workers", make).serve())  # type: ignore[arg-type]
        await some_time()
        if then is not None:
            then()
            await some_time()
        found = accepting.kept()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        return found

    return asyncio.run(serve())


async def some_time() -> None:
    for _ in range(1000):
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_PAUSE", 0.0)


@pytest.mark.parametrize(
    ("addresses", "left"),
    [
        ([HERE] * 5, [2, 3, 4]),
        ([ELSEWHERE, *[HERE] * 5], [0, 4, 5]),
        ([ELSEWHERE, "127.0.0.2", "127.0.0.3", "127.9.0.1"], [0, 2, 3]),
        ([HERE, HERE, ELSEWHERE, ELSEWHERE], [1, 2, 3]),
    ],
    ids=["the oldest", "of the address that has most", "all of 127.* is one address", "not the newcomer"],
)
def test_who_is_closed_of_those_that_keep_others_waiting(addresses: list[str], left: list[int]) -> None:
    assert kept(Accepting(*addresses), msgspec.structs.replace(ROOM, manners=0.0)) == left


def test_prompt_callers_keep_their_places_and_the_next_ones_wait() -> None:
    """Workers of two nodes that start at the same time, with a daemon that is slow to answer."""
    accepting = Accepting(*[HERE, ELSEWHERE] * 20)
    room = ConnectionRoom(proven=99, silent=10, begun=10, patience=60, manners=60)
    assert kept(accepting, room) == list(range(40))
    assert len(accepting.waiting) == 40 - 10 - 1, "the one at the door is accepted"


def test_the_last_one_in_line_gets_the_first_place_that_is_free() -> None:
    accepting = Accepting(*[HERE] * 4)
    made: list[Caller] = []

    def make(listening: Listener) -> Caller:
        made.append(Caller(listening))
        return made[-1]

    def one_leaves() -> None:
        assert len(made) == 3
        accepting.callers[1].close()

    kept(accepting, msgspec.structs.replace(ROOM, manners=60.0), make, one_leaves)
    assert len(made) == 4


def test_of_a_flood_from_one_address_even_those_go_that_have_just_come() -> None:
    accepting = Accepting(*[HERE] * 10, ELSEWHERE)
    room = ConnectionRoom(proven=99, silent=10, begun=10, patience=60, manners=60)
    assert kept(accepting, room) == list(range(1, 11))


def test_who_has_answered_keeps_his_place_however_late_he_is_read() -> None:
    accepting, fourth = Accepting(HERE, HERE, HERE), Accepting(HERE)
    accepting.callers[0].send(b"the whole of an answer")

    def one_more() -> None:
        accepting.waiting += fourth.waiting

    assert kept(accepting, msgspec.structs.replace(ROOM, manners=0.0), Unread, one_more) == [0, 2]


class Unread(Caller):
    """The daemon has not come to read what it has sent."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.pause_reading()


def test_connections_that_their_peers_have_closed_cost_nothing_and_stop_nobody() -> None:
    """A thousand workers that call at once, and call again because nobody answered in time."""
    accepting = Accepting(*[HERE] * 300)
    for caller in accepting.callers[:-1]:
        caller.send(b"begins its handshake")
        caller.close()
    made: list[Caller] = []

    async def serve() -> None:
        room = ConnectionRoom(proven=9, silent=128, begun=128)

        def make(listening: Listener) -> Caller:
            made.append(Caller(listening))
            return made[-1]

        serving = asyncio.create_task(Listener(accepting, room, "workers", make).serve())  # type: ignore[arg-type]
        while accepting.waiting:
            await asyncio.sleep(0)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(serve())
    assert len(made) == 1


def test_a_machine_answers_though_the_peer_reads_nothing() -> None:
    async def answers() -> list[bool]:
        listening = socket.create_server((HERE, 0))
        with socket.create_connection(listening.getsockname()[:2]), listening:
            ours, _ = listening.accept()
            caller = Caller(Listener(listening, ROOM, "workers", Caller))
            found = [caller.machine_answers()]
            await asyncio.get_running_loop().connect_accepted_socket(lambda: caller, ours)
            assert caller.transport is not None
            caller.transport.write(b"!")  # type: ignore[attr-defined]
            found.append(caller.machine_answers())
            caller.abort()
        return found

    assert asyncio.run(answers()) == [False, True]


def test_of_a_peer_that_is_no_other_machine_nothing_tells() -> None:
    async def answers() -> bool:
        ours, theirs = socket.socketpair()
        with theirs:
            caller = Caller(Listener(socket.socket(), ROOM, "workers", Caller))
            await asyncio.get_running_loop().connect_accepted_socket(lambda: caller, ours)
            told = caller.machine_answers()
            caller.abort()
        return told

    assert not asyncio.run(answers())


# --- machines without IPv4 -----------------------------------------------------------------------


def interfaces(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """The machine has these addresses, besides those of its loopback."""
    families = [socket.AF_INET6 if ":" in each else socket.AF_INET for each in addresses]
    found = [Mock(address=each, family=family) for each, family in zip(addresses, families, strict=True)]
    loopback = [Mock(address=each, family=socket.AF_INET6) for each in ("::1", "fe80::1%lo")]
    monkeypatch.setattr(psutil, "net_if_stats", lambda: {"eth0": Mock(isup=True), "lo": Mock(isup=True)})
    monkeypatch.setattr(psutil, "net_if_addrs", lambda: {"eth0": found, "lo": loopback})
    monkeypatch.setattr(socket, "getfqdn", lambda: "login1")


def test_a_machine_with_ipv4_is_reached_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    interfaces(monkeypatch, "10.0.0.7", "2001:db8::7")
    assert listener.interface_of(loopback=False) == "0.0.0.0"
    assert listener.addresses(None, 5, loopback=False) == (
        "tcp://10.0.0.7:5",
        "tcp://login1:5",
        "tcp://127.0.0.1:5",
    )
    assert listener.addresses(None, 5, loopback=True) == ("tcp://127.0.0.1:5",)


def test_a_machine_without_ipv4_is_reached_by_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "loopback_address", lambda: "::1")
    interfaces(monkeypatch, "2001:db8::7", "fe80::7%eth0")
    assert listener.interface_of(loopback=False) == "::"
    assert listener.interface_of(loopback=True) == "::1"
    told = listener.addresses(None, 5, loopback=False)
    assert told == ("tcp://[2001:db8::7]:5", "tcp://login1:5", "tcp://[::1]:5")
    assert [host_and_port(each) for each in told] == [("2001:db8::7", 5), ("login1", 5), ("::1", 5)]


def test_where_there_is_no_loopback_of_ipv4_that_of_ipv6_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoIpv4(socket.socket):
        def bind(self, _address: object) -> None:
            raise OSError(99, "Cannot assign requested address")

    monkeypatch.setattr(socket, "socket", NoIpv4)
    assert listener.loopback_address() == "::1"


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_a_port_of_ipv6_takes_connections() -> None:
    with listener.listen("::1") as listening:
        socket.create_connection(listening.getsockname()[:2], timeout=PATIENCE).close()
