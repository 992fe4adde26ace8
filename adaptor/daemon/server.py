"""The daemon's two ports, one for workers and one for the command line: encrypted, one certificate each.

No message is read of a peer that has not proved to have the port's certificate (`adaptor.protocol.channel`);
what such peers cost is bounded (`adaptor.protocol.listener`).
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec

from adaptor.api.question import PROTOCOL
from adaptor.protocol import access
from adaptor.protocol.channel import LARGEST_FROM_CLIENT, LARGEST_FROM_WORKER, Channel, ChannelError, Party
from adaptor.protocol.keys import Keys
from adaptor.protocol.listener import Caller, ConnectionRoom, Listener, addresses, interface_of, listen

_OWN = 48  # descriptors of the journal, the log, the loop and the sockets themselves
_OF_A_SITE = 20  # descriptors of commands under way, and of links to its machine
_SILENT, _BEGUN = 512, 512  # of the workers' port, at most
_FEW = 8
_FEWEST_CLIENTS, _MOST_CLIENTS = 4, 256
"""Programs that append tasks and follow bags stay connected, with a connection for each of their threads."""


class PortLimits(msgspec.Struct, frozen=True):
    """Connections that the two ports take."""

    workers: ConnectionRoom
    clients: ConnectionRoom


def port_limits(descriptors: int, sites: int) -> PortLimits:
    """Division of the descriptors that a daemon may have open. Workers get what is left."""
    left = max(0, descriptors - _OWN - _OF_A_SITE * sites)
    clients = ConnectionRoom(
        proven=max(_FEWEST_CLIENTS, min(_MOST_CLIENTS, left // 32)),
        silent=4 * _FEW,
        begun=2 * _FEW if left < _FEW * _SILENT else 8 * _FEW,
        manners=0.0,  # people wait: an unproven crowd must not hold these few places
    )
    silent, begun = max(_FEW, min(_SILENT, left // 16)), max(_FEW, min(_BEGUN, left // 4))
    proven = left - clients.proven - clients.silent - clients.begun - silent - begun
    return PortLimits(ConnectionRoom(proven=max(_FEW, proven), silent=silent, begun=begun), clients)


_BATCH = 200  # messages handled before what they cause is written and sent
_UNHEARD = 32
"""Messages of one peer that wait to be heard; from then on its connection is not read. Workers repeat what is
not acknowledged, so a daemon that falls behind would otherwise take ever more memory."""
_UNREAD = 64 * 2**20
"""Bytes that wait for one peer to read them; one that reads nothing then loses its connection."""
_LONGEST_NAME = 1000  # bytes
_LINGER = 1.0  # seconds for the last messages when the daemon ends

PeerMessage = tuple[bytes, bytes]  # the peer's identity, and what it sent
FOREIGN = b"foreign-"  # begins the identities of clients that do not speak our `PROTOCOL`
_KEY_CONNECTIONS = 16  # of one key with a grant: with another one, its oldest is closed


class ClientIdentity(msgspec.Struct, frozen=True):
    """Facts that the identity of a client contains."""

    same: bool = True  # whether it speaks our `PROTOCOL`
    key: str = ""  # the fingerprint of its key, if that has a grant; empty: the user's own key

    @classmethod
    def of(cls, identity: bytes) -> ClientIdentity:
        key, _, _ = identity.removeprefix(FOREIGN).rpartition(b"-")
        return cls(not identity.startswith(FOREIGN), key.decode())


class Server:
    def __init__(
        self, keys: Keys, limits: PortLimits, *, loopback: bool, worker_port: int = 0, client_port: int = 0
    ) -> None:
        """Bind both ports.

        Args:
            limits: connections that each port takes.
            loopback: listen on the loopback only, because no worker runs elsewhere.
            worker_port: 0, or a port that is taken if it is free.

        Raises AdaptorError: no port can be bound.
        """
        interface = interface_of(loopback=loopback)
        self.other_transports: list[Callable[[bytes, bytes], bool]] = []
        """Transports of workers that do not use the port: each returns whether it takes a message to this
        worker."""
        workers = Party(keys.server, keys.worker.certificate, server=True)
        clients = Party(keys.server, keys.client.certificate, server=True, protocol=PROTOCOL)
        self.workers = Port(
            (interface, worker_port), "workers", workers, limits.workers, LARGEST_FROM_WORKER, named=True
        )
        self.clients = Port(
            (interface, client_port),
            "command line",
            clients,
            limits.clients,
            LARGEST_FROM_CLIENT,
            named=False,
        )
        self.worker_port, self.client_port = self.workers.listener.port, self.clients.listener.port

    async def serve(
        self,
        on_workers: Callable[[list[PeerMessage]], Awaitable[None]],
        on_clients: Callable[[list[PeerMessage]], Awaitable[None]],
    ) -> None:
        """Hand over what arrives, in batches, until cancelled."""
        await asyncio.gather(self.workers.serve(on_workers), self.clients.serve(on_clients))

    def machine_answers(self, worker: str) -> bool:
        """Whether the machine of a worker answers, so that only the worker itself may be stopped or hang.

        False: it does not, or nothing tells.
        """
        return self.workers.machine_answers(worker.encode())

    async def send_worker(self, identity: bytes, data: bytes) -> None:
        if not any(send(identity, data) for send in self.other_transports):
            self.workers.send(identity, data)


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

    async def serve(self, handle: Callable[[list[PeerMessage]], Awaitable[None]]) -> None:
        serving = asyncio.create_task(self.listener.serve())
        try:
            while True:
                await self._arrived.wait()
                batch: list[PeerMessage] = []
                while self._messages and len(batch) < _BATCH:
                    connection, data = self._messages.popleft()
                    connection.heard()
                    batch.append((connection.identity, data))
                if not self._messages:
                    self._arrived.clear()
                await handle(batch)
                await asyncio.sleep(0)  # the other port, and what has come meanwhile
        finally:
            until = time.monotonic() + _LINGER
            while any(each.unread for each in self._connections.values()) and time.monotonic() < until:
                await asyncio.sleep(0.01)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    def send(self, identity: bytes, data: bytes) -> None:
        """Send a message; it is lost if the peer is not connected."""
        connection = self._connections.get(identity)
        if connection is not None:
            connection.send(data)

    def machine_answers(self, identity: bytes) -> bool:
        """Whether the peer's machine has acknowledged something lately; False: the peer is not connected."""
        connection = self._connections.get(identity)
        return connection is not None and connection.machine_answers()

    def connected(self, identity: bytes) -> bool:
        """Whether a peer is connected, as far as its machine has told."""
        return identity in self._connections

    async def reads(self, identity: bytes) -> bool:
        """Wait until a peer has read nearly all that was sent; returns whether it is connected."""
        connection = self._connections.get(identity)
        if connection is not None:
            await connection.reads.wait()
        return connection is not None and self._connections.get(identity) is connection

    # --- what connections report -----------------------------------------------------------------

    def enter(self, connection: _Connection) -> None:
        """A peer is proven and has its identity: a connection that it had before is over."""
        before = self._connections.get(connection.identity)
        if connection.key:
            same = [each for each in self._connections.values() if each.key == connection.key]
            for each in same[: len(same) + 1 - _KEY_CONNECTIONS]:
                each.abort()
                self.left(each)
        self._connections[connection.identity] = connection
        if before is not None:
            before.abort()

    def left(self, connection: _Connection) -> None:
        if self._connections.get(connection.identity) is connection:
            del self._connections[connection.identity]

    def arrived(self, connection: _Connection, messages: list[bytes]) -> None:
        self._messages.extend((connection, message) for message in messages)
        self._arrived.set()

    def number(self, channel: Channel) -> bytes:
        """An identity for a peer that has not said one."""
        key = f"{channel.key}-".encode() if channel.key else b""
        return b"%s%s%d" % (b"" if channel.agreed else FOREIGN, key, next(self._numbers))


class _Connection(Caller):
    def __init__(self, listener: Listener, port: Port) -> None:
        super().__init__(listener)
        self.identity = b""  # empty until the peer is proven and has said it
        self._port = port
        self._channel: Channel | None = None  # None: the peer has not sent anything
        self._unheard = 0
        self.reads = asyncio.Event()  # whether the peer reads as fast as it is written to, or has left
        self.reads.set()

    @property
    def key(self) -> str:
        """The fingerprint of the peer's key, from its channel; empty: no grant, or nothing received yet."""
        return "" if self._channel is None else self._channel.key

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
                began = time.thread_time()
                try:
                    messages = self._channel.receive(data)
                finally:
                    self._listener.spent += time.thread_time() - began
                if self._channel.proven:
                    self._listener.proven(self)
                    if not self._port.named:
                        self._enter(self._port.number(self._channel))
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
        self.reads.clear()
        self._regulate()

    def resume_writing(self) -> None:
        self.reads.set()
        self._regulate()

    def _regulate(self) -> None:
        """Read only what can be handled and answered."""
        if self.transport is None or self.transport.is_closing():
            return
        if not self.reads.is_set() or self._unheard >= _UNHEARD:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._port.left(self)
        self.reads.set()


def write_client_access(
    directory: Path, keys: Keys, server: Server, host: str | None, loopback: bool
) -> None:
    found = addresses(host, server.client_port, loopback=loopback)
    nearest_first = (found[-1], *found[:-1])
    access.write_access(
        directory / access.CLIENT_ACCESS,
        access.Access(addresses=nearest_first, server=keys.server.certificate, own=keys.client),
    )


def write_key_access(directory: Path, name: str, own: access.Credentials | None = None) -> Path:
    """Write how the programs with a key reach the daemon, as the command line does.

    `own`: of a new key; None: as its file has it.

    Raises AccessError: there is no such file, or it is damaged.
    """
    path, known = directory / access.key_access(name), access.read_access(directory / access.CLIENT_ACCESS)
    access.write_access(path, msgspec.structs.replace(known, own=own or access.read_access(path).own))
    return path


def write_site_access(directory: Path, keys: Keys, site: str, addresses: tuple[str, ...]) -> Path:
    """Write the access file of a site's workers; running ones read it again when the daemon is silent.

    Args:
        directory: the state directory.
        addresses: `tcp://host:port` or `spool:///directory`, the likeliest first.
    """
    path = directory / access.worker_access(site)
    access.write_access(path, site_access(keys, addresses))
    return path


def site_access(keys: Keys, addresses: tuple[str, ...]) -> access.Access:
    """The access file of a site's workers."""
    return access.Access(addresses=addresses, server=keys.server.certificate, own=keys.worker)


def last_worker_port(directory: Path, sites: Iterable[str]) -> int:
    """The port to which workers of the previous daemon still connect; 0: there was none."""
    return next(
        (port for site in sites if (port := access.last_port(directory / access.worker_access(site)))), 0
    )
