"""Access files: the addresses and keys by which workers and clients reach a daemon.

Files in the state directory (0700), each 0600: `access-worker-<site>.json` for the workers of a site,
`access-client.json` for the command line, `access-key-<name>.json` for a key with a grant. Commands and
variables hold their paths, never their content.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from adaptor.errors import AdaptorError
from adaptor.file_format import newer
from adaptor.private_files import NotOursError, open_ours, write_private
from adaptor.protocol.decoding import decoded

CLIENT_ACCESS = "access-client.json"
KEY_VARIABLE = "ADAPTOR_KEY"
"""Environment variable of a client's key in place of the user's, by its name or its access file."""
RELAYED_ACCESS = "access-worker.json"  # on a remote login node, in the folder of one daemon and site


FORMAT = 1  # of access files
_LARGEST = 65536  # bytes


def worker_access(site: str) -> str:
    """The name of the access file for the workers of one site."""
    return f"access-worker-{site}.json"


def key_access(name: str) -> str:
    """The name of the access file of a key with a grant."""
    return f"access-key-{name}.json"


class AccessError(AdaptorError):
    """An access file is missing, damaged, or open to other users."""


class LostAccessError(AccessError):
    """The access file is missing or damaged; the daemon that it is of writes it again."""


class Credentials(msgspec.Struct, frozen=True):
    """A certificate and its secret key, as PEM texts."""

    certificate: str
    key: str


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses and keys by which a worker or a client reaches one daemon."""

    addresses: tuple[str, ...]
    """`tcp://host:port` or `spool:///directory`, the likeliest first; only one has to be reachable."""
    server: str  # the daemon's certificate (PEM)
    own: Credentials
    format: int = FORMAT


def host_and_port(address: str) -> tuple[str, int]:
    """Host and port of `tcp://host:port`, as sockets take them. Raises ValueError: the port is no number."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    return host.strip("[]"), int(port)


_access = msgspec.json.Decoder(Access)


def write_access(path: Path, access: Access) -> None:
    write_private(path, msgspec.json.encode(access))


def read_access(path: Path) -> Access:
    """Read an access file. Raises AccessError: not ours, or readable by others; LostAccessError: missing or
    damaged."""
    try:
        with os.fdopen(open_ours(path, links=True, closed=True), "rb") as file:
            data = file.read(_LARGEST + 1)
    except NotOursError as error:
        raise AccessError(
            f"{path}: must belong to you alone, or others may have read the key in it: {error.strerror}"
        ) from error
    except OSError as error:
        kind = LostAccessError if isinstance(error, FileNotFoundError) else AccessError
        raise kind(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > _LARGEST:
        raise LostAccessError(f"{path}: damaged: more than {_LARGEST} bytes")
    if problem := newer(data, FORMAT):
        raise AccessError(f"{path}: {problem}")
    try:
        return decoded(_access.decode, data)
    except msgspec.DecodeError as error:
        raise LostAccessError(f"{path}: damaged: {error}") from error


def last_port(path: Path) -> int:
    """The port that an access file names first, where those who know it still try; 0: there is none."""
    try:
        address = read_access(path).addresses[0]
        return host_and_port(address)[1] if address.startswith("tcp://") else 0
    except (AccessError, IndexError, ValueError):
        return 0
