"""The worker's link to the daemon: tries each of the daemon's addresses in turn."""

from __future__ import annotations

import math
import os
import select
from pathlib import Path

from adaptor.protocol.access import Access, AccessError, read_access
from adaptor.protocol.messages import FromWorker, encode
from adaptor.worker.transport import Connector, Say, Transport, TransportError

NEXT_TRY = 2.0  # seconds until the next round over all addresses if none is left that may answer
_LONGEST_ROUND = 3
"""The factor on patience in later rounds over all addresses, at most: the daemon may be busy."""


def jittered(seconds: float) -> float:
    """A time from 0.75 to 1.25 times as long: workers that failed together do not call again together."""
    return seconds * (0.75 + 0.5 * os.urandom(1)[0] / 255)


class Link:
    """One connection at a time. Times are monotonic seconds, passed in."""

    def __init__(self, access: Path, identity: str, wakeup: int, say: Say) -> None:
        """`wakeup`: a file descriptor that ends a wait when it becomes readable."""
        self.welcomed = False  # whether the daemon has answered on this connection
        self.tried: list[str] = []  # addresses tried since the last message of the daemon, each once
        self.next_try = 0.0
        self._problem = ""
        self._path = access
        self._identity = identity
        self._wakeup = wakeup
        self._say = say
        self._connectors: dict[str, Connector] = {}  # by the scheme of an address
        self._transport: Transport | None = None
        self._access: Access | None = None
        self._untried: list[str] = []
        self._round = 0
        self._patience = 0.0  # of the connection that is being tried, as it was last seen

    @property
    def in_line(self) -> bool:
        """True if a connection has been taken at the other end, and its first answer is awaited."""
        return not self.welcomed and self._transport is not None and self._transport.taken

    @property
    def problem(self) -> str:
        """Why there is no link; empty if no reason is known."""
        return (self._transport.problem if self._transport else "") or self._problem

    def lost(self, now: float) -> None:
        """The daemon is silent: connect again, perhaps to another address."""
        self.welcomed = False
        self.tried.clear()
        self._untried.clear()
        self._round = 0
        self.next_try = now

    def note_break(self, now: float) -> bool:
        """True if the connection in use has just been lost; one that was being tried is tried no longer."""
        if self._transport is None or not self._transport.broken:
            return False
        self._problem = self._transport.problem
        self.close()
        was_welcomed = self.welcomed
        if was_welcomed:
            self.lost(now)
        else:
            pause = 0.0 if self._untried else jittered(NEXT_TRY * self._round)
            self.next_try = min(self.next_try, now + pause)
        return was_welcomed

    def reach(self, now: float) -> bool:
        """Connect to the next address. Returns whether a Hello can be sent."""
        self.close()
        if not self._untried:
            self._round = min(self._round + 1, _LONGEST_ROUND)
            try:
                self._access = read_access(self._path)
                self._problem = "" if self._access.addresses else f"{self._path}: has no address"
            except AccessError as error:  # the addresses read before may still be valid
                self._problem = str(error)
            self._untried = list(self._access.addresses) if self._access else []
        self.next_try = now + jittered(NEXT_TRY * self._round)
        if self._access is None or not self._untried:
            return False
        address = self._untried.pop(0)
        if address not in self.tried:
            self.tried.append(address)
        try:
            scheme = address.partition("://")[0]
            if scheme not in self._connectors:
                self._connectors[scheme] = self._make_connector(scheme, address)
            self._transport = self._connectors[scheme].connect(self._access, address)
        except TransportError as error:
            self._problem = str(error)
            self.next_try = now if self._untried else self.next_try
            return False
        self._patience = 0.0
        self.note_progress(now)
        return True

    def note_progress(self, now: float) -> None:
        """Wait longer where the connection that is being tried has got further."""
        if self._transport is not None and not self.welcomed and self._transport.patience != self._patience:
            self._patience = self._transport.patience
            self.next_try = now + jittered(self._patience * self._round)

    def heard(self) -> None:
        """The daemon has sent Welcome."""
        self.welcomed = True
        self._problem = ""
        self._round = 0

    def send(self, message: FromWorker) -> bool:
        """Returns False without a connection, or if too many messages wait already."""
        return self._transport is not None and self._transport.send(encode(message))

    def wait(self, seconds: float) -> list[bytes]:
        """Wait for messages or a signal, and return the messages so far."""
        if self._transport is not None:
            return self._transport.receive(seconds)
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        poll.poll(max(0, math.ceil(seconds * 1000)))
        return []

    def close(self, linger: float = 0.0) -> None:
        """Close the connection. Messages under way get `linger` seconds."""
        if self._transport is not None:
            self._transport.close(linger)
            self._transport = None

    def end(self, linger: float) -> None:
        """Close the link for good."""
        self.close(linger)
        for connector in self._connectors.values():
            connector.end()

    def _make_connector(self, scheme: str, address: str) -> Connector:
        """Imports only the connector that it needs: a worker starts fast."""
        match scheme:
            case "tcp":
                from adaptor.worker.tls_transport import TlsConnector

                return TlsConnector(self._identity, self._wakeup)
            case "spool":
                from adaptor.worker.spool_transport import SpoolConnector

                return SpoolConnector(self._identity, self._wakeup, self._say)
        raise TransportError(f"{address}: this worker knows no transport for {scheme}://")
