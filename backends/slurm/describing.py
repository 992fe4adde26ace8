"""The site configuration of a cluster as YAML with comments. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from adaptor.config.schema import SiteConfig
from backends.describing import Described, described, scalar
from backends.slurm.limits import Terms, ceilings
from backends.slurm.nodes import PartitionNodes
from backends.slurm.placing.exclusivity import NODE
from backends.slurm.rows import Partition

_MOST = 12
"""Features that are named."""

_HEAD = """\
# Written by `adaptor site init` for the Slurm cluster {cluster} (version {version}).
# Durations are seconds, '1h 30m' or 'HH:MM:SS'. What stands after a limit says where it comes from;
# lower it as you like. `adaptor site check` compares this file with the cluster.

sites:
"""


def describe_cluster(settings: Mapping[str, str], partitions: Iterable[PartitionNodes], terms: Terms) -> str:
    """The text of a configuration: the first partition as a site, the others as comments."""
    first, *others = partitions
    yields = settings.get("PreemptType") == "preempt/partition_prio"
    head = _HEAD.format(
        cluster=settings.get("ClusterName", "?"), version=settings.get("SLURM_VERSION", "unknown")
    )
    own = terms.partitions[first.name]
    named = (terms.partitions[each.name] for each in others)
    choices = [own.name, *(each.name for each in named if not (yields and _makes_room(each, own)))]
    sites = [_described(nodes, terms) for nodes in (first, *others)]
    return described(head, sites, "partitions", choices, _donation_lines(first, terms) if yields else ())


def _described(nodes: PartitionNodes, terms: Terms) -> Described:
    partition = terms.partitions[nodes.name]
    default = "; the default partition" if partition.default else ""
    state = "" if nodes.available == "up" else f"; {nodes.available} at the moment"
    # Which accounts and QOS there are to choose from; without a choice Slurm takes the default.
    accounts = dict.fromkeys(each.account for each in terms.associations)
    qos = dict.fromkeys(name for each in terms.associations for name in each.qos)
    choices = {"account": accounts, "qos": qos}
    return Described(
        backend="slurm",
        scheduler="Slurm",
        nodes=nodes,
        known=ceilings(terms, SiteConfig(backend="slurm", partition=nodes.name), nodes),
        remarks=default + state,
        choices=[
            *_feature_lines(nodes),
            *(
                [
                    f"    # {key}: one of {', '.join(names)}"
                    for key, names in choices.items()
                    if len(names) > 1
                ]
            ),
        ],
        whole_nodes="the partition gives nothing less" if partition.exclusive == NODE else "",
    )


def _makes_room(partition: Partition, other: Partition) -> bool:
    """Whether jobs of a partition are ended for those of another, on the nodes that both have."""
    return partition.tier < other.tier and partition.preempt_mode in ("CANCEL", "REQUEUE")


def _donation_lines(nodes: PartitionNodes, terms: Terms) -> list[str]:
    """How idle nodes could be donated, where jobs of another partition make room for those of this one."""
    own = terms.partitions[nodes.name]
    there = [each for each in terms.partitions.values() if each.name in nodes.members]
    yielding = [each.name for each in there if _makes_room(each, own)]
    if not yielding:
        return []
    return [
        f"    # Jobs of {' and '.join(yielding)} make room for others, so idle nodes can be donated:",
        f"    # donation: {{mode: preemptible, partition: {scalar(yielding[0])}}}",
    ]


def _feature_lines(nodes: PartitionNodes) -> list[str]:
    """By which features nodes may be chosen, where they differ in any."""
    there = [nodes.features.get(node.name, frozenset()) for node in nodes.machines]
    telling = sorted(frozenset().union(*there) - frozenset.intersection(*there)) if there else []
    if not telling:
        return []
    return [f"    # constraint: {telling[0]}  # features that some nodes have: {', '.join(telling[:_MOST])}"]
