"""The certificates of one daemon: its own, its workers' and its clients'. Made once, kept in a 0600 file.

Workers and clients have separate ones, so that a key from a compute node can pull tasks but not submit them.
Each port of the daemon accepts one certificate and no other; none can sign another.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import msgspec

from adaptor.file_format import newer
from adaptor.private_files import write_private
from adaptor.protocol.access import AccessError, Credentials
from adaptor.protocol.decoding import decoded

KEYS = "keys.json"  # the file of the state directory that keeps them
FORMAT = 1  # of that file
_FROM = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc)
_UNTIL = datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.timezone.utc)
"""End of keys, "no end" as RFC 5280 writes it: the clocks of nodes differ, and keys are used as long as their
directory."""


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    server: Credentials
    worker: Credentials
    client: Credentials
    format: int = FORMAT


_keys = msgspec.json.Decoder(Keys)


def new_identity(name: str, until: datetime.datetime = _UNTIL) -> Credentials:
    """A new key with a certificate that it signs itself."""
    from cryptography import x509  # only a daemon's first start needs it
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"request adaptor {name}")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Credentials(certificate.public_bytes(pem).decode(), secret.decode())


def load_or_make_keys(directory: Path) -> Keys:
    """Load the daemon's keys, or make new ones. Raises AccessError: the file is damaged, or of a newer
    version."""
    path = directory / KEYS
    if not path.exists():
        keys = Keys(
            server=new_identity("server"), worker=new_identity("worker"), client=new_identity("client")
        )
        write_private(path, msgspec.json.encode(keys))
    return read_keys(path)


def read_keys(path: Path) -> Keys:
    """Read the daemon's keys. Raises AccessError: the file is damaged, or a newer version has written it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise AccessError(f"{path}: cannot be read: {error.strerror}") from error
    if problem := newer(data, FORMAT):
        raise AccessError(f"{path}: {problem}")
    try:
        return decoded(_keys.decode, data)
    except msgspec.DecodeError as error:
        raise AccessError(
            f"{path}: damaged: {error}; remove it when no pilot of this daemon is left in any queue"
        ) from error
