"""How many peers the daemon's ports take, by the descriptors that it may have open. Pure."""

from __future__ import annotations

import msgspec

from adaptor.protocol.gate import Room

_OWN = 48
"""Descriptors of the journal, the log, the loop and the sockets themselves."""
_OF_A_SITE = 20
"""Those of commands under way, and of links to its machine."""
_EACH = 3
"""Descriptors of a passage: the peer's connection, and both ends of the one behind the gate."""
_STRANGERS = 128
_FEW = 8
_FEWEST_CLIENTS, _MOST_CLIENTS = 4, 256
"""Programs that append tasks and follow bags stay connected, with a connection for each of their threads."""


class Rooms(msgspec.Struct, frozen=True):
    """For how many connections the two ports have room."""

    workers: Room
    clients: Room


def rooms_for(descriptors: int, sites: int) -> Rooms:
    """The rooms of a daemon that may have so many descriptors open. Workers get what is left."""
    passages = max(0, descriptors - _OWN - _OF_A_SITE * sites) // _EACH
    clients = Room(
        known=max(_FEWEST_CLIENTS, min(_MOST_CLIENTS, passages // 32)),
        strangers=8 if passages < 8 * _STRANGERS else 32,
    )
    strangers = max(_FEW, min(_STRANGERS, passages // 16))
    known = passages - clients.known - 2 * clients.strangers - 2 * strangers
    return Rooms(Room(known=max(_FEW, known), strangers=strangers), clients)
