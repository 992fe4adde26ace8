"""Who has to go if too many unproven connections are open."""

from __future__ import annotations

import asyncio
import socket

import pytest

from adaptor.protocol.listener import Caller, ConnectionRoom, Listener

ELSEWHERE, HERE = "192.0.2.7", "127.0.0.1"


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
        listener = Listener(accepting, ConnectionRoom(proven=9, silent=3, begun=3), "workers", Caller)  # type: ignore[arg-type]
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
        listener = Listener(accepting, room, "workers", lambda each: made.append(Caller(each)) or made[-1])  # type: ignore[arg-type, func-returns-value]
        serving = asyncio.create_task(listener.serve())
        while accepting._waiting:
            await asyncio.sleep(0)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(serve())
    assert len(made) == 1
