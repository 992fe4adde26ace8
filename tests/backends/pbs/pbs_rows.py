"""Rows as the parsers make them, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from adaptor.resources import TaskSize
from backends.observed.rows import Amounts, ReservationRow
from backends.pbs.constraints import PbsShape
from backends.pbs.rows import PbsJob, PbsNode, PbsQueue

NOW = 1795241278.0
QUEUES = {
    "workq": PbsQueue(name="workq"),
    "express": PbsQueue(name="express", priority=160),
    "route": PbsQueue(name="route", routes_to=("express", "workq", "elsewhere")),
}


def node(name: str, assigned: int | Amounts = 0, state: str = "free", **given: object) -> PbsNode:
    row = PbsNode(
        name=name,
        host=name.partition("[")[0],
        states=frozenset(state.split(",")),
        processors=4,
        assigned=Amounts(assigned) if isinstance(assigned, int) else assigned,
    )
    return msgspec.structs.replace(row, **given)


def job(id: str, processors: int, *nodes: str, **given: object) -> PbsJob:
    """A running job where nodes are given, else a waiting one."""
    share, rest = divmod(processors, max(1, len(nodes)))
    row = PbsJob(
        id=id,
        tag="",
        owner="bob",
        state="R" if nodes else "Q",
        queue="workq",
        processors=processors,
        limit=600.0,
        submitted=float(id) if id.isdecimal() else None,
        start=NOW - 100 if nodes else None,
        nodes={name: Amounts(share + (place < rest)) for place, name in enumerate(nodes)},
    )
    return msgspec.structs.replace(row, **given)


def held(processors: Mapping[str, int]) -> dict[str, Amounts]:
    """Processors alone, by node."""
    return {name: Amounts(count) for name, count in processors.items()}


def reservation(
    name: str, queue: str, start: float, end: float, nodes: Mapping[str, Amounts]
) -> ReservationRow:
    return ReservationRow(name=name, queue=queue, start=start, end=end, nodes=nodes, reported=True)


def pbs_shape(
    count: int,
    processors: int,
    memory: int | None = None,
    whole_nodes: bool = False,
    node: str = "",
    *,
    gpus: int = 0,
    gpu_type: str = "",
    traits: tuple[tuple[str, str], ...] = (),
) -> PbsShape:
    part = TaskSize(processors=processors, memory=memory, gpus=gpus, gpu_type=gpu_type)
    return PbsShape(count=count, part=part, whole_nodes=whole_nodes, node=node, traits=traits)
