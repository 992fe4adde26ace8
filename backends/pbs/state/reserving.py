"""What reservations keep from others. Pure."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from backends.pbs.rows import PbsNode, PbsReservation


def kept(held: PbsReservation, nodes: Collection[PbsNode], *, whole_nodes: bool) -> PbsReservation:
    """A reservation with all that nobody else gets while it lasts.

    PBS names what was asked for (`resv_nodes`), however exclusively its nodes are reserved.

    Args:
        nodes: of all queues.
        whole_nodes: whether we ourselves use a node wholly or not at all.
    """
    hosts = {node.host for node in nodes if node.name in held.nodes}
    found = dict(held.nodes)
    for node in nodes:
        whole = (held.exclusive or node.exclusive) and node.name in held.nodes
        if whole or ((held.machines or whole_nodes) and node.host in hosts):
            found[node.name] = node.has
    return msgspec.structs.replace(held, nodes=found)
