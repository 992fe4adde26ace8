"""Writing down where the daemon can be reached, for its workers and its clients."""

from __future__ import annotations

from pathlib import Path

from adaptor.daemon.server import Server, addresses
from adaptor.link.access import CLIENT_ACCESS, WORKER_ACCESS, Access, AccessError, read_access, write_access
from adaptor.link.keys import Keys


def write_access_files(directory: Path, keys: Keys, server: Server, host: str | None, loopback: bool) -> None:
    for_workers = addresses(host, server.worker_port, loopback=loopback)
    for_clients = addresses(host, server.client_port, loopback=loopback)
    nearest_first = tuple(sorted(for_clients, key=lambda address: "127.0.0.1" not in address))
    for name, pair, found in (
        (WORKER_ACCESS, keys.worker, for_workers),
        (CLIENT_ACCESS, keys.client, nearest_first),
    ):
        access = Access(
            addresses=found,
            server_key=keys.server.public,
            public_key=pair.public,
            secret_key=pair.secret,
        )
        write_access(directory / name, access)


def last_port(path: Path) -> int:
    """The port of the daemon before this one, at which its workers still knock; 0 if there was none."""
    try:
        address = read_access(path).addresses[0]
    except (AccessError, IndexError):
        return 0
    return int(address.rpartition(":")[2])
