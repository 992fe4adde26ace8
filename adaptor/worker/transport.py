"""The connection of a worker to its daemon, over a socket or through a spool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from adaptor.errors import AdaptorError
from adaptor.protocol.access import Access


class TransportError(AdaptorError):
    """The worker cannot use this address now."""


class Transport(Protocol):
    """One connection to one address. It keeps the order of messages; its loss may lose some of them."""

    broken: bool  # whether it is lost for good

    @property
    def patience(self) -> float:
        """Seconds for which the worker waits for what comes next, before it tries another address."""

    @property
    def taken(self) -> bool:
        """True if the other end has taken the connection, so that only its answer is awaited."""

    @property
    def problem(self) -> str:
        """Why no messages pass now; empty if no reason is known."""

    def send(self, data: bytes) -> bool:
        """Returns False if too many messages wait already: the daemon has not read for long."""

    def receive(self, seconds: float) -> list[bytes]:
        """Wait for messages or a signal, and return the messages so far."""

    def close(self, linger: float) -> None:
        """Close. Messages under way get `linger` seconds; 0 takes them back."""


class Connector(Protocol):
    """Opens connections to addresses of one kind."""

    def connect(self, access: Access, address: str) -> Transport:
        """Open a connection. Raises TransportError."""

    def end(self) -> None:
        """Release what the connections shared; the caller has closed them."""


Say = Callable[[str], None]  # writes a line into the worker's log
