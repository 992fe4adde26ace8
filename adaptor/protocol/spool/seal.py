"""What a file of a mailbox holds, and the seal that says who wrote it.

A file is 32 bytes of HMAC-SHA-256 over its place in the room and its content, then the content. The
key is derived from the workers' secret key, which daemon and workers have from keys and access file:
a torn file, a file of another daemon, and one that was copied to another place are all turned away.

The content is not encrypted: workers read their key from an access file on the same kind of shared
folder, so whoever can read the mailbox in spite of its modes (0700, 0600) can read that key as well.
"""

from __future__ import annotations

import hashlib
import hmac

import msgspec

from adaptor.errors import AdaptorError

_SIZE = hashlib.sha256().digest_size


class SealError(AdaptorError):
    """A file is torn, or was not written by our daemon or its workers for this place."""


class Read(msgspec.Struct, frozen=True, array_like=True):
    """Up to where the writer has read what the other side has written."""

    life: str
    number: int


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """One file: several messages, in order."""

    worker: str
    messages: list[bytes]
    oldest: int
    """The number of the oldest file of this writer that may not be read yet."""
    read: Read | None = None


_decoder = msgspec.msgpack.Decoder(Envelope)
_encode = msgspec.msgpack.Encoder().encode


class Seal:
    def __init__(self, secret: str) -> None:
        """`secret`: the workers' secret key."""
        self._key = hmac.digest(secret.encode(), b"request adaptor mailbox 1", "sha256")

    def close(self, place: str, envelope: Envelope) -> bytes:
        """The file's bytes. `place`: its path inside the room."""
        content = _encode(envelope)
        return self._seal(place, content) + content

    def open(self, place: str, data: bytes) -> Envelope:
        """Raises SealError: it is torn, or not ours."""
        content = data[_SIZE:]
        if not hmac.compare_digest(data[:_SIZE], self._seal(place, content)):
            raise SealError(f"{place}: torn, or sealed with another key")
        try:
            return _decoder.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:  # another version wrote it
            raise SealError(f"{place}: not understood: {error}") from error

    def _seal(self, place: str, content: bytes) -> bytes:
        seal = hmac.new(self._key, place.encode() + b"\0", "sha256")
        seal.update(content)
        return seal.digest()
