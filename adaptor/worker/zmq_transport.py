"""The direct connection to the daemon: ZMQ with CURVE over TCP."""

from __future__ import annotations

import contextlib
import math

import zmq

from adaptor.protocol.access import Access
from adaptor.worker.transport import TransportError

PATIENCE = 2.0
"""Seconds for which the worker tries one address."""


class ZmqConnector:
    """See `Connector`."""

    patience = PATIENCE

    def __init__(self, identity: str, wakeup: int) -> None:
        self._identity = identity.encode()
        self._wakeup = wakeup
        self._context = zmq.Context()

    def connect(self, access: Access, address: str) -> ZmqTransport:
        """Raises TransportError: the name does not resolve, or a key is damaged."""
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
        except (zmq.ZMQError, ValueError) as error:
            socket.close()
            raise TransportError(f"{address}: {error}") from error
        return ZmqTransport(socket, self._wakeup)

    def end(self) -> None:
        self._context.term()


class ZmqTransport:
    """See `Transport`."""

    problem = ""

    def __init__(self, socket: zmq.Socket[bytes], wakeup: int) -> None:
        self._socket = socket
        self._poller = zmq.Poller()
        self._poller.register(wakeup, zmq.POLLIN)
        self._poller.register(socket, zmq.POLLIN)

    def send(self, data: bytes) -> bool:
        try:
            self._socket.send(data, zmq.NOBLOCK)
        except zmq.ZMQError:
            return False
        return True

    def receive(self, seconds: float) -> list[bytes]:
        ready = self._poller.poll(max(0, math.ceil(seconds * 1000)))
        messages: list[bytes] = []
        if all(each is not self._socket for each, _ in ready):
            return messages
        with contextlib.suppress(zmq.Again):
            while True:
                messages.append(self._socket.recv_multipart(zmq.NOBLOCK)[-1])
        return messages

    def close(self, linger: float) -> None:
        self._socket.close(linger=int(linger * 1000))
