"""The worker's end of the encrypted link: it seeks the daemon at each of its addresses in turn."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import zmq

from adaptor.link.access import Access, AccessError, read_access
from adaptor.link.messages import FromWorker, encode

TRY = 2.0
"""Seconds for which one address is tried; more in later rounds, for a daemon that is busy."""
_LONGEST_ROUND = 3


class Link:
    """One connection at a time. Times are monotonic seconds, passed in."""

    def __init__(self, access: Path, identity: str, wakeup: int) -> None:
        """`wakeup`: a file descriptor that ends a wait when it becomes readable."""
        self.welcomed = False
        """Whether the daemon has answered on this connection."""
        self.tried: list[str] = []
        """Addresses tried since the daemon was last heard, without repetition."""
        self.problem = ""
        """Why the access file could not be used, when last read."""
        self.next_try = 0.0
        self._path = access
        self._identity = identity.encode()
        self._context = zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._poller = zmq.Poller()
        self._poller.register(wakeup, zmq.POLLIN)
        self._access: Access | None = None
        self._untried: list[str] = []
        self._round = 0

    def lost(self, now: float) -> None:
        """The daemon has fallen silent: seek it anew, perhaps elsewhere."""
        self.welcomed = False
        self.tried.clear()
        self._untried.clear()
        self._round = 0
        self.next_try = now

    def reach(self, now: float) -> bool:
        """Connect to the next address. Returns whether there is something to say Hello to."""
        self.close()
        if not self._untried:
            self._round = min(self._round + 1, _LONGEST_ROUND)
            self._read_access()
        self.next_try = now + TRY * self._round
        if self._access is None or not self._untried:
            return False
        address = self._untried.pop(0)
        if address not in self.tried:
            self.tried.append(address)
        try:
            self._connect(self._access, address)
        except (zmq.ZMQError, ValueError) as error:  # a name that does not resolve, a damaged key
            self.problem = f"{address}: {error}"
            self.next_try = now if self._untried else self.next_try
            return False
        return True

    def heard(self) -> None:
        """The daemon has welcomed us."""
        self.welcomed = True
        self.problem = ""
        self._round = 0

    def send(self, message: FromWorker) -> bool:
        """Returns whether it is on its way; if not, the daemon has been away for long."""
        if self._socket is None:
            return False
        try:
            self._socket.send(encode(message), zmq.NOBLOCK)
        except zmq.ZMQError:
            return False
        return True

    def wait(self, seconds: float) -> list[bytes]:
        """Wait for messages or a signal, and return the messages that are there."""
        self._poller.poll(max(0, math.ceil(seconds * 1000)))
        messages: list[bytes] = []
        with contextlib.suppress(zmq.Again):
            while self._socket is not None:
                messages.append(self._socket.recv_multipart(zmq.NOBLOCK)[-1])
        return messages

    def close(self, linger: float = 0.0) -> None:
        """Leave the address; what is on its way has `linger` seconds."""
        if self._socket is not None:
            self._poller.unregister(self._socket)
            self._socket.close(linger=int(linger * 1000))
            self._socket = None

    def end(self, linger: float) -> None:
        """Close for good."""
        self.close(linger)
        self._context.term()

    def _read_access(self) -> None:
        try:
            self._access = read_access(self._path)
            self._untried = list(self._access.addresses)
            self.problem = "" if self._untried else f"{self._path}: names no address"
        except AccessError as error:  # what was read before may still be right
            self.problem = str(error)
            self._untried = list(self._access.addresses) if self._access else []

    def _connect(self, access: Access, address: str) -> None:
        socket: zmq.Socket[bytes] = self._context.socket(zmq.DEALER)
        try:
            socket.linger = 0
            socket.setsockopt(zmq.IDENTITY, self._identity)
            socket.setsockopt(zmq.RECONNECT_IVL_MAX, 2000)
            socket.ipv6 = "[" in address
            socket.curve_serverkey = access.server_key.encode()
            socket.curve_publickey = access.public_key.encode()
            socket.curve_secretkey = access.secret_key.encode()
            socket.connect(address)
        except BaseException:
            socket.close()
            raise
        self._socket = socket
        self._poller.register(socket, zmq.POLLIN)
