"""Both ends of a connection for tests: a server that is polled, peers, and bare sockets."""

from __future__ import annotations

import contextlib
import itertools
import math
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from adaptor.protocol.access import Credentials
from adaptor.protocol.channel import Channel, ChannelError, Party

LARGEST = 2**30
MINUTE = 60.0
RECORD = b"\x16\x03\x01"
"""Begin of a TLS handshake."""


def client_hello(version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> bytes:
    """The first bytes of a peer that knows no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = version
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()


def call(port: int) -> socket.socket:
    """A connection whose peer has a minute for each answer; a daemon leaves a handshake 15 s."""
    connection = socket.create_connection(("127.0.0.1", port), MINUTE)
    connection.settimeout(MINUTE)
    return connection


def closed_by_peer(connection: socket.socket) -> bool:
    """Waits until the peer closes; what it says before is passed over."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


def _readable(connections: list[socket.socket], seconds: float) -> list[socket.socket]:
    poll = select.poll()  # a test may have more than the 1,024 descriptors of select()
    for connection in connections:
        poll.register(connection, select.POLLIN)
    ready = dict(poll.poll(math.ceil(seconds * 1000)))
    return [connection for connection in connections if connection.fileno() in ready]


class Peer:
    """A worker (with a name) or a client, one step at a time."""

    def __init__(self, connection: socket.socket, channel: Channel) -> None:
        self._connection, self._channel = connection, channel
        self._messages: deque[bytes] = deque()
        self._write()

    def send(self, data: bytes) -> None:
        self._channel.send(data)
        self._write()

    def poll(self, seconds: float = MINUTE) -> bool:
        """Whether a message has come in time; False at once if the peer closes the connection."""
        until = time.monotonic() + seconds
        while not self._messages and (left := until - time.monotonic()) > 0:
            if _readable([self._connection], left) and not self._read():
                break
        return bool(self._messages)

    def receive(self) -> bytes:
        assert self.poll(), "no message came"
        return self._messages.popleft()

    def _read(self) -> bool:
        try:
            data = self._connection.recv(65536)
            self._messages.extend(self._channel.receive(data))
        except (OSError, ChannelError):
            return False
        self._write()
        return bool(data)

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.sendall(self._channel.outgoing())


@contextmanager
def peer(port: int, server: str, own: Credentials, name: bytes = b"", protocol: str = "") -> Iterator[Peer]:
    """One that connects with this certificate and expects that of the server."""
    with call(port) as connection:
        made = Peer(connection, Party(own, server, server=False, protocol=protocol).channel(LARGEST))
        if name:
            made.send(name)
        yield made


class FrameServer:
    """Listens on the loopback; does nothing but in `poll`. Closing it closes all connections."""

    def __init__(self, party: Party, *, named: bool, port: int = 0) -> None:
        self._party, self._named = party, named
        self._listening = socket.create_server(("127.0.0.1", port))
        self.port = int(self._listening.getsockname()[1])
        self._callers: dict[socket.socket, Channel] = {}
        self._names: dict[socket.socket, bytes] = {}
        self._numbers = itertools.count(1)
        self._messages: deque[tuple[bytes, bytes]] = deque()

    def poll(self, seconds: float) -> bool:
        """Whether there is a message, now or in time."""
        until = time.monotonic() + seconds
        while not self._messages:
            ready = [self._listening, *self._callers]
            for connection in _readable(ready, max(0.0, until - time.monotonic())):
                if connection is self._listening:
                    self._accept()
                else:
                    self._read(connection)
            if time.monotonic() >= until:
                break
        return bool(self._messages)

    def receive(self) -> tuple[bytes, bytes]:
        """The next message, with its sender; there is one."""
        return self._messages.popleft()

    def send(self, name: bytes, data: bytes) -> None:
        for connection, known in self._names.items():
            if known == name:
                self._callers[connection].send(data)
                self._write(connection)

    def refuse(self) -> None:
        """Listen no more; those who are connected stay."""
        self._listening.close()

    def close(self) -> None:
        self._listening.close()
        for connection in self._callers:
            connection.close()

    def _accept(self) -> None:
        connection, _ = self._listening.accept()
        connection.settimeout(MINUTE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._callers[connection] = self._party.channel(LARGEST)

    def _read(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(65536)
            messages = self._callers[connection].receive(data)
        except (OSError, ChannelError):
            data, messages = b"", []
        self._write(connection)
        if messages and connection not in self._names:
            name = messages.pop(0) if self._named else b"%d" % next(self._numbers)
            self._names = {other: known for other, known in self._names.items() if known != name}
            self._names[connection] = name
        self._messages.extend((self._names[connection], message) for message in messages)
        if not data:
            self._names.pop(connection, None)
            del self._callers[connection]
            connection.close()

    def _write(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(self._callers[connection].outgoing())
