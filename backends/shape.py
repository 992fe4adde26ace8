"""Parts of nodes for which a request asks, and the number of them that nodes can hold. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from adaptor.crafting.fits import tasks_on
from adaptor.resources import Node, TaskSize
from backends.describing import size_in_words


class RequestParts(msgspec.Struct, frozen=True, kw_only=True):
    """`count` equal parts, each on one node."""

    count: int
    part: TaskSize  # its GPUs are whole ones
    whole_nodes: bool = False  # whether each part gets a node of its own, and all of it

    def held_by(self, nodes: Iterable[Node]) -> int:
        """Number of parts that our nodes among these hold when they are idle."""
        held = [tasks_on(node, self.part) for node in nodes if node.ours]
        return sum(min(1, each) if self.whole_nodes else each for each in held)

    @property
    def wanted(self) -> str:
        """A part in words."""
        part = self.part
        gpus = [(part.gpu_type, part.whole_gpus)] if part.gpus else []
        return size_in_words(part.processors, part.memory or None, gpus)
