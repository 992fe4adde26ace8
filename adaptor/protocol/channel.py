"""Messages over TLS 1.3 without I/O: the peer's bytes in, its messages out, and the bytes to send to it.

Both sides prove who they are: each has the certificate that the other must show. A message travels as its
length (4 bytes, the most significant first) and its bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import ssl
from collections.abc import Iterator, Mapping

from adaptor.errors import AdaptorError
from adaptor.protocol.access import Credentials

_MOST_UNPROVEN = 16_384  # bytes of a peer before the end of its handshake; ours sends about 1,500
_PART = 65_536  # bytes of one read; a TLS record has 16,384 at most
_HEADER = 4
LARGEST_FROM_WORKER = 64 * 2**20
LARGEST_FROM_CLIENT = LARGEST_FROM_DAEMON = 2**30  # bytes of one message
LARGEST_FROM_KEY = 4 * 2**20  # the same of a client whose key has a grant


def fingerprint(certificate: str) -> str:
    """The name of a certificate (PEM): its SHA-256 in hexadecimal. Raises ValueError: the text is none."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).hexdigest()


class ChannelError(AdaptorError):
    """The peer has not proved who it is, does not keep to the protocol, or has closed the connection."""


class Party:
    """One side of connections: who it is, and whom it accepts at the other end."""

    def __init__(self, own: Credentials, peer: str, *, server: bool, protocol: str = "") -> None:
        """The side with a certificate.

        Args:
            peer: the one certificate (PEM) that the other side may show.
            protocol: which messages it understands, for `Channel.agreed`; empty: it does not say.

        Raises ChannelError: a certificate or the key is damaged.
        """
        self._server = server
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._context.check_hostname = False  # the certificate itself is known
        self._context.verify_mode = ssl.CERT_REQUIRED
        if protocol:
            self._context.set_alpn_protocols([protocol])
        if server:
            self._context.num_tickets = 0  # no session is resumed, so none can be replayed
        self._peers: dict[bytes, str] = {}
        """Fingerprints of accepted certificates (DER) of keys with a grant."""
        try:
            self._peers[ssl.PEM_cert_to_DER_cert(peer)] = ""
            self._context.load_verify_locations(cadata=peer)
            with _readable(own.certificate) as certificate, _readable(own.key) as key:
                self._context.load_cert_chain(certificate, key)
        except (OSError, ValueError) as error:
            raise ChannelError(f"a certificate or its key is damaged: {error}") from error

    def channel(self, largest: int) -> Channel:
        """A new connection, on which a message may have `largest` bytes."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._context.wrap_bio(incoming, outgoing, server_side=self._server)
        return Channel(tls, incoming, outgoing, self._peers, largest)

    def accept(self, certificate: str) -> None:
        """Accept the certificate of a key with a grant too, from the next handshake on."""
        self._context.load_verify_locations(cadata=certificate)
        self._peers[ssl.PEM_cert_to_DER_cert(certificate)] = fingerprint(certificate)

    def refuse(self, certificate: str) -> None:
        """Accept a certificate no longer."""
        self._peers.pop(ssl.PEM_cert_to_DER_cert(certificate), None)


class Channel:
    def __init__(
        self,
        tls: ssl.SSLObject,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        peers: Mapping[bytes, str],
        largest: int,
    ) -> None:
        self.proven = False
        """Whether the peer has proved who it is. Before, no message passes in either direction."""
        self.key = ""  # the fingerprint of the certificate of a peer whose key has a grant
        self._tls, self._incoming, self._outgoing = tls, incoming, outgoing
        self._peers = peers
        self._largest = largest
        self._unproven = 0  # bytes that came before the end of the handshake
        self._waiting: list[bytes] = []  # messages to send after it
        self._received = bytearray()
        if not tls.server_side:
            self._shake_hands()

    @property
    def agreed(self) -> bool:
        """Whether both sides, proven by now, have named the same protocol (ALPN)."""
        return self._tls.selected_alpn_protocol() is not None

    def send(self, message: bytes) -> None:
        """Encrypt a message; `outgoing` has its bytes once the peer is proven."""
        if self.proven:
            self._tls.write(len(message).to_bytes(_HEADER, "big") + message)
        else:
            self._waiting.append(message)

    def outgoing(self) -> bytes:
        """The bytes to send to the peer now."""
        return self._outgoing.read()

    def receive(self, data: bytes) -> list[bytes]:
        """The messages that are whole with these bytes.

        Raises ChannelError: the connection must be closed; `outgoing` may say why to the peer.
        """
        if not self.proven:
            share = data[: _MOST_UNPROVEN - self._unproven]
            self._unproven += len(share)
            self._incoming.write(share)
            self._shake_hands()
            if not self.proven and self._unproven >= _MOST_UNPROVEN:
                raise ChannelError("its handshake is too long")
            data = data[len(share) :]
            if not self.proven:
                return []
        self._incoming.write(data)
        try:
            while self._incoming.pending:
                self._received += self._tls.read(_PART)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            raise ChannelError(_reason(error)) from error
        return self._cut()

    def _shake_hands(self) -> None:
        """Go on with the handshake. Raises ChannelError."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLError as error:
            raise ChannelError(_reason(error)) from error
        key = self._peers.get(self._tls.getpeercert(binary_form=True) or b"")
        if key is None:
            raise ChannelError("it shows another certificate")
        self.key, self.proven = key, True
        if key:
            self._largest = min(self._largest, LARGEST_FROM_KEY)
        for message in self._waiting:
            self.send(message)
        self._waiting.clear()

    def _cut(self) -> list[bytes]:
        """Cut whole messages from the received bytes. Raises ChannelError."""
        messages, begin = [], 0
        with memoryview(self._received) as received:
            while len(received) >= begin + _HEADER:
                size = int.from_bytes(received[begin : begin + _HEADER], "big")
                if size > self._largest:
                    raise ChannelError(f"a message of {size:,} bytes is too large")
                end = begin + _HEADER + size
                if len(received) < end:
                    break
                messages.append(bytes(received[begin + _HEADER : end]))
                begin = end
        del self._received[:begin]
        return messages


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLZeroReturnError):
        return "it has closed the connection"
    return (error.reason or str(error)).replace("_", " ").lower()


@contextlib.contextmanager
def _readable(text: str) -> Iterator[str]:
    """A path that reads as this text once, without a file: `ssl` takes keys from paths only."""
    if len(text) > select.PIPE_BUF:  # more might wait for a reader
        raise ValueError(f"{len(text):,} characters")
    reading, writing = os.pipe()
    try:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(text.encode())
        yield f"/proc/self/fd/{reading}"
    finally:
        os.close(reading)
