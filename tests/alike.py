"""Nodes of a made-up site."""

from __future__ import annotations

from adaptor.resources import Gpus, Node


def alike(
    count: int, processors: int, memory: int | None = None, *, gpus: Gpus = (), name: str = "n"
) -> tuple[Node, ...]:
    """Nodes `n1`, `n2`, … of one size; memory in bytes."""
    return tuple(
        Node(name=f"{name}{number + 1}", processors=processors, memory=memory, gpus=gpus)
        for number in range(count)
    )
