"""What two peers say before either knows the other: the greeting and the CURVE handshake of ZMTP 3. Pure.

    outside: greeting (64 bytes)   HELLO                INITIATE
    inside:  greeting (64 bytes)            WELCOME              READY, or ERROR

Only who knows the daemon's public key gets past HELLO, and only a key of its allow-list past INITIATE: READY
is the daemon's word that the peer is known. Until then no side needs more than some hundred bytes, so this
reads along and refuses everything else. https://rfc.zeromq.org/spec/23/ and https://rfc.zeromq.org/spec/26/
"""

from __future__ import annotations

from adaptor.errors import AdaptorError

MOST_BEFORE_READY = 4096
"""Bytes that either side says before READY, at most."""
_GREETING = 64
_LARGEST_COMMAND = 2048
_HELLO = 200
"""Bytes of its body."""
_SIGNATURE_START, _SIGNATURE_END = b"\xff", b"\x7f"
_MAJOR = 3
_CURVE = b"CURVE".ljust(20, b"\0")
_COMMAND, _LONG_COMMAND = 0x04, 0x06


class StrangeError(AdaptorError):
    """A peer says what no peer of ours says before the end of the handshake."""


class Handshake:
    """Reads along, in both directions, until the inside says READY."""

    def __init__(self) -> None:
        self.half = False
        """Whether the peer knows the daemon's public key, which access files alone hold."""
        self.done = False
        self._outside = _Side()
        self._inside = _Side()
        self._expected = [b"\x05HELLO", b"\x08INITIATE"]

    def from_outside(self, data: bytes) -> None:
        """Raises StrangeError: this is no peer of ours."""
        for body in self._outside.commands(data):
            if not self._expected or not body.startswith(self._expected[0]):
                raise StrangeError("a command out of turn")
            if self._expected.pop(0) == b"\x05HELLO" and len(body) != _HELLO:
                raise StrangeError("a HELLO of another size")

    def from_inside(self, data: bytes) -> None:
        """Raises StrangeError: the inside speaks another protocol."""
        for body in self._inside.commands(data):
            self.half = self.half or body.startswith(b"\x07WELCOME")
            if body.startswith(b"\x05READY"):
                self.done = True
                return  # what follows is no longer ours to read


class _Side:
    """One side's bytes: the greeting, then command frames."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._greeted = False

    def commands(self, data: bytes) -> list[bytes]:
        """The bodies of the commands that these bytes complete."""
        self._pending += data
        if not self._greeted:
            _check_greeting(self._pending)
            if len(self._pending) < _GREETING:
                return []
            del self._pending[:_GREETING]
            self._greeted = True
        found: list[bytes] = []
        while (body := self._command()) is not None:
            found.append(body)
            if body.startswith(b"\x05READY"):
                break
        return found

    def _command(self) -> bytes | None:
        """The next command's body; None: it is not complete."""
        if not self._pending:
            return None
        head = {_COMMAND: 2, _LONG_COMMAND: 9}.get(self._pending[0])
        if head is None:
            raise StrangeError("a message before the end of the handshake")
        if len(self._pending) < head:
            return None
        size = int.from_bytes(self._pending[1:head], "big")
        if size > _LARGEST_COMMAND:
            raise StrangeError("a command larger than any of a handshake")
        if len(self._pending) < head + size:
            return None
        body = bytes(self._pending[head : head + size])
        del self._pending[: head + size]
        return body


def _check_greeting(said: bytearray) -> None:
    """As far as it has come. Raises StrangeError."""
    if said[:1] not in (b"", _SIGNATURE_START) or said[9:10] not in (b"", _SIGNATURE_END):
        raise StrangeError("not the protocol of a worker or of the command line")
    if len(said) > 10 and said[10] < _MAJOR:
        raise StrangeError("a version of the protocol that encrypts nothing")
    mechanism = said[12:32]
    if mechanism != _CURVE[: len(mechanism)]:
        raise StrangeError("another mechanism than CURVE")
