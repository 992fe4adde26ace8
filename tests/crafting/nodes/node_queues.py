"""Small sites of nodes in whole seconds, so that a reference can count them."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from adaptor.model import PendingJob, QueueState, RunningJob
from adaptor.resources import Gpus, Need, Node, Part

HORIZON = 120
"""Seconds after which nothing changes any more on a drawn site, unless it is held for ever."""

GPUS: st.SearchStrategy[Gpus] = st.sampled_from(
    [(), (), (("a100", 2),), (("", 1),), (("a100", 1), ("h100", 3))]
)


@st.composite
def nodes(draw: st.DrawFn) -> tuple[Node, ...]:
    return tuple(
        Node(
            name=f"n{number}",
            processors=draw(st.integers(1, 6)),
            memory=draw(st.one_of(st.none(), st.integers(1, 8))),
            gpus=draw(GPUS),
            in_service=draw(st.integers(0, 9)) > 0,
            ours=draw(st.integers(0, 9)) > 0,
        )
        for number in range(draw(st.integers(1, 5)))
    )


@st.composite
def part(draw: st.DrawFn, node: Node) -> Part:
    return Part(
        node=node.name,
        processors=draw(st.integers(0, node.processors)),
        memory=draw(st.integers(0, node.memory or 0)),
        gpus=tuple((type, draw(st.integers(1, count))) for type, count in node.gpus if draw(st.booleans())),
    )


@st.composite
def parts(draw: st.DrawFn, site: tuple[Node, ...]) -> tuple[Part, ...]:
    chosen = draw(st.lists(st.sampled_from(site), unique_by=lambda node: node.name, min_size=1, max_size=3))
    return tuple(draw(part(node)) for node in chosen)


@st.composite
def needs(draw: st.DrawFn, site: tuple[Node, ...] = (), least: int = 1) -> Need:
    names = st.frozensets(st.sampled_from([node.name for node in site])) if site else st.none()
    return Need(
        chunks=draw(st.sampled_from([1, 2, 3, 4, 10**15])),
        processors=draw(st.integers(least, 4)),
        memory=draw(st.integers(0, 3)),
        gpus=draw(st.sampled_from([0, 0, 0, 1, 2])),
        gpu_type=draw(st.sampled_from(["", "", "a100", "v100"])),
        scatter=draw(st.booleans()),
        whole_nodes=draw(st.integers(0, 3)) == 0,
        nodes=draw(st.one_of(st.none(), names)),
    )


@st.composite
def node_queues(draw: st.DrawFn, *, planned: bool = False) -> QueueState:
    """`planned`: every job tells when it starts and what it holds of each node."""
    site = draw(nodes())
    running = [
        RunningJob(f"r{number}", 1, draw(st.integers(-5, 30)), draw(parts(site)))
        for number in range(draw(st.integers(0, 4)))
    ]
    pending = []
    for number in range(draw(st.integers(0, 5))):
        job = PendingJob(f"p{number}", draw(st.integers(1, 6)), draw(st.integers(1, 20)))
        if planned or draw(st.booleans()):
            held = draw(parts(site)) if planned or draw(st.booleans()) else ()
            start = float(draw(st.integers(-3, 30)))
            job = msgspec.structs.replace(job, planned_start=start, parts=held)
        if not planned and draw(st.booleans()):
            need = draw(needs(site, least=0))
            if draw(st.booleans()):
                need = msgspec.structs.replace(need, others=(draw(needs(site)),))
            job = msgspec.structs.replace(job, need=need)
        pending.append(job)
    return QueueState(
        now=0.0,
        processors=sum(node.processors for node in site if node.in_service),
        running=tuple(running),
        pending=tuple(pending),
        nodes=site,
    )
