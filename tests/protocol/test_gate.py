from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from adaptor.protocol.gate import Gate, Room


def test_short_messages_are_not_held_back() -> None:
    """Without TCP_NODELAY a lease waits 40 ms for the acknowledgement of the message before it."""

    async def option() -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        reached: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def open_inside(protocol: Callable[[], asyncio.BaseProtocol]) -> None:
            passage = protocol()._passage  # type: ignore[attr-defined]
            outside = passage.outside.transport.get_extra_info("socket")
            reached.set_result(outside.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            raise ConnectionRefusedError("nobody is there")

        serving = asyncio.create_task(Gate(listener, open_inside, Room(known=1, strangers=1), "x").serve())
        _, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(b"\xff")
        set_to = await asyncio.wait_for(reached, 20)
        writer.close()
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        return set_to

    assert asyncio.run(option())
