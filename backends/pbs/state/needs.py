"""What waiting jobs ask for, as needs of machines. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from adaptor.resources import Need
from backends.observed.rows import NOTHING
from backends.pbs.openpbs.selecting import GPU_TYPES
from backends.pbs.rows import PbsChunk, PbsJob
from backends.pbs.state.nodes import QueueNodes

_Places = frozenset[str] | None


class Needs:
    """Of the jobs at one site. Jobs that may run on the same machines share one set of them."""

    def __init__(self, site: QueueNodes, *, whole_nodes: bool = False) -> None:
        """`whole_nodes`: whether a node that is partly in use counts as wholly so."""
        self._site = site
        self._whole_nodes = whole_nodes
        self._all = frozenset(node.name for node in site.machines)
        self._ours = frozenset(node.name for node in site.machines if node.ours)
        self._places: dict[tuple[str, tuple[tuple[str, str], ...]], _Places] = {}
        self._sets: dict[frozenset[str], frozenset[str]] = {}
        self._known: dict[tuple[object, ...], Need | None] = {}

    def of(self, job: PbsJob) -> Need | None:
        """None: it does not tell, or tells nothing that can be understood. Equal jobs share one need."""
        key = (job.queue, job.chunks, job.placing, job.exclusive)
        if key not in self._known:
            self._known[key] = self._made(job)
        return self._known[key]

    def _made(self, job: PbsJob) -> Need | None:
        chunks = (_packed(job.chunks),) if job.placing == "pack" and job.chunks else job.chunks
        needs = [self._need(job, chunk) for chunk in chunks if chunk.count]
        if not needs:
            return None
        first, *others = needs
        return msgspec.structs.replace(first, others=tuple(others))

    def concern_us(self, need: Need) -> bool:
        """Whether some of it may come to nodes of ours."""
        return any(each.nodes is None or each.nodes & self._ours for each in (need, *need.others))

    def _need(self, job: PbsJob, chunk: PbsChunk) -> Need:
        traits = dict(chunk.traits)
        key = (job.queue, chunk.traits)
        if key not in self._places:
            self._places[key] = self._find(job.queue, dict(chunk.traits))
        return Need(
            chunks=chunk.count,
            processors=chunk.each.processors,
            memory=chunk.each.memory,
            gpus=sum(count for _, count in chunk.each.gpus),
            gpu_type=next((traits[name] for name in GPU_TYPES if name in traits), ""),
            scatter=job.placing == "scatter",
            whole_nodes=job.exclusive or self._whole_nodes or self._site.exclusive,
            nodes=self._places[key],
        )

    def _find(self, queue: str, traits: Mapping[str, str]) -> _Places:
        """Every node where none has what is asked for: PBS may know the resource by another way."""
        found = self._site.members.get(queue, self._all) & self._all
        for trait in traits.items():
            found &= self._site.traits.get(trait, frozenset())
        return None if found in (self._all, frozenset()) else self._sets.setdefault(found, found)


def _packed(chunks: tuple[PbsChunk, ...]) -> PbsChunk:
    """All on one machine are as one."""
    traits = sorted({trait for chunk in chunks for trait in chunk.traits})
    return PbsChunk(each=sum((chunk.each * chunk.count for chunk in chunks), NOTHING), traits=tuple(traits))
