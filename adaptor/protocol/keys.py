"""The CURVE keys of one daemon: its own, its workers' and its clients'. Made once, kept in a 0600 file.

Workers and clients have separate keys, so that a key from a compute node can pull tasks but not submit
them; the daemon accepts these two public keys and no others.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import zmq

from adaptor.atomic_file import write_private
from adaptor.protocol.access import AccessError
from adaptor.protocol.decoding import decoded


class KeyPair(msgspec.Struct, frozen=True):
    """Z85 texts of 40 characters."""

    public: str
    secret: str


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    server: KeyPair
    worker: KeyPair
    client: KeyPair


_keys = msgspec.json.Decoder(Keys)


def _new_pair() -> KeyPair:
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), secret.decode())


def load_or_make_keys(directory: Path) -> Keys:
    """Raises AccessError: the key file is damaged."""
    path = directory / "keys.json"
    if not path.exists():
        keys = Keys(server=_new_pair(), worker=_new_pair(), client=_new_pair())
        write_private(path, msgspec.json.encode(keys))
    try:
        return decoded(_keys.decode, path.read_bytes())
    except msgspec.DecodeError as error:
        raise AccessError(
            f"{path}: damaged: {error}; remove it when no pilot of this daemon is left in any queue"
        ) from error
