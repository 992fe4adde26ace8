"""The daemon's two ports, one for workers and one for the command line: encrypted, one certificate each.

No message is read of a peer that has not proved to have the port's certificate (`adaptor.protocol.channel`);
what such peers cost is bounded (`adaptor.protocol.listener`).
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Awaitable, Callable

from adaptor.daemon.ports.rooms import Rooms
from adaptor.protocol.channel import LARGEST_FROM_CLIENT, LARGEST_FROM_WORKER, Channel, ChannelError, Party
from adaptor.protocol.keys import Keys
from adaptor.protocol.listener import Caller, ConnectionRoom, Listener, listen

_BATCH = 200
"""Messages handled before what they cause is written and sent."""
_UNHEARD = 32
"""Messages of one peer that wait to be heard; from then on its connection is not read. Workers repeat what is
not acknowledged, so a daemon that falls behind would otherwise take ever more memory."""
_UNREAD = 64 * 2**20
"""Bytes that wait for one peer to read them; one that reads nothing then loses its connection."""
_LONGEST_NAME = 1000
"""Bytes."""
_LINGER = 1.0
"""Seconds for the last messages when the daemon ends."""

Message = tuple[bytes, bytes]
"""The peer's identity, and what it sent."""


class Server:
    def __init__(
        self, keys: Keys, rooms: Rooms, *, loopback: bool, worker_port: int = 0, client_port: int = 0
    ) -> None:
        """Bind both ports.

        Args:
            rooms: for how many connections.
            loopback: listen on 127.0.0.1 only, because no worker runs elsewhere.
            worker_port: 0, or a port that is taken if it is free.

        Raises:
            AdaptorError: no port can be bound.
        """
        interface = "127.0.0.1" if loopback else "0.0.0.0"  # noqa: S104  (only proven peers are heard)
        self.other_transports: list[Callable[[bytes, bytes], bool]] = []
        """For workers that do not use the port: each returns whether it takes a message to this worker."""
        workers = Party(keys.server, keys.worker.certificate, server=True)
        clients = Party(keys.server, keys.client.certificate, server=True)
        self.workers = Port(
            (interface, worker_port), "workers", workers, rooms.workers, LARGEST_FROM_WORKER, named=True
        )
        self.clients = Port(
            (interface, client_port), "command line", clients, rooms.clients, LARGEST_FROM_CLIENT, named=False
        )
        self.worker_port, self.client_port = self.workers.listener.port, self.clients.listener.port

    async def serve(
        self,
        on_workers: Callable[[list[Message]], Awaitable[None]],
        on_clients: Callable[[list[Message]], Awaitable[None]],
    ) -> None:
        """Hand over what arrives, in batches, until cancelled."""
        await asyncio.gather(self.workers.serve(on_workers), self.clients.serve(on_clients))

    async def send_worker(self, identity: bytes, data: bytes) -> None:
        if not any(send(identity, data) for send in self.other_transports):
            self.workers.send(identity, data)

    async def send_client(self, identity: bytes, data: bytes) -> None:
        self.clients.send(identity, data)


class Port:
    """The connections of one port by their peers' identities, and the messages that wait to be heard."""

    def __init__(
        self,
        where: tuple[str, int],
        whose: str,
        party: Party,
        room: ConnectionRoom,
        largest: int,
        *,
        named: bool,
    ) -> None:
        """`named`: whether the first message of a peer is its identity; else it gets one."""
        self.party, self.largest, self.named = party, largest, named
        interface, port = where
        self.listener = Listener(
            listen(interface, port), room, whose, lambda listener: _Connection(listener, self)
        )
        self._connections: dict[bytes, _Connection] = {}
        self._messages: deque[tuple[_Connection, bytes]] = deque()
        self._arrived = asyncio.Event()
        self._numbers = itertools.count(1)

    async def serve(self, handle: Callable[[list[Message]], Awaitable[None]]) -> None:
        serving = asyncio.create_task(self.listener.serve())
        try:
            while True:
                await self._arrived.wait()
                await handle(self._batch())
                await asyncio.sleep(0)  # the other port, and what has come meanwhile
        finally:
            await self._flush()
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    def send(self, identity: bytes, data: bytes) -> None:
        """Send a message; it is lost if the peer is not connected."""
        connection = self._connections.get(identity)
        if connection is not None:
            connection.send(data)

    def _batch(self) -> list[Message]:
        batch: list[Message] = []
        while self._messages and len(batch) < _BATCH:
            connection, data = self._messages.popleft()
            connection.heard()
            batch.append((connection.identity, data))
        if not self._messages:
            self._arrived.clear()
        return batch

    async def _flush(self) -> None:
        until = time.monotonic() + _LINGER
        while any(each.unread for each in self._connections.values()) and time.monotonic() < until:
            await asyncio.sleep(0.01)

    # --- what connections report -----------------------------------------------------------------

    def enter(self, connection: _Connection) -> None:
        """A peer is proven and has its identity: a connection that it had before is over."""
        before = self._connections.get(connection.identity)
        self._connections[connection.identity] = connection
        if before is not None:
            before.abort()

    def left(self, connection: _Connection) -> None:
        if self._connections.get(connection.identity) is connection:
            del self._connections[connection.identity]

    def arrived(self, connection: _Connection, messages: list[bytes]) -> None:
        self._messages.extend((connection, message) for message in messages)
        self._arrived.set()

    def number(self) -> bytes:
        return b"%d" % next(self._numbers)


class _Connection(Caller):
    def __init__(self, listener: Listener, port: Port) -> None:
        super().__init__(listener)
        self.identity = b""
        """Empty until the peer is proven and has said it."""
        self._port = port
        self._channel: Channel | None = None
        """None: the peer has not sent anything."""
        self._unheard = 0
        self._unread = False
        """Whether the peer does not read as fast as it is written to."""

    @property
    def unread(self) -> int:
        """Bytes that wait for the peer."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def data_received(self, data: bytes) -> None:
        if self._channel is None:
            self._listener.begun(self)
            self._channel = self._port.party.channel(self._port.largest)
        try:
            if self._channel.proven:
                messages = self._channel.receive(data)
            else:
                messages = self._shake_hands(self._channel, data)
        except ChannelError as error:
            self._write()
            self._listener.turn_away(self, str(error))
            return
        self._write()
        if messages and not self.identity:
            self._enter(messages.pop(0)[:_LONGEST_NAME])
        if messages:
            self._unheard += len(messages)
            self._regulate()
            self._port.arrived(self, messages)

    def _shake_hands(self, channel: Channel, data: bytes) -> list[bytes]:
        """Raises ChannelError."""
        begun = time.perf_counter()
        try:
            messages = channel.receive(data)
        finally:
            self._listener.spent += time.perf_counter() - begun
        if channel.proven:
            self._listener.proven(self)
            if not self._port.named:
                self._enter(self._port.number())
        return messages

    def _enter(self, identity: bytes) -> None:
        self.identity = identity
        self._port.enter(self)

    def send(self, data: bytes) -> None:
        if self._channel is None or self.unread > _UNREAD:
            self.abort()
            return
        self._channel.send(data)
        self._write()

    def heard(self) -> None:
        """One of its messages is about to be handled."""
        self._unheard -= 1
        self._regulate()

    def _write(self) -> None:
        if self.transport is not None and self._channel is not None:
            self.transport.write(self._channel.outgoing())

    def pause_writing(self) -> None:
        self._unread = True
        self._regulate()

    def resume_writing(self) -> None:
        self._unread = False
        self._regulate()

    def _regulate(self) -> None:
        """Read only what can be handled and answered."""
        if self.transport is None or self.transport.is_closing():
            return
        if self._unread or self._unheard >= _UNHEARD:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._port.left(self)
