"""The worker's end of the link: it seeks the daemon at each of its addresses in turn."""

from __future__ import annotations

import math
import select
from pathlib import Path

from adaptor.protocol.access import Access, AccessError, read_access
from adaptor.protocol.messages import FromWorker, encode
from adaptor.worker.transport import Say, Transport, TransportError, Way, way_for

NEXT_TRY = 2.0
"""Seconds until the access file is read again where no address in it can be tried."""
_LONGEST_ROUND = 3
"""Addresses are tried for longer in later rounds, for a daemon that is busy."""


class Link:
    """One connection at a time. Times are monotonic seconds, passed in."""

    def __init__(self, access: Path, identity: str, wakeup: int, say: Say) -> None:
        """`wakeup`: a file descriptor that ends a wait when it becomes readable."""
        self.welcomed = False
        """Whether the daemon has answered on this connection."""
        self.tried: list[str] = []
        """Addresses tried since the daemon was last heard, without repetition."""
        self.next_try = 0.0
        self._problem = ""
        self._path = access
        self._identity = identity
        self._wakeup = wakeup
        self._say = say
        self._ways: dict[str, Way] = {}
        """By the scheme of an address."""
        self._transport: Transport | None = None
        self._access: Access | None = None
        self._untried: list[str] = []
        self._round = 0

    @property
    def problem(self) -> str:
        """What is known to stand in the way; empty where nothing is."""
        return (self._transport.problem if self._transport else "") or self._problem

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
        self.next_try = now + NEXT_TRY * self._round
        if self._access is None or not self._untried:
            return False
        address = self._untried.pop(0)
        if address not in self.tried:
            self.tried.append(address)
        try:
            way = self._way(address)
            self._transport = way.connect(self._access, address)
        except TransportError as error:
            self._problem = str(error)
            self.next_try = now if self._untried else self.next_try
            return False
        self.next_try = now + way.patience * self._round
        return True

    def heard(self) -> None:
        """The daemon has welcomed us."""
        self.welcomed = True
        self._problem = ""
        self._round = 0

    def send(self, message: FromWorker) -> bool:
        """Returns whether it is on its way; if not, the daemon has been away for long."""
        return self._transport is not None and self._transport.send(encode(message))

    def wait(self, seconds: float) -> list[bytes]:
        """Wait for messages or a signal, and return the messages that are there."""
        if self._transport is not None:
            return self._transport.receive(seconds)
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        poll.poll(max(0, math.ceil(seconds * 1000)))
        return []

    def close(self, linger: float = 0.0) -> None:
        """Leave the address; what is on its way has `linger` seconds."""
        if self._transport is not None:
            self._transport.close(linger)
            self._transport = None

    def end(self, linger: float) -> None:
        """Close for good."""
        self.close(linger)
        for way in self._ways.values():
            way.end()

    def _way(self, address: str) -> Way:
        scheme = address.partition("://")[0]
        if scheme not in self._ways:
            self._ways[scheme] = way_for(address, self._identity, self._wakeup, self._say)
        return self._ways[scheme]

    def _read_access(self) -> None:
        try:
            self._access = read_access(self._path)
            self._untried = list(self._access.addresses)
            self._problem = "" if self._untried else f"{self._path}: names no address"
        except AccessError as error:  # what was read before may still be right
            self._problem = str(error)
            self._untried = list(self._access.addresses) if self._access else []
