"""Rows as the parsers of every scheduler return them, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from adaptor.model import QueueState
from adaptor.resources import Node
from backends.observed.rows import Amounts, JobRow, ReservationRow
from backends.observed.site import SiteNode, SiteNodes
from backends.observed.state import Observation, queue_state

NOW = 1795250493.0


def node(name: str, held: int | Amounts = 0, **given: object) -> SiteNode:
    """A node of 4 processors; `n1[0]` is a vnode of n1."""
    taken = Amounts(held) if isinstance(held, int) else held
    row = SiteNode(name=name, host=name.partition("[")[0], has=Amounts(4), held=taken)
    return msgspec.structs.replace(row, **given)


def site(nodes: Iterable[SiteNode], **given: object) -> SiteNodes:
    """Nodes of a queue `batch`, which the jobs of `express` use too."""
    listed = {node.name: node for node in nodes}
    machines: dict[str, Amounts] = {}
    for row in listed.values():
        machines[row.host] = machines.get(row.host, Amounts()) + row.has
    found = SiteNodes(
        name="batch",
        listed=listed,
        members=dict.fromkeys(("batch", "express"), frozenset(machines)),
        machines=tuple(
            Node(name=host, processors=has.processors, memory=has.memory or None, gpus=has.gpus)
            for host, has in machines.items()
        ),
        hosts={node.name: node.host for node in listed.values()},
    )
    return msgspec.structs.replace(found, **given)


def job(id: str, processors: int, *nodes: str, **given: object) -> JobRow:
    """A job that runs where nodes are given and does not tell its parts, else one that waits."""
    row = JobRow(
        id=id,
        elements=(id,),
        queues=("batch",),
        state="running" if nodes else "waiting",
        limit=600.0,
        end=NOW + 500,
        processors=processors,
        nodes=nodes,
        holds=None if nodes else {},
        considered=not nodes,
        place=(int(id),) if id.isdecimal() else (),
    )
    return msgspec.structs.replace(row, **given)


def reservation(
    name: str, start: float, end: float, nodes: Mapping[str, Amounts | None], **given: object
) -> ReservationRow:
    """`start` and `end` in seconds from now."""
    row = ReservationRow(name=name, start=NOW + start, end=NOW + end, nodes=nodes)
    return msgspec.structs.replace(row, **given)


def look(nodes: Iterable[SiteNode], jobs: Iterable[JobRow], **given: object) -> QueueState:
    seen = Observation(now=NOW, site=site(nodes), jobs=list(jobs))
    return queue_state(msgspec.structs.replace(seen, **given))
