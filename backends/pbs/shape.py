"""How a request lies on nodes, in the one form that every dialect can ask for."""

from __future__ import annotations

import math

import msgspec

from adaptor.model import Request
from backends.base import PilotOrder


class Shape(msgspec.Struct, frozen=True):
    """So many chunks of so many processors; a chunk lies on one node."""

    chunks: int
    processors: int
    """Of each chunk."""
    memory: int | None
    """Bytes of each chunk, or None."""
    whole_nodes: bool
    """Whether each chunk gets a node of its own, and all of it."""
    node: str = ""
    """The very node of the only chunk, where one is named."""


def shape_of(order: PilotOrder, processors_per_node: int | None) -> Shape:
    """The donated node, whole nodes, or one chunk per task that runs at a time.

    Small chunks fit into every gap.

    Args:
        processors_per_node: given where only whole nodes are asked for.
    """
    if order.node:
        return Shape(1, order.request.p, None, True, order.node)
    if processors_per_node is not None:
        return Shape(_nodes(order.request, processors_per_node), processors_per_node, None, True)
    per_task = order.processors_per_task
    return Shape(order.request.p // per_task, per_task, order.memory_per_task, False)


def _nodes(request: Request, processors_per_node: int) -> int:
    return math.ceil(request.p / processors_per_node)
