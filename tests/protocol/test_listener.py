"""Who has to go if too many unproven connections are open."""

from __future__ import annotations

import asyncio
import socket
from unittest.mock import Mock

import psutil
import pytest

from adaptor.protocol import listener
from adaptor.protocol.access import host_and_port
from adaptor.protocol.listener import Caller, ConnectionRoom, Listener

ELSEWHERE, HERE = "192.0.2.7", "127.0.0.1"
ROOM = ConnectionRoom(proven=9, silent=3, begun=3)


class Accepting:
    """In place of a listening socket: connections from these addresses are waiting."""

    def __init__(self, *addresses: str) -> None:
        pairs = [(address, socket.socketpair()) for address in addresses]
        self.callers = [ours for _, (ours, _) in pairs]
        self._waiting = [(theirs, (address, 1)) for address, (_, theirs) in pairs]
        self._ready, self._tell = socket.socketpair()
        self._tell.send(b"!")

    def fileno(self) -> int:
        return self._ready.fileno()

    def setblocking(self, _blocking: bool) -> None: ...

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        if not self._waiting:
            raise BlockingIOError
        return self._waiting.pop(0)

    def close(self) -> None:
        self._ready.close()

    def kept(self) -> list[int]:
        """The places, among the addresses, of the connections that are open."""
        return [place for place, caller in enumerate(self.callers) if not _is_closed(caller)]


def _is_closed(caller: socket.socket) -> bool:
    caller.setblocking(False)
    try:
        return caller.recv(1) == b""
    except BlockingIOError:
        return False


def kept(*addresses: str) -> list[int]:
    accepting = Accepting(*addresses)

    async def serve() -> list[int]:
        listener = Listener(accepting, ROOM, "workers", Caller)  # type: ignore[arg-type]
        serving = asyncio.create_task(listener.serve())
        while accepting._waiting:
            await asyncio.sleep(0)
        for _ in range(100):
            await asyncio.sleep(0)
        found = accepting.kept()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        return found

    return asyncio.run(serve())


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
def test_who_is_closed(addresses: list[str], left: list[int]) -> None:
    assert kept(*addresses) == left


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
        while accepting._waiting:
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
        socket.create_connection(listening.getsockname()[:2], timeout=5).close()
