"""What `scontrol show node` tells beyond sinfo: memory, generic resources and features. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from adaptor.resources import Gpus
from backends.numbers import not_understood, understood, whole
from backends.observed.rows import total, without
from backends.slurm.placing.gres import GresCounts, gpus_of, gres_counts, parse_gpus, sharded_gpus


class NodeDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Memory in bytes, as much of it as jobs may have."""

    memory: int
    allocated_memory: int
    gres: GresCounts
    gpus: Gpus
    """Those that are not drained."""
    gpus_used: Gpus
    features: frozenset[str]
    weight: int
    """Of two nodes Slurm fills the one with the lower weight first."""
    place: int
    """Of nodes of the same weight, in the order of slurm.conf."""


_KEYS = (
    "ActiveFeatures",
    "Gres",
    "GresDrain",
    "GresUsed",
    "RealMemory",
    "AllocMem",
    "MemSpecLimit",
    "Weight",
)
_VALUE = re.compile(rf" ({'|'.join(_KEYS)})=(\S*)")


def parse_node_details(text: str) -> dict[str, NodeDetail]:
    """`scontrol show node -a -d -o`, by the nodes' names.

    Raises:
        SchedulerError: a line is not what that command prints.
    """
    found: dict[str, NodeDetail] = {}
    for line in text.splitlines():
        if not line.strip() or "No nodes" in line:
            continue
        name = line.partition(" ")[0]
        if not name.startswith("NodeName="):
            raise not_understood("scontrol show node", line)
        detail = understood("scontrol show node", _detail, line)
        found[name.removeprefix("NodeName=")] = msgspec.structs.replace(detail, place=len(found))
    return found


def _detail(line: str) -> NodeDetail:
    values: dict[str, str] = {}
    for key, value in _VALUE.findall(line):
        values.setdefault(key, value)  # what stands later may be part of a comment
    gres = gres_counts(values.get("Gres", ""))
    used = values.get("GresUsed", "")
    drained = gpus_of(gres_counts(values.get("GresDrain", "")))
    text = values.get("ActiveFeatures", "")
    return NodeDetail(
        memory=_mebibytes(values, "RealMemory") - _mebibytes(values, "MemSpecLimit"),
        allocated_memory=_mebibytes(values, "AllocMem"),
        gres=gres,
        gpus=without(gpus_of(gres), drained),
        gpus_used=total([parse_gpus(used), sharded_gpus(used)]),
        features=(frozenset() if text == "(null)" else frozenset(filter(None, text.split(",")))),
        weight=whole(values.get("Weight", "1")),
        place=0,
    )


def _mebibytes(values: Mapping[str, str], key: str) -> int:
    return whole(values.get(key, "0").rstrip("M")) * 2**20
