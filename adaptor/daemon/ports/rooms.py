"""How many peers the daemon's ports take, by the descriptors that it may have open. Pure."""

from __future__ import annotations

import msgspec

from adaptor.protocol.listener import ConnectionRoom

_OWN = 48
"""Descriptors of the journal, the log, the loop and the sockets themselves."""
_OF_A_SITE = 20
"""Those of commands under way, and of links to its machine."""
_SILENT, _BEGUN = 128, 512
"""Of the workers' port, at most."""
_FEW = 8
_FEWEST_CLIENTS, _MOST_CLIENTS = 4, 256
"""Programs that append tasks and follow bags stay connected, with a connection for each of their threads."""


class Rooms(msgspec.Struct, frozen=True):
    """For how many connections the two ports have room."""

    workers: ConnectionRoom
    clients: ConnectionRoom


def rooms_for(descriptors: int, sites: int) -> Rooms:
    """How a daemon divides the descriptors that it may have open. Workers get what is left."""
    left = max(0, descriptors - _OWN - _OF_A_SITE * sites)
    clients = ConnectionRoom(
        proven=max(_FEWEST_CLIENTS, min(_MOST_CLIENTS, left // 32)),
        silent=4 * _FEW,
        begun=2 * _FEW if left < _FEW * _SILENT else 8 * _FEW,
    )
    silent, begun = max(_FEW, min(_SILENT, left // 16)), max(_FEW, min(_BEGUN, left // 4))
    proven = left - clients.proven - clients.silent - clients.begun - silent - begun
    return Rooms(ConnectionRoom(proven=max(_FEW, proven), silent=silent, begun=begun), clients)
