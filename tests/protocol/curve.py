"""Both ends of a CURVE handshake for tests: a ROUTER that knows one key, and peers that speak by hand."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import zmq

GREETING = b"\xff" + bytes(7) + b"\1\x7f" + b"\3\0" + b"CURVE".ljust(20, b"\0") + bytes(32)
HELLO = b"\x04" + bytes([200]) + b"\x05HELLO" + bytes(194)


def oversized(size: int) -> bytes:
    """The header of a command frame of `size` bytes."""
    return b"\x06" + struct.pack(">Q", size)


def call(port: int) -> socket.socket:
    """A connection whose peer has a minute for each answer; a daemon leaves a handshake 15 s."""
    connection = socket.create_connection(("127.0.0.1", port), 60)
    connection.settimeout(60)
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


@contextmanager
def peer(port: int, server_key: str, public: str, secret: str, name: bytes = b"") -> Iterator[Any]:
    """A DEALER that connects with these keys."""
    context: zmq.Context[Any] = zmq.Context()
    dealer = context.socket(zmq.DEALER)
    dealer.linger = 0
    if name:
        dealer.setsockopt(zmq.IDENTITY, name)
    dealer.curve_serverkey = server_key.encode()
    dealer.curve_publickey = public.encode()
    dealer.curve_secretkey = secret.encode()
    dealer.connect(f"tcp://127.0.0.1:{port}")
    try:
        yield dealer
    finally:
        dealer.close()
        context.term()
