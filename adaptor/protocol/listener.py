"""A listening port with bounds on what connections cost whose peers have not proved who they are.

Their number and the time for a handshake are limited, and handshakes get a third of the processor's time at
most. If there are too many of them, one that has kept us waiting is closed, of the address that has most: an
address that floods the port drives out its own. Callers that answer promptly keep their places, and the next
ones wait until places are free: so thousands of workers can call at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import select
import socket
import struct
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import psutil

from adaptor.errors import AdaptorError

log = logging.getLogger(__name__)

BACKLOG = 4096  # the system may allow fewer; those beyond it call again by themselves
_BURST = 10
_LOOKED_AT = 250
"""Connections of a burst, with those that their peers have closed by now. If a thousand workers call at once,
those that wait for longer than their patience call again: what they left behind costs no handshake."""
_FLOOD = 4
"""The ratio of the connections of two addresses from which on the larger is a flood: even prompt ones go."""
_PAUSE = 0.02  # seconds between two bursts of accepted connections, at least
_SHARE = 2.0  # seconds of pause by second of handshakes
OUT_OF_DESCRIPTORS = 1.0
"""Seconds of pause after the system refuses a connection, or when there is no room for one."""
_SIGNS_OF_LIFE = 10
"""Seconds of silence after which the machine of a peer is asked whether it lives, by TCP's keepalive."""
_LAST_ACKNOWLEDGEMENT = struct.Struct("@56xI")  # of `struct tcp_info` of Linux: milliseconds since it
_LOOK = 1.0  # seconds between two looks for handshakes that take too long
_REMARKS = 60.0  # seconds between two lines in the log about the same trouble


class ConnectionRoom(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of connections that a listener holds at a time; each connection costs one descriptor."""

    proven: int
    silent: int  # connections that have not sent a byte yet
    begun: int
    """Connections that have begun their handshake. Each takes some 45 KB; hundreds of workers may start at
    once."""
    patience: float = 15.0  # seconds for each of the two: to say something, and to end the handshake
    manners: float = 2.0  # seconds for a prompt caller to answer; others have to go if places are short


class Caller(asyncio.Protocol):
    """One accepted connection. A subclass says what its bytes mean."""

    def __init__(self, listener: Listener) -> None:
        self.address = ""
        self.transport: asyncio.Transport | None = None
        self._listener = listener
        self._ended = False

    def abort(self) -> None:
        """Close it at once; what is on its way is lost."""
        self._ended = True
        self._listener.left(self)
        if self.transport is not None:
            self.transport.abort()

    def has_answered(self) -> bool:
        """Whether bytes of it wait to be read."""
        connected = None if self.transport is None else self.transport.get_extra_info("socket")
        return connected is not None and _is_ready(connected, select.POLLIN)

    def machine_answers(self) -> bool:
        """Whether the peer's machine has acknowledged something lately, whatever the peer itself does."""
        connected = None if self.transport is None else self.transport.get_extra_info("socket")
        if connected is None:
            return False
        try:
            told = connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_ACKNOWLEDGEMENT.size)
        except OSError:
            return False
        if len(told) < _LAST_ACKNOWLEDGEMENT.size:
            return False
        return bool(_LAST_ACKNOWLEDGEMENT.unpack(told)[0] <= 2000 * _SIGNS_OF_LIFE)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self._ended:
            transport.abort()

    def connection_lost(self, _error: Exception | None) -> None:
        self._ended = True
        self._listener.left(self)


class Listener:
    def __init__(
        self, listening: socket.socket, room: ConnectionRoom, whose: str, make: Callable[[Listener], Caller]
    ) -> None:
        """
        Args:
            whose: who is awaited here, for the log.
            make: the protocol of a new connection.
        """
        self.spent = 0.0
        """Seconds of the processor that unproven peers have cost since the last burst; callers add to it."""
        self._listening = listening
        self._room = room
        self._whose = whose
        self._make = make
        # Since when each is waited for, in the loop's seconds; the oldest first.
        self._silent: dict[Caller, float] = {}
        self._begun: dict[Caller, float] = {}  # callers that have sent something
        self._next: tuple[socket.socket, str] | None = None  # accepted, and waiting for a place
        self._proven: set[Caller] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._remarked: dict[str, float] = {}

    @property
    def port(self) -> int:
        return int(self._listening.getsockname()[1])

    async def serve(self) -> None:
        """Serve connections until cancelled."""
        self._listening.setblocking(False)
        loop = asyncio.get_running_loop()
        watching = loop.create_task(self._watch())
        try:
            while True:
                if self._next is None:
                    await self._readable()
                await asyncio.sleep(self._accept())
        finally:
            watching.cancel()
            for caller in [*self._silent, *self._begun, *self._proven]:
                caller.abort()
            if self._next is not None:
                self._next[0].close()
            for task in self._tasks:
                task.cancel()
            self._listening.close()

    async def _readable(self) -> None:
        """Wait for the next connection."""
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._listening, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._listening)

    def _accept(self) -> float:
        """Accept a burst of connections; seconds until the next one."""
        spent, self.spent = self.spent, 0.0
        live = 0
        for _ in range(_LOOKED_AT):
            if live == _BURST:
                break
            if len(self._proven) >= self._room.proven:
                self.remark(f"there is no room for more than {self._room.proven} {self._whose} at a time")
                return OUT_OF_DESCRIPTORS
            try:
                connection, address = self._next or self._take()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                break
            except OSError as error:
                self.remark(f"no connection of {self._whose} can be accepted: {error.strerror}")
                return OUT_OF_DESCRIPTORS
            self._next = None
            if _has_left(connection):
                connection.close()
                continue
            if not self._make_room(address):
                self._next = connection, address
                break
            live += 1
            self._admit(connection, address)
        return max(_PAUSE, _SHARE * spent)

    def _take(self) -> tuple[socket.socket, str]:
        """The next connection, and whose it is. Raises OSError."""
        connection, (address, *_) = self._listening.accept()
        address = address.removeprefix("::ffff:")  # of IPv4, at a socket of IPv6
        return connection, "127" if address.startswith("127.") else address  # anybody here has all of 127.*

    def _admit(self, connection: socket.socket, address: str) -> None:
        # Notice a machine that crashed; send short messages at once.
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _SIGNS_OF_LIFE)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _SIGNS_OF_LIFE)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 11)
        caller = self._make(self)
        caller.address = address
        self._silent[caller] = asyncio.get_running_loop().time()
        self.begin(self._attend(connection, caller))

    def _make_room(self, newcomer: str) -> bool:
        """Whether there is a place for a caller from this address, if need be that of another one."""
        for callers, most in ((self._silent, self._room.silent), (self._begun, self._room.begun)):
            if len(callers) < most:
                continue
            counts = Counter(caller.address for caller in callers)
            # Of an address, the oldest first: the order is stable.
            crowded = sorted(callers, key=lambda caller: counts[caller.address], reverse=True)
            late = asyncio.get_running_loop().time() - self._room.manners
            dawdling = (each for each in crowded if callers[each] <= late and not each.has_answered())
            leaving = next(dawdling, None)
            if leaving is None:
                leaving = crowded[0]
                if counts[leaving.address] < _FLOOD * (counts[newcomer] + 1):
                    return False
            self.remark(f"more than {most} unproven connections at the port of the {self._whose}")
            leaving.abort()
        return True

    async def _attend(self, connection: socket.socket, caller: Caller) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: caller, connection)
        except OSError:
            connection.close()
            caller.abort()

    async def _watch(self) -> None:
        """Close connections whose handshakes take too long."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK)
            for caller, since in [*self._silent.items(), *self._begun.items()]:
                if since <= loop.time() - self._room.patience and not caller.has_answered():
                    self.turn_away(caller, "it does not finish its handshake")

    # --- what callers report ---------------------------------------------------------------------

    def begun(self, caller: Caller) -> None:
        """Note that the first bytes of a caller have come."""
        if self._silent.pop(caller, None) is not None:
            self._begun[caller] = asyncio.get_running_loop().time()

    def proven(self, caller: Caller) -> None:
        """Note that a caller has proved who it is."""
        self.left(caller)
        self._proven.add(caller)

    def left(self, caller: Caller) -> None:
        self._silent.pop(caller, None)
        self._begun.pop(caller, None)
        self._proven.discard(caller)

    def turn_away(self, caller: Caller, why: str) -> None:
        self.remark(f"a connection was turned away from the port of the {self._whose}: {why}")
        caller.abort()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this until the listener ends."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def remark(self, text: str) -> None:
        """Write a remark into the log, but not once for each connection."""
        now = asyncio.get_running_loop().time()
        if now - self._remarked.get(text, -_REMARKS) >= _REMARKS:
            self._remarked[text] = now
            log.warning("%s", text)


def _has_left(connection: socket.socket) -> bool:
    """Whether the peer has closed a connection while it waited to be accepted."""
    return _is_ready(connection, select.POLLRDHUP)


def _is_ready(connection: socket.socket, events: int) -> bool:
    poll = select.poll()
    poll.register(connection, events)
    return bool(poll.poll(0))


def listen(interface: str, *ports: int) -> socket.socket:
    """A listening socket at the first of these ports that is free, or at any. Raises AdaptorError.

    `interface`: an address of this machine, as `interface_of` tells.
    """
    both = interface == EVERYWHERE_6 and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if ":" in interface else socket.AF_INET
    for port in (*ports, 0):
        try:
            return socket.create_server(
                (interface, port), family=family, backlog=BACKLOG, dualstack_ipv6=both
            )
        except OSError as error:
            log.warning("port %s cannot be bound: %s", port, error)
    raise AdaptorError(f"no port can be bound on {interface}")


LOOPBACK, LOOPBACK_6 = "127.0.0.1", "::1"
EVERYWHERE, EVERYWHERE_6 = "0.0.0.0", "::"  # noqa: S104  (only proven peers are heard)


def interface_of(*, loopback: bool) -> str:
    """The address to listen at: of IPv6 where this machine has no other.

    `loopback`: whether all peers are on this machine.
    """
    if loopback:
        return loopback_address()
    return EVERYWHERE if _interface_addresses(socket.AF_INET) or not _interface_addresses() else EVERYWHERE_6


def loopback_address() -> str:
    """`127.0.0.1`, or `::1` where this machine has no such address."""
    try:
        with socket.socket() as trial:
            trial.bind((LOOPBACK, 0))
    except OSError:
        return LOOPBACK_6
    return LOOPBACK


def addresses(host: str | None, port: int, *, loopback: bool) -> tuple[str, ...]:
    """The addresses at which peers may reach this machine, the likeliest first.

    Args:
        host: the only name that peers try besides the loopback; None: all names and addresses.
        loopback: whether all peers are on this machine.
    """
    here = loopback_address()
    names = [] if loopback else [host] if host else [*_interface_addresses(), socket.getfqdn()]
    return tuple(
        f"tcp://[{name}]:{port}" if ":" in name else f"tcp://{name}:{port}"
        for name in dict.fromkeys([*names, here])
    )


def _interface_addresses(family: socket.AddressFamily | None = None) -> list[str]:
    """Addresses of interfaces that are up, without the loopback; without a `family`, IPv6 only if there is no
    IPv4."""
    if family is None:
        return _interface_addresses(socket.AF_INET) or _interface_addresses(socket.AF_INET6)
    up = {name for name, stats in psutil.net_if_stats().items() if stats.isup}
    found = [
        ipaddress.ip_address(address.address.partition("%")[0])
        for name, of_interface in psutil.net_if_addrs().items()
        if name in up
        for address in of_interface
        if address.family == family
    ]
    return [
        str(each) for each in found if not (each.is_loopback or (each.version == 6 and each.is_link_local))
    ]
