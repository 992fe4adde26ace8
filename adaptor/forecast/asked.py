"""A request as a person asks about it."""

from __future__ import annotations

import math

import msgspec

from adaptor.errors import UsageError


class AskedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`sbatch -n 64 -t 180`: processors, nodes, time, and what each node has to have besides."""

    tr: float
    """Seconds."""
    processors: int | None = None
    """Processors in all; None: all of the nodes, or one if no nodes are named either."""
    nodes: int | None = None
    """Nodes on which its processors lie evenly; None: any number, or one if memory or GPUs are named."""
    memory: int | None = None
    """Bytes of each node; None: as much as the scheduler gives."""
    gpus: int = 0
    """GPUs of each node."""
    gpu_type: str = ""
    """Type of the GPUs; empty: any."""

    def check(self) -> None:
        """Raises UsageError: no request is like this."""
        least = (1 if count is None else count for count in (self.processors, self.nodes))
        if self.tr <= 0 or min(*least, self.gpus + 1) < 1:
            raise UsageError("a request has at least one processor, one node and one second")
        if self.nodes and self.processors and self.processors % self.nodes:
            raise UsageError(
                f"{self.processors} processors do not lie evenly on {self.nodes} nodes; "
                f"ask for {math.ceil(self.processors / self.nodes) * self.nodes}"
            )
