"""The daemon's two sockets, one for workers and one for the command line: encrypted, allow-listed.

CURVE encrypts and authenticates both ends; a key that is not on the socket's own list is turned
away in the handshake, before any message of it is read. Each port is a gate (`adaptor.protocol.gate`), which
bounds what strangers cost; ZMQ itself listens on a socket that no other process can reach.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable

import zmq
import zmq.asyncio
from zmq.auth.asyncio import AsyncioAuthenticator

from adaptor.daemon.ports.doors import Doors
from adaptor.daemon.ports.inner_socket import InnerSocket
from adaptor.daemon.ports.rooms import Rooms
from adaptor.errors import AdaptorError
from adaptor.protocol.gate import BACKLOG, Gate
from adaptor.protocol.keys import Keys

log = logging.getLogger(__name__)

_LARGEST_FROM_WORKER = 64 * 1024 * 1024
_LARGEST_FROM_CLIENT = 1024 * 1024 * 1024
_BATCH = 200
"""Messages handled before what they cause is written and sent."""
_UNHEARD = 32
"""Messages of one peer that wait to be heard, at most; beyond that its connection is not read. Workers repeat
what is not acknowledged, so a daemon that falls behind would otherwise take ever more memory."""
_HANDSHAKE = 15_000
"""Milliseconds, at most."""


Message = tuple[bytes, bytes]
"""The peer's identity, and what it sent."""


class _AllowList:
    """What zmq's authenticator asks whether a client's key may pass."""

    def __init__(self, allowed: frozenset[bytes]) -> None:
        self._allowed = allowed

    def callback(self, domain: str, key: bytes) -> bool:
        if key in self._allowed:
            return True
        log.warning("a stranger was turned away from the %s socket", domain)
        return False


class Server:
    def __init__(
        self, keys: Keys, rooms: Rooms, *, loopback: bool, worker_port: int = 0, client_port: int = 0
    ) -> None:
        """Bind both sockets.

        Args:
            rooms: for how many connections.
            loopback: listen on 127.0.0.1 only, because no worker runs elsewhere.
            worker_port: 0, or a port that is taken if it is free.

        Raises:
            AdaptorError: no port can be bound.
        """
        self._context = zmq.asyncio.Context()
        self._authenticator = AsyncioAuthenticator(self._context)
        self._authenticator.start()
        for domain, pair in (("worker", keys.worker), ("client", keys.client)):
            allowed = _AllowList(frozenset({pair.public.encode()}))
            self._authenticator.configure_curve_callback(domain, credentials_provider=allowed)
        interface = "127.0.0.1" if loopback else "0.0.0.0"  # noqa: S104  (CURVE turns strangers away)
        self.other_transports: list[Callable[[bytes, bytes], bool]] = []
        """For workers that do not use the socket: each returns whether it takes a message to this worker."""
        self.workers = self._socket("worker", keys, _LARGEST_FROM_WORKER)
        self.clients = self._socket("client", keys, _LARGEST_FROM_CLIENT)
        self._inner = (InnerSocket(self.workers), InnerSocket(self.clients))
        outer = (_listen(interface, worker_port), _listen(interface, client_port))
        self.worker_port, self.client_port = (int(each.getsockname()[1]) for each in outer)
        self.worker_gate = Gate(outer[0], self._inner[0].open, rooms.workers, "workers")
        self.client_gate = Gate(outer[1], self._inner[1].open, rooms.clients, "command line")

    def _socket(self, domain: str, keys: Keys, largest: int) -> zmq.asyncio.Socket:
        router = self._context.socket(zmq.ROUTER)
        router.curve_server = True
        router.curve_publickey = keys.server.public.encode()
        router.curve_secretkey = keys.server.secret.encode()
        router.zap_domain = domain.encode()
        router.router_handover = True  # a worker that reconnects takes its identity over
        router.maxmsgsize = largest
        router.handshake_ivl = _HANDSHAKE
        router.sndhwm = 10_000
        router.rcvhwm = _UNHEARD
        router.linger = 1000
        return router

    async def serve(
        self,
        on_workers: Callable[[list[Message]], Awaitable[None]],
        on_clients: Callable[[list[Message]], Awaitable[None]],
    ) -> None:
        """Hand over what arrives, in batches, until cancelled."""
        doors = Doors(self.worker_gate, self.client_gate)
        try:
            await asyncio.gather(
                asyncio.to_thread(doors.keep),
                _receive(self.workers, on_workers),
                _receive(self.clients, on_clients),
            )
        finally:
            doors.close()

    async def send_worker(self, identity: bytes, data: bytes) -> None:
        if not any(send(identity, data) for send in self.other_transports):
            await self.workers.send_multipart((identity, data))

    async def send_client(self, identity: bytes, data: bytes) -> None:
        await self.clients.send_multipart((identity, data))

    def close(self) -> None:
        self._authenticator.stop()
        self.workers.close()
        self.clients.close()
        for inner in self._inner:
            inner.close()
        self._context.term()


async def _receive(router: zmq.asyncio.Socket, handle: Callable[[list[Message]], Awaitable[None]]) -> None:
    while True:
        batch = [await router.recv_multipart()]
        while len(batch) < _BATCH:
            try:
                batch.append(await router.recv_multipart(zmq.NOBLOCK))
            except zmq.Again:
                break
        await handle([(frames[0], frames[1]) for frames in batch if len(frames) == 2])


def _listen(interface: str, port: int) -> socket.socket:
    for choice in dict.fromkeys((port, 0)):
        try:
            return socket.create_server((interface, choice), backlog=BACKLOG)
        except OSError as error:
            log.warning("port %s cannot be bound: %s", choice, error)
    raise AdaptorError(f"no port can be bound on {interface}")
