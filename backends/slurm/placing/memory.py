"""How Slurm counts memory, and what a task gets that names none. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from adaptor.resources import Node
from backends.slurm.rows import Partition, find_partition

MEBIBYTE = 2**20


class MemoryTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes for each processor; None: not limited."""

    counted: bool = True
    """Whether memory is given to jobs as processors are."""
    default: int | None = None
    most: int | None = None

    def default_on(self, nodes: Iterable[Node]) -> int | None:
        """What a task gets for each processor that names no memory; None: memory is not counted.

        Slurm's default. Where it has none, Slurm would give a job all memory of its nodes and let nobody come
        beside it: then as much as the node with the least of it has for each of its processors.
        """
        shares = [node.memory // node.processors for node in nodes if node.memory and node.processors]
        if not self.counted or not shares:
            return None
        bounds = [min(shares), self.default, self.most]
        least = min(bound for bound in bounds if bound is not None)
        return max(1, least // MEBIBYTE) * MEBIBYTE


def memory_terms(
    settings: Mapping[str, str], partitions: Mapping[str, Partition], name: str | None
) -> MemoryTerms:
    """For a partition, or for the default one where none is named."""
    partition = find_partition(partitions.values(), name)
    default, most = (settings.get(key, "") for key in ("DefMemPerCPU", "MaxMemPerCPU"))
    if partition is not None:
        default, most = partition.default_memory or default, partition.most_memory or most
    return MemoryTerms(
        counted="MEMORY" in settings.get("SelectTypeParameters", "").upper(),
        default=_bytes(default),
        most=_bytes(most),
    )


def gives_whole_nodes(settings: Mapping[str, str]) -> bool:
    return settings.get("SelectType", "") == "select/linear"


def _bytes(text: str) -> int | None:
    """Of MiB; 0 and UNLIMITED are no limit."""
    return int(text[:15]) * MEBIBYTE or None if text.isdigit() else None
