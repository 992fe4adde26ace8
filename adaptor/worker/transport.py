"""What a worker needs of a way to its daemon, whatever the way is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from adaptor.errors import AdaptorError
from adaptor.protocol.access import Access


class TransportError(AdaptorError):
    """This address cannot be used now."""


class Transport(Protocol):
    """One connection to one address. Messages may be lost with it, and never overtake one another."""

    @property
    def problem(self) -> str:
        """Why messages cannot be exchanged now; empty where no reason is known."""

    def send(self, data: bytes) -> bool:
        """Returns whether it is on its way; if not, the daemon has been away for long."""

    def receive(self, seconds: float) -> list[bytes]:
        """Wait for messages or a signal, and return the messages that are there."""

    def close(self, linger: float) -> None:
        """Leave; what is on its way has `linger` seconds, and is taken back where that is 0."""


class Way(Protocol):
    """How addresses of one kind are reached."""

    patience: float
    """Seconds for which one address is tried before the next."""

    def connect(self, access: Access, address: str) -> Transport:
        """Raises TransportError."""

    def end(self) -> None:
        """Let go of what all connections shared; the last one is closed."""


Say = Callable[[str], None]
"""Puts a line into the worker's log."""


def way_for(address: str, identity: str, wakeup: int, say: Say) -> Way:
    """The way to addresses like this one. Only what it needs is imported: a worker starts fast.

    Args:
        identity: the worker's name, `<pilot>-…`.
        wakeup: a file descriptor that ends a wait when it becomes readable.

    Raises:
        TransportError: addresses of this kind are unknown.
    """
    scheme = address.partition("://")[0]
    match scheme:
        case "tcp":
            from adaptor.worker.zmq_transport import ZmqWay

            return ZmqWay(identity, wakeup)
        case "mailbox":
            from adaptor.worker.spool_transport import MailboxWay

            return MailboxWay(identity, wakeup, say)
    raise TransportError(f"{address}: no way that this worker knows")
