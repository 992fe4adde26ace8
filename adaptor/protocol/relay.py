"""`python -m adaptor.protocol.relay PORT FOLDER [HOST]`: the end of a tunnel, on a remote login node.

sshd lets the remote end of a tunnel listen on the loopback only, which no compute node reaches. The relay
listens for the nodes and passes their bytes on to the loopback's PORT. The daemon starts it over the same
ssh connection, reads the line that it prints, and then sends a byte every few seconds. The relay exits
after SILENCE seconds without input, or at its end, so a lost connection leaves none behind.

The bytes are encrypted and authenticated from worker to daemon: the relay can read nothing of them, and knows
no key. It holds a bounded number of connections that send nothing (`adaptor.protocol.listener`); the daemon
closes those that do not prove who they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import time
from pathlib import Path

import msgspec

from adaptor import __version__
from adaptor.processes.commands import raise_limit
from adaptor.protocol.access import RELAYED_ACCESS, last_port
from adaptor.protocol.listener import BACKLOG, Caller, ConnectionRoom, Listener, addresses, listen

SILENCE = 20.0  # seconds without a byte from the daemon after which the relay exits
_LAST_PORT_PATIENCE = 3.0
"""Seconds of tries to take over the port of the relay before this one, which may still be exiting."""
_CHUNK = 65536
_SILENT = 64
_OWN_DESCRIPTORS = 32


class Opened(msgspec.Struct, frozen=True):
    """The line that a relay prints when the nodes can connect."""

    version: str
    addresses: tuple[str, ...]  # the likeliest first


async def relay(target: int, folder: Path, host: str | None) -> None:
    """Serve until the input ends or falls silent."""

    # All descriptors but a few, two for each connection; the daemon says who may stay.
    connections = (raise_limit() - _OWN_DESCRIPTORS) // 2
    silent = max(1, min(_SILENT, connections // 8))
    listener = Listener(
        await _listening(last_port(folder / RELAYED_ACCESS)),
        ConnectionRoom(proven=max(1, connections - silent), silent=silent, begun=1),
        "workers",
        lambda listener: _Outside(listener, target),
    )
    port = listener.port
    serving = asyncio.create_task(listener.serve())
    line = msgspec.json.encode(Opened(__version__, addresses(host, port, loopback=False)))
    os.write(sys.stdout.fileno(), line + b"\n")
    try:
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer
        )
        with contextlib.suppress(asyncio.TimeoutError):
            while await asyncio.wait_for(reader.read(_CHUNK), SILENCE):
                pass
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


class _Outside(Caller):
    """A worker's connection, passed on to the target from its first byte."""

    def __init__(self, listener: Listener, target: int) -> None:
        super().__init__(listener)
        self._target = target
        self._inside = _Inside(self)
        self._early = bytearray()
        """Bytes that came before the target's connection was made; nothing more is read until then."""

    def data_received(self, data: bytes) -> None:
        if self._inside.transport is not None:
            self._inside.transport.write(data)
            return
        if not self._early:
            self._listener.proven(self)
            self._listener.begin(self._connect())
        self._early += data
        if self.transport is not None:
            self.transport.pause_reading()

    async def _connect(self) -> None:
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: self._inside, "127.0.0.1", self._target
            )
        except OSError as error:
            self._listener.turn_away(self, f"the daemon's end of the tunnel refuses: {error.strerror}")

    def connected(self, inside: asyncio.Transport) -> None:
        if self.transport is None or self.transport.is_closing():
            inside.abort()
            return
        inside.write(bytes(self._early))
        self.transport.resume_reading()

    def pause_writing(self) -> None:
        if self._inside.transport is not None:
            self._inside.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._inside.transport is not None:
            self._inside.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        if self._inside.transport is not None:
            self._inside.transport.close()  # after what is on its way


class _Inside(asyncio.Protocol):
    """The other half of a worker's connection: to the target."""

    def __init__(self, outside: _Outside) -> None:
        self.transport: asyncio.Transport | None = None
        self._outside = outside

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._outside.connected(transport)

    def data_received(self, data: bytes) -> None:
        if self._outside.transport is not None:
            self._outside.transport.write(data)

    def pause_writing(self) -> None:
        if self._outside.transport is not None:
            self._outside.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._outside.transport is not None:
            self._outside.transport.resume_reading()

    def connection_lost(self, _error: Exception | None) -> None:
        if self._outside.transport is not None:
            self._outside.transport.close()


async def _listening(before: int) -> socket.socket:
    everywhere = "0.0.0.0"  # noqa: S104  (the compute nodes may come by any interface)
    give_up = time.monotonic() + _LAST_PORT_PATIENCE
    while before and time.monotonic() < give_up:
        with contextlib.suppress(OSError):
            return socket.create_server((everywhere, before), backlog=BACKLOG)
        await asyncio.sleep(0.2)
    return listen(everywhere)


def main(arguments: list[str]) -> int:
    if not 2 <= len(arguments) <= 3 or not arguments[0].isdigit():
        print("usage: python -m adaptor.protocol.relay PORT FOLDER [HOST]", file=sys.stderr)
        return 2
    asyncio.run(relay(int(arguments[0]), Path(arguments[1]), arguments[2] if len(arguments) == 3 else None))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
