"""Rows as the parsers make them, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from backends.observed.rows import ReservationRow
from backends.slurm.rows import NodeRow, QueueRow

NOW = 1795250493.0
FLAGS = "*~#!%$@^-"


def node(
    name: str, allocated: int = 0, state: str = "mixed", size: int = 4, partition: str = "batch"
) -> NodeRow:
    return NodeRow(
        partition=partition,
        default=partition == "batch",
        available="up",
        node=name,
        state=state.rstrip(FLAGS),
        flags=state[len(state.rstrip(FLAGS)) :],
        allocated=allocated,
        idle=4 - allocated,
        other=0,
        memory=1000,
    )


def job(id: str, processors: int, nodes: tuple[str, ...] = (), **given: object) -> QueueRow:
    """A running job where `nodes` are given, else a waiting one."""
    row = QueueRow(
        id=id,
        state="RUNNING" if nodes else "PENDING",
        start=NOW - 100 if nodes else None,
        end=NOW + 500 if nodes else None,
        partitions=("batch",),
        processors=processors,
        node_count=max(1, len(nodes)),
        limit=600.0,
        nodes=nodes,
        planned_nodes=(),
        reason="None" if nodes else "Priority",
        priority=10,
    )
    return msgspec.structs.replace(row, **given)


def reservation(name: str, start: float, end: float, nodes: Iterable[str]) -> ReservationRow:
    return ReservationRow(name=name, start=start, end=end, nodes=dict.fromkeys(nodes))
