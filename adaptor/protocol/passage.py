"""One connection through a gate: a peer outside, the daemon's socket inside, and their bytes."""

from __future__ import annotations

import asyncio
from typing import Protocol

from adaptor.protocol.zmtp import MOST_BEFORE_READY, Handshake, StrangeError

_FLUSHING = 5.0
"""Seconds that the last bytes of one side have to reach the other."""


class Gatekeeper(Protocol):
    """What a passage tells its gate."""

    def spoke(self, passage: Passage) -> None: ...
    def half_known(self, passage: Passage) -> None: ...
    def welcomed(self, passage: Passage) -> None: ...
    def left(self, passage: Passage) -> None: ...
    def refused(self, why: str) -> None: ...


class Passage:
    def __init__(self, gate: Gatekeeper) -> None:
        self.outside = _Outside(self)
        self._inside: Inside | None = None
        self._gate = gate
        self._handshake: Handshake | None = Handshake()
        """None: it is done."""
        self._waiting = bytearray()
        """What came before there was an inside."""
        self._over = False

    def drop(self) -> None:
        """End it at once; what is on its way is lost."""
        self._end()
        for side in (self.outside, self._inside):
            if side is not None and side.transport is not None:
                side.transport.abort()

    def arrived(self, side: _Side, transport: asyncio.Transport) -> None:
        """One end is connected."""
        if self._over:
            transport.abort()
        elif isinstance(side, Inside):
            self._reached(side)

    def _reached(self, inside: Inside) -> None:
        self._inside = inside
        inside.write(bytes(self._waiting))
        self._waiting.clear()

    def from_outside(self, data: bytes) -> None:
        if self._handshake is not None:
            try:
                self._handshake.from_outside(data)
            except StrangeError as error:
                self._gate.refused(str(error))
                self.drop()
                return
        if self._inside is not None:
            self._inside.write(data)
            return
        if not self._waiting:
            self._gate.spoke(self)
        self._waiting += data
        if len(self._waiting) > MOST_BEFORE_READY:
            self.drop()

    def from_inside(self, data: bytes) -> None:
        if self._handshake is not None:
            try:
                self._handshake.from_inside(data)
            except StrangeError:
                self.drop()
                return
            if self._handshake.done:
                self._handshake = None
                self._gate.welcomed(self)
            elif self._handshake.half:
                self._gate.half_known(self)
        self.outside.write(data)

    def other(self, side: _Side) -> _Side | None:
        return self._inside if side is self.outside else self.outside

    def lost(self, side: _Side) -> None:
        """One side has closed: the other gets what is on its way, and is closed too."""
        self._end()
        other = self.other(side)
        if other is None or other.transport is None:
            return
        if self._handshake is not None:
            other.transport.abort()
        else:
            other.transport.close()
            asyncio.get_running_loop().call_later(_FLUSHING, other.transport.abort)

    def _end(self) -> None:
        if not self._over:
            self._over = True
            self._gate.left(self)


class _Side(asyncio.Protocol):
    """One end of a passage. It reads no faster than the other end writes."""

    def __init__(self, passage: Passage) -> None:
        self.transport: asyncio.Transport | None = None
        self._passage = passage

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._passage.arrived(self, transport)

    def write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        self._passage.lost(self)

    def pause_writing(self) -> None:
        other = self._passage.other(self)
        if other is not None and other.transport is not None:
            other.transport.pause_reading()

    def resume_writing(self) -> None:
        other = self._passage.other(self)
        if other is not None and other.transport is not None:
            other.transport.resume_reading()


class _Outside(_Side):
    def data_received(self, data: bytes) -> None:
        self._passage.from_outside(data)


class Inside(_Side):
    def data_received(self, data: bytes) -> None:
        self._passage.from_inside(data)
