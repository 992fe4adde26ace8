"""A listening port with a bound on what strangers cost; who has proved to be known passes freely.

libzmq bounds neither the connections of a socket nor, apart from the largest message, what a peer makes it
hold before the handshake. So a gate accepts in its place, reads the handshake along (`adaptor.protocol.zmtp`)
and passes the bytes on to the socket behind it. Strangers keep no newcomer waiting: where there are too many
of them, the one that has been dawdling longest has to go.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from adaptor.protocol.passage import Inside, Passage

log = logging.getLogger(__name__)

OpenInside = Callable[[Callable[[], asyncio.Protocol]], Coroutine[Any, Any, object]]
"""Connects a protocol to the socket behind a gate. Raises OSError."""

BACKLOG = 1024
_BURST = 10
_BREATH = 0.02
"""Seconds between two bursts of newcomers, so that a flood of them leaves most of the processor's time."""
_OUT_OF_DESCRIPTORS = 1.0
"""Seconds without newcomers after the system refuses one."""
_LOOK = 1.0
"""Seconds between two looks for those who dawdle."""
_REMARKS = 60.0
"""Seconds between two remarks in the log about the same trouble."""


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """How many connections a gate holds at a time.

    Each costs two descriptors, three where it leads to a socket of the same process.
    """

    known: int
    strangers: int
    """Before the end of their handshake; as many again that know the daemon's public key."""
    patience: float = 15.0
    """Seconds for the handshake."""


class Gate:
    def __init__(self, listener: socket.socket, open_inside: OpenInside, room: Room, whose: str) -> None:
        """`whose`: who is awaited here, for the log."""
        self._listener = listener
        self._open_inside = open_inside
        self._room = room
        self._whose = whose
        self._strangers: dict[Passage, float] = {}
        """By when each came, in the loop's seconds; the oldest first."""
        self._half_known: dict[Passage, float] = {}
        """Those that know the daemon's public key: no number of strangers drives them out."""
        self._known: set[Passage] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._remarked: dict[str, float] = {}

    @property
    def known(self) -> int:
        """Connections of peers that have proved to be known."""
        return len(self._known)

    async def serve(self) -> None:
        """Until cancelled."""
        self._listener.setblocking(False)
        loop = asyncio.get_running_loop()
        hurrying = loop.create_task(self._hurry())
        try:
            while True:
                await self._until_readable(loop)
                await asyncio.sleep(self._let_in())
        finally:
            hurrying.cancel()
            for passage in [*self._strangers, *self._half_known, *self._known]:
                passage.drop()
            for task in self._tasks:
                task.cancel()
            self._listener.close()

    async def _until_readable(self, loop: asyncio.AbstractEventLoop) -> None:
        readable = loop.create_future()

        def tell() -> None:
            loop.remove_reader(self._listener)
            if not readable.done():
                readable.set_result(None)

        loop.add_reader(self._listener, tell)
        try:
            await readable
        finally:
            loop.remove_reader(self._listener)

    def _let_in(self) -> float:
        """Accept some newcomers; seconds until the next ones may come."""
        for _ in range(_BURST):
            if len(self._known) >= self._room.known:
                self._remark(f"there is no room for more than {self._room.known} {self._whose} at a time")
                return _OUT_OF_DESCRIPTORS
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return 0.0
            except OSError as error:
                self._remark(f"no connection of {self._whose} can be accepted: {error.strerror}")
                return _OUT_OF_DESCRIPTORS
            self._admit(connection)
        return _BREATH

    def _admit(self, connection: socket.socket) -> None:
        if len(self._strangers) >= self._room.strangers:
            self._remark(f"more than {self._room.strangers} strangers at the port of the {self._whose}")
            next(iter(self._strangers)).drop()
        _prepare(connection)
        passage = Passage(self)
        self._strangers[passage] = asyncio.get_running_loop().time()
        self._begin(self._attend(connection, passage))

    async def _attend(self, connection: socket.socket, passage: Passage) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: passage.outside, connection)
        except OSError:
            connection.close()
            passage.drop()

    async def _hurry(self) -> None:
        """Whoever takes too long with the handshake has to go."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK)
            for passage, came in [*self._strangers.items(), *self._half_known.items()]:
                if came <= loop.time() - self._room.patience:
                    self.refused("it does not finish its handshake")
                    passage.drop()

    # --- what passages tell ----------------------------------------------------------------------

    def spoke(self, passage: Passage) -> None:
        """A stranger has begun to speak."""
        self._begin(self._connect(passage))

    async def _connect(self, passage: Passage) -> None:
        inside = Inside(passage)
        try:
            await self._open_inside(lambda: inside)
        except OSError as error:
            self._remark(f"nobody is behind the port of the {self._whose}: {error.strerror}")
            passage.drop()

    def welcomed(self, passage: Passage) -> None:
        """A stranger is known now."""
        self.left(passage)
        self._known.add(passage)

    def half_known(self, passage: Passage) -> None:
        """A stranger knows the daemon's public key."""
        came = self._strangers.pop(passage, None)
        if came is None:
            return
        if len(self._half_known) >= self._room.strangers:
            next(iter(self._half_known)).drop()
        self._half_known[passage] = came

    def left(self, passage: Passage) -> None:
        self._strangers.pop(passage, None)
        self._half_known.pop(passage, None)
        self._known.discard(passage)

    def refused(self, why: str) -> None:
        self._remark(f"a stranger was turned away from the port of the {self._whose}: {why}")

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _remark(self, text: str) -> None:
        """In the log, but not as often as strangers may knock."""
        now = asyncio.get_running_loop().time()
        if now - self._remarked.get(text, -_REMARKS) >= _REMARKS:
            self._remarked[text] = now
            log.warning("%s", text)


def _prepare(connection: socket.socket) -> None:
    """A machine that crashed says no goodbye; its connection must not take room for ever.

    A short message must not wait until the one before it is acknowledged, which takes 40 ms. asyncio sees to
    that only for sockets that were made with the number of the protocol.
    """
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 20)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
