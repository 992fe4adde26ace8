"""`python -m adaptor.protocol.relay PORT FOLDER [HOST]`: the end of a tunnel, on a remote login node.

sshd lets the remote end of a tunnel listen on the loopback only, which no compute node reaches. The relay
listens for the nodes and passes their bytes on to the loopback's PORT. The daemon starts it over the same
ssh connection, reads the line that it prints, and then sends a byte every few seconds. The relay exits
after SILENCE seconds without input, or at its end, so a lost connection leaves none behind.

The bytes are encrypted and authenticated from worker to daemon: the relay can read nothing but that the
daemon has let a worker in, and bounds what all others cost here and there (`adaptor.protocol.gate`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from adaptor import __version__
from adaptor.processes.descriptors import raise_limit
from adaptor.protocol.access import RELAYED_ACCESS, AccessError, read_access
from adaptor.protocol.gate import BACKLOG, Gate, Room
from adaptor.protocol.interfaces import addresses

SILENCE = 20.0
"""Seconds without a byte from the daemon after which the relay exits."""
_LAST_PORT_PATIENCE = 3.0
"""Seconds of tries to take over the port of the relay before this one, which may still be exiting."""
_CHUNK = 65536
_STRANGERS = 64
_OWN_DESCRIPTORS = 32


class Opened(msgspec.Struct, frozen=True):
    """The line that a relay prints when the nodes can connect."""

    version: str
    addresses: tuple[str, ...]
    """The likeliest first."""


async def relay(target: int, folder: Path, host: str | None) -> None:
    """Serve until the input ends or falls silent."""

    async def open_inside(protocol: Callable[[], asyncio.Protocol]) -> None:
        await asyncio.get_running_loop().create_connection(protocol, "127.0.0.1", target)

    listener = await _listen(_last_port(folder))
    port = int(listener.getsockname()[1])
    serving = asyncio.create_task(Gate(listener, open_inside, _room(), "workers").serve())
    line = msgspec.json.encode(Opened(__version__, addresses(host, port, loopback=False)))
    os.write(sys.stdout.fileno(), line + b"\n")
    try:
        await _while_input_comes()
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def _listen(last_port: int) -> socket.socket:
    everywhere = "0.0.0.0"  # noqa: S104  (the compute nodes may come by any interface)
    give_up = time.monotonic() + _LAST_PORT_PATIENCE
    while last_port and time.monotonic() < give_up:
        with contextlib.suppress(OSError):
            return socket.create_server((everywhere, last_port), backlog=BACKLOG)
        await asyncio.sleep(0.2)
    return socket.create_server((everywhere, 0), backlog=BACKLOG)


def _last_port(folder: Path) -> int:
    """The port that workers of the relay before this one still try; 0: there was none."""
    try:
        address = read_access(folder / RELAYED_ACCESS).addresses[0]
    except (AccessError, IndexError):
        return 0
    port = address.rpartition(":")[2]
    return int(port) if port.isdigit() else 0


def _room() -> Room:
    """All descriptors but a few are for workers, and some of those for strangers."""
    passages = (raise_limit() - _OWN_DESCRIPTORS) // 2
    strangers = max(1, min(_STRANGERS, passages // 8))
    return Room(known=max(1, passages - 2 * strangers), strangers=strangers)


async def _while_input_comes() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
    )
    with contextlib.suppress(asyncio.TimeoutError):
        while await asyncio.wait_for(reader.read(_CHUNK), SILENCE):
            pass


def main(arguments: list[str]) -> int:
    if not 2 <= len(arguments) <= 3 or not arguments[0].isdigit():
        print("usage: python -m adaptor.protocol.relay PORT FOLDER [HOST]", file=sys.stderr)
        return 2
    asyncio.run(relay(int(arguments[0]), Path(arguments[1]), arguments[2] if len(arguments) == 3 else None))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
