"""Writing down where the daemon can be reached, for the workers of each site and for its clients."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from adaptor.daemon.ports.server import Server
from adaptor.protocol.access import (
    CLIENT_ACCESS,
    Access,
    AccessError,
    read_access,
    worker_access,
    write_access,
)
from adaptor.protocol.interfaces import addresses
from adaptor.protocol.keys import Keys


def write_client_access(
    directory: Path, keys: Keys, server: Server, host: str | None, loopback: bool
) -> None:
    found = addresses(host, server.client_port, loopback=loopback)
    nearest_first = tuple(sorted(found, key=lambda address: "127.0.0.1" not in address))
    write_access(
        directory / CLIENT_ACCESS,
        Access(addresses=nearest_first, server=keys.server.certificate, own=keys.client),
    )


def write_site_access(directory: Path, keys: Keys, site: str, addresses: tuple[str, ...]) -> Path:
    """Write how the workers of one site reach the daemon; those that run read it again when it is silent.

    Args:
        directory: the state directory.
        addresses: see `Access.addresses`.
    """
    path = directory / worker_access(site)
    write_access(path, site_access(keys, addresses))
    return path


def site_access(keys: Keys, addresses: tuple[str, ...]) -> Access:
    """What an access file for workers holds."""
    return Access(addresses=addresses, server=keys.server.certificate, own=keys.worker)


def last_worker_port(directory: Path, sites: Iterable[str]) -> int:
    """The port at which workers of the daemon before this one still knock; 0 if there was none."""
    return next((port for site in sites if (port := last_port(directory / worker_access(site)))), 0)


def last_port(path: Path) -> int:
    """The port that an access file names first; 0 if there is none."""
    try:
        address = read_access(path).addresses[0]
    except (AccessError, IndexError):
        return 0
    return int(address.rpartition(":")[2]) if address.startswith("tcp://") else 0
