"""The content of a spool's file, and the seal that authenticates its writer.

A file is 32 bytes of HMAC-SHA-256 over its path in the spool and its content, then the content. The
key derives from the workers' secret key, which the daemon has from its keys and the workers from their
access file: a torn file, a file of another daemon and a file copied to another path do not verify.

The content is not encrypted: workers read their key from an access file in the same kind of shared
folder, so who can read the spool in spite of its modes (0700, 0600) can read that key as well.
"""

from __future__ import annotations

import hashlib
import hmac

import msgspec

from adaptor.errors import AdaptorError
from adaptor.protocol.decoding import decoded

_SIZE = hashlib.sha256().digest_size


class SealError(AdaptorError):
    """A file is torn, or neither our daemon nor its workers wrote it to this path."""


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """The content of one file: several messages, in order."""

    worker: str
    messages: list[bytes]


_decoder = msgspec.msgpack.Decoder(Envelope)
_encode = msgspec.msgpack.Encoder().encode


class Seal:
    def __init__(self, secret: str) -> None:
        """`secret`: the workers' secret key."""
        self._key = hmac.digest(secret.encode(), b"request adaptor spool 1", "sha256")

    def close(self, path: str, envelope: Envelope) -> bytes:
        """The file's bytes. `path`: its path in the spool, such as `in/7-0123abcd-1.00000001`."""
        content = _encode(envelope)
        return self._seal(path, content) + content

    def open(self, path: str, data: bytes) -> Envelope:
        """The envelope in a file. Raises SealError: the file is torn, or not ours."""
        content = data[_SIZE:]
        if not hmac.compare_digest(data[:_SIZE], self._seal(path, content)):
            raise SealError(f"{path}: incomplete, or sealed with another key")
        try:
            return decoded(_decoder.decode, content)
        except msgspec.DecodeError as error:  # another version wrote it
            raise SealError(f"{path}: cannot be decoded: {error}") from error

    def _seal(self, path: str, content: bytes) -> bytes:
        seal = hmac.new(self._key, path.encode() + b"\0", "sha256")
        seal.update(content)
        return seal.digest()
