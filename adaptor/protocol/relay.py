"""`python -m adaptor.protocol.relay PORT FOLDER [HOST]`: the end of a tunnel, on a remote login node.

sshd lets the remote end of a tunnel listen on the loopback only, which no compute node reaches. The relay
listens for the nodes and passes their bytes on to the loopback's PORT. The daemon starts it over the same
ssh connection, reads the line that it prints, and then sends a byte every few seconds. The relay exits
after SILENCE seconds without input, or at its end, so a lost connection leaves none behind.

The bytes are encrypted and authenticated from worker to daemon: the relay can read nothing, and the
daemon refuses all other peers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from pathlib import Path

import msgspec

from adaptor import __version__
from adaptor.protocol.access import RELAYED_ACCESS, AccessError, read_access
from adaptor.protocol.interfaces import addresses

SILENCE = 20.0
"""Seconds without a byte from the daemon after which the relay exits."""
_LAST_PORT_PATIENCE = 3.0
"""Seconds of tries to take over the port of the relay before this one, which may still be exiting."""
_CHUNK = 65536


class Opened(msgspec.Struct, frozen=True):
    """The line that a relay prints when the nodes can connect."""

    version: str
    addresses: tuple[str, ...]
    """The likeliest first."""


async def relay(target: int, folder: Path, host: str | None) -> None:
    """Serve until the input ends or falls silent."""
    server = await _listen(target, _last_port(folder))
    async with server:
        port = int(server.sockets[0].getsockname()[1])
        line = msgspec.json.encode(Opened(__version__, addresses(host, port, loopback=False)))
        os.write(sys.stdout.fileno(), line + b"\n")
        await _while_input_comes()


async def _listen(target: int, last_port: int) -> asyncio.Server:
    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _pass_on(target, reader, writer)

    everywhere = "0.0.0.0"  # noqa: S104  (the compute nodes may come by any interface)
    give_up = time.monotonic() + _LAST_PORT_PATIENCE
    while last_port and time.monotonic() < give_up:
        with contextlib.suppress(OSError):
            return await asyncio.start_server(pass_on, everywhere, last_port, limit=_CHUNK)
        await asyncio.sleep(0.2)
    return await asyncio.start_server(pass_on, everywhere, 0, limit=_CHUNK)


def _last_port(folder: Path) -> int:
    """The port that workers of the relay before this one still try; 0: there was none."""
    try:
        address = read_access(folder / RELAYED_ACCESS).addresses[0]
    except (AccessError, IndexError):
        return 0
    port = address.rpartition(":")[2]
    return int(port) if port.isdigit() else 0


async def _pass_on(target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Both ways, until either side closes."""
    try:
        there, back = await asyncio.open_connection("127.0.0.1", target, limit=_CHUNK)
    except OSError:
        writer.close()
        return
    ways = [asyncio.ensure_future(_pump(reader, back)), asyncio.ensure_future(_pump(there, writer))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        back.close()
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()


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
