"""The direct connection to the daemon: messages over TLS (`adaptor.protocol.channel`)."""

from __future__ import annotations

import math
import select
import socket
import threading
import time

from adaptor.protocol.access import Access, host_and_port
from adaptor.protocol.channel import LARGEST_FROM_DAEMON, ChannelError, Party
from adaptor.worker.transport import TransportError

PATIENCE = 2.0  # seconds for which the worker tries to connect to one address
IN_LINE = 15.0
"""Seconds for an answer at a connection that was made. Of a thousand workers that call at once each has its
turn; one that leaves and calls again goes to the end of the line, and what was done for it is lost."""
GREETING = 30.0  # seconds for the Welcome of the daemon, once it has proved that it is the one
_UNSENT = 16 * 2**20  # bytes that wait to be sent; from then on no more are taken
_PART = 2**16
"""Bytes received at a time: for more, memory is fetched from the kernel and given back each time."""
_TIMEOUT = 30.0  # seconds for the thread that connects


class TlsConnector:
    """Connects to `tcp://` addresses by TLS."""

    def __init__(self, identity: str, wakeup: int) -> None:
        self._identity = identity.encode()
        self._wakeup = wakeup

    def connect(self, access: Access, address: str) -> TlsTransport:
        """Open a connection. Raises TransportError: the address or a key is damaged."""
        try:
            party = Party(access.own, access.server, server=False)
            return TlsTransport(party, host_and_port(address), self._identity, self._wakeup)
        except (ChannelError, ValueError) as error:
            raise TransportError(f"{address}: {error}") from error

    def end(self) -> None:
        """Does nothing: the connections share nothing."""


class TlsTransport:
    """A connection by TLS. After its loss it is over: the link makes another."""

    def __init__(self, party: Party, address: tuple[str, int], identity: bytes, wakeup: int) -> None:
        self.problem = ""
        self.broken = False
        self._channel = party.channel(LARGEST_FROM_DAEMON)
        self._channel.send(identity)
        self._unsent = bytearray()
        self._wakeup = wakeup
        self._socket: socket.socket | None = None
        self._attempt = _Attempt(address)

    @property
    def taken(self) -> bool:
        return self._socket is not None and not self.broken

    @property
    def patience(self) -> float:
        if self._socket is None:
            return PATIENCE
        return GREETING if self._channel.proven else IN_LINE

    def send(self, data: bytes) -> bool:
        if self.broken or len(self._unsent) > _UNSENT:
            return False
        self._channel.send(data)
        self._write()
        return not self.broken

    def receive(self, seconds: float) -> list[bytes]:
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        other = self._socket or self._attempt.over
        if not self.broken:
            sending = self._socket is not None and self._unsent
            poll.register(other, select.POLLIN | (select.POLLOUT if sending else 0))
        ready = dict(poll.poll(max(0, math.ceil(seconds * 1000))))
        if self.broken or other.fileno() not in ready:
            return []
        if self._socket is None:
            made = self._attempt.outcome
            self._attempt.over.close()
            if isinstance(made, socket.socket):
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                made.setblocking(False)
                self._socket = made
                self._write()
            else:
                self._break(f"{made}; a firewall may refuse it, or the daemon does not run")
            return []
        self._write()
        return self._read(self._socket)

    def close(self, linger: float) -> None:
        until = time.monotonic() + linger
        while self._unsent and self._socket and not self.broken and (left := until - time.monotonic()) > 0:
            poll = select.poll()
            poll.register(self._socket, select.POLLOUT)
            poll.poll(math.ceil(left * 1000))
            self._write()
        self._attempt.give_up()
        if self._socket is not None:
            self._socket.close()

    def _read(self, connected: socket.socket) -> list[bytes]:
        try:
            data = connected.recv(_PART)
            messages = self._channel.receive(data) if data else []
        except BlockingIOError:
            return []
        except (OSError, ChannelError) as error:
            self._write()
            self._break(str(error))
            return []
        if not data:
            self._break("the daemon has closed the connection")
        self._write()
        return messages

    def _write(self) -> None:
        self._unsent += self._channel.outgoing()
        if self._socket is None or self.broken or not self._unsent:
            return
        try:
            del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            pass
        except OSError as error:
            self._break(str(error))

    def _break(self, problem: str) -> None:
        self.broken, self.problem = True, problem


class _Attempt:
    """A thread looks up the name and connects: either may take long."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.outcome: socket.socket | OSError | None = None  # once it is over
        self.over, self._report = socket.socketpair()  # becomes readable then
        self._lock = threading.Lock()
        self._given_up = False
        threading.Thread(target=self._connect, args=(address,), daemon=True).start()

    def _connect(self, address: tuple[str, int]) -> None:
        outcome: socket.socket | OSError
        try:
            outcome = socket.create_connection(address, timeout=_TIMEOUT)
        except OSError as error:
            outcome = error
        with self._lock:
            self.outcome = outcome
            if self._given_up and isinstance(outcome, socket.socket):
                outcome.close()
        self._report.close()

    def give_up(self) -> None:
        """Close what it has made, or will make."""
        with self._lock:
            self._given_up = True
            if isinstance(self.outcome, socket.socket):
                self.outcome.close()
        self.over.close()
