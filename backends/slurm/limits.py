"""The three limits of De Rose §4.3 as Slurm sets them: partition, association and QOS."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from adaptor.config.schema import SiteConfig
from backends.base import SchedulerError
from backends.ceilings import Bound, Ceilings
from backends.slurm.nodes import PartitionNodes
from backends.slurm.parse import Association, QosAllowance
from backends.slurm.questions import Questions
from backends.slurm.rows import Partition


class SlurmTerms(msgspec.Struct, frozen=True, kw_only=True):
    """All that limits are made of."""

    partitions: dict[str, Partition]
    associations: list[Association] = []
    """Of our user; empty where there is no accounting."""
    qos: dict[str, QosAllowance] = {}


def ask_terms(questions: Questions) -> SlurmTerms:
    """Raises SchedulerError: no answer about the partitions; accounting may be absent."""
    partitions = {partition.name: partition for partition in questions.partitions()}
    try:
        return SlurmTerms(partitions=partitions, associations=questions.associations(), qos=questions.qos())
    except SchedulerError:
        return SlurmTerms(partitions=partitions)


def ceilings(terms: SlurmTerms, site: SiteConfig, nodes: PartitionNodes) -> Ceilings:
    """Raises SchedulerError: Slurm does not know the partition."""
    partition = terms.partitions.get(nodes.name)
    if partition is None:
        raise SchedulerError(f"Slurm has no partition {nodes.name}")
    allowances = _allowances(terms, site, partition)
    size = partition.processors // max(1, partition.nodes) or nodes.usual_size
    name = f"partition {partition.name}"
    bounds = [Bound(partition.processors, f"all processors of {name}")]
    if partition.max_nodes is not None:
        bounds.append(Bound(partition.max_nodes * size, f"MaxNodes of {name}"))
    per_node = [Bound(each.value * size, each.source) for each in _bounds(allowances, "nodes")]
    return Ceilings(
        requests=min(_bounds(allowances, "submitted"), default=Bound(math.inf, "no limit")),
        processors=min([*bounds, *_bounds(allowances, "processors"), *per_node, *_of_own_nodes(nodes)]),
        seconds=min([_partition_time(partition), *_bounds(allowances, "seconds")]),
        whole=min([partition.processors, *(int(bound.value) for bound in _of_own_nodes(nodes))]),
        node=max((node.processors for node in nodes.machines if node.ours), default=size),
    )


def _of_own_nodes(nodes: PartitionNodes) -> list[Bound]:
    """Where the site's keys leave fewer than the partition has."""
    ours = [node for node in nodes.machines if node.ours]
    if len(ours) == len(nodes.machines):
        return []
    processors = sum(node.processors for node in ours)
    return [Bound(processors, f"the nodes of partition {nodes.name} on which this site's requests run")]


def _partition_time(partition: Partition) -> Bound:
    if math.isinf(partition.max_time):
        return Bound(math.inf, "no limit")
    return Bound(partition.max_time, f"MaxTime of partition {partition.name}")


def _bounds(allowances: Iterable[QosAllowance], kind: str) -> list[Bound]:
    """What they say of this kind, where they say anything."""
    found = [Bound(getattr(each, kind), each.source) for each in allowances]
    return [bound for bound in found if not math.isinf(bound.value)]


def _allowances(terms: SlurmTerms, site: SiteConfig, partition: Partition) -> list[QosAllowance]:
    """Those of the association and of the QOS that a request of the site is made under."""
    mine = find_association(terms.associations, site, partition.name)
    names = {site.qos or (mine.default_qos if mine else "") or "normal", partition.qos}
    found = [terms.qos[name] for name in sorted(names) if name in terms.qos]
    return [mine.allowance, *found] if mine else found


def find_association(
    associations: Iterable[Association], site: SiteConfig, partition: str
) -> Association | None:
    """The association of the site's account, one for this very partition before one for all."""
    fitting = [
        each
        for each in associations
        if each.partition in ("", partition) and site.account in (None, each.account)
    ]
    return max(fitting, key=lambda each: each.partition == partition, default=None)
