"""Needs of waiting jobs, and the nodes of a site on which they may run. Pure."""

from __future__ import annotations

import math
from typing import TypeAlias

from msgspec.structs import replace

from adaptor.crafting.fits import tasks_on
from adaptor.resources import Gpus, Need, TaskSize
from backends.slurm.fields import expand
from backends.slurm.nodes import PartitionNodes
from backends.slurm.placing.exclusivity import NOTHING
from backends.slurm.placing.features import parse_features
from backends.slurm.placing.job_details import JobDetail, JobWish
from backends.slurm.rows import QueueRow

_Nodes: TypeAlias = frozenset[str]
NOWHERE: _Nodes = frozenset()


class SlurmNeeds:
    """Needs of the jobs that wait at one site; jobs with the same needs share one object."""

    def __init__(self, site: PartitionNodes, *, whole_nodes: bool) -> None:
        self._site = site
        self._whole_nodes = whole_nodes
        self._all = frozenset(node.name for node in site.machines)
        self._needs: dict[tuple[JobWish, tuple[str, ...], int, bool], Need] = {}
        self._eligible: dict[tuple[str | tuple[str, ...], ...], _Nodes] = {}
        self._shared: dict[_Nodes, _Nodes] = {}
        self._capacities: dict[tuple[object, ...], int] = {}

    @property
    def under(self) -> tuple[object, ...]:
        """All that decides what a job needs besides the job itself."""
        site = self._site
        of_nodes = (site.machines, site.members, site.features, site.usual_size)
        return (site.name, site.memory_counted, self._whole_nodes, *of_nodes)

    def of(self, row: QueueRow, detail: JobDetail | None) -> Need | None:
        """Needs of a job; None: its processors may lie on any nodes. A job that can run nowhere has
        NOWHERE."""
        if detail is None or detail.wish is None:
            return None
        alone = self._whole_nodes or detail.exclusive != NOTHING
        key = (detail.wish, row.partitions, row.processors, alone)
        if key not in self._needs:
            self._needs[key] = self._made(row, detail.wish, alone=alone)
        return self._needs[key]

    def _made(self, row: QueueRow, wish: JobWish, *, alone: bool) -> Need:
        # Where anything is asked for by the node or the job, its nodes are taken to get equal parts.
        told = wish.memory_per_node or wish.gpus_per_node or wish.gpus_per_job
        by_node = alone or wish.fixed or told
        chunk = self._by_node(row, wish, alone=alone) if by_node else self._by_task(row, wish)
        nodes = self.nodes_for(row, wish)
        found = replace(chunk, nodes=None if nodes == self._all else nodes)
        if self._site.name in row.partitions:
            return found
        # Other jobs may share our nodes: no more is counted than ours can hold.
        return replace(found, chunks=min(found.chunks, self._capacity(found)))

    def nodes_for(self, row: QueueRow, wish: JobWish) -> _Nodes:
        """The machines of the site on which it may run."""
        key = (row.partitions, wish.features, wish.required, str(wish.nodes), wish.excluded)
        if key not in self._eligible:
            found = self._look(row, wish)
            self._eligible[key] = self._shared.setdefault(found, found)
        return self._eligible[key]

    def _look(self, row: QueueRow, wish: JobWish) -> _Nodes:
        names = self._all & frozenset().union(
            *(self._site.members.get(name, NOWHERE) for name in row.partitions)
        )
        try:
            if wish.excluded:
                names = names.difference(expand(wish.excluded))
            required = expand(wish.required)
            if len(required) >= wish.nodes:  # else others in addition
                names = names.intersection(required)
            if wish.features:
                fits = parse_features(wish.features).fits
                names = frozenset(name for name in names if fits(self._site.features.get(name, ())))
        except ValueError:
            return names  # more nodes than it will get: it is then counted wherever it may be
        return names

    def _by_node(self, row: QueueRow, wish: JobWish, *, alone: bool) -> Need:
        chunks = max(1, wish.nodes)
        if alone:
            chunks = max(chunks, math.ceil(row.processors / self._site.usual_size))
        processors = max(wish.processors_per_task, math.ceil(row.processors / chunks))
        tasks = math.ceil(wish.tasks / chunks)
        gpus = (
            wish.gpus_per_node
            or tuple((type, math.ceil(count / max(1, chunks))) for type, count in wish.gpus_per_job)
            or tuple((type, count * tasks) for type, count in wish.gpus_per_task)
        )
        return self._need(wish, chunks, processors, gpus, wish.memory_per_node, scatter=True, alone=alone)

    def _by_task(self, row: QueueRow, wish: JobWish) -> Need:
        tasks = max(1, wish.tasks)
        processors = max(wish.processors_per_task, math.ceil(row.processors / tasks))
        return self._need(wish, tasks, processors, wish.gpus_per_task, 0, scatter=False, alone=False)

    def _need(
        self,
        wish: JobWish,
        chunks: int,
        processors: int,
        gpus: Gpus,
        memory: int,
        *,
        scatter: bool,
        alone: bool,
    ) -> Need:
        count = sum(each for _, each in gpus)
        memory = max(memory, wish.memory_per_processor * processors, wish.memory_per_gpu * count)
        # A job that names no memory gets all of its nodes, so no other job shares them.
        everything = self._site.memory_counted and not memory
        return Need(
            chunks=chunks,
            processors=processors,
            memory=memory if self._site.memory_counted else 0,
            gpus=count,
            gpu_type=gpus[0][0] if len(gpus) == 1 else "",
            scatter=scatter,
            whole_nodes=alone or everything,
        )

    def _capacity(self, need: Need) -> int:
        """Chunks that its nodes hold when they are empty."""
        key = (need.processors, need.memory, need.gpus, need.gpu_type, need.scatter, need.nodes)
        if key not in self._capacities:
            size = TaskSize(
                processors=max(1, need.processors),
                memory=need.memory or None,
                gpus=need.gpus,
                gpu_type=need.gpu_type,
                nodes=2 if need.scatter else 1,  # at most one on each node
            )
            self._capacities[key] = sum(
                tasks_on(node, size)
                for node in self._site.machines
                if node.in_service and (need.nodes is None or node.name in need.nodes)
            )
        return self._capacities[key]
