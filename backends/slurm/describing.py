"""The site configuration of a cluster as YAML with comments. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from adaptor.config.schema import SiteConfig
from adaptor.units import format_size
from backends.ceilings import LONGEST, POLITE, limits_of
from backends.describing import duration, scalar, site_name, source
from backends.slurm.limits import Terms, ceilings
from backends.slurm.nodes import SiteNodes

_HEAD = """\
# Written by `adaptor site init` for the Slurm cluster {cluster} (version {version}).
# Durations are seconds, '1h 30m' or 'HH:MM:SS'. What stands after a limit says where it comes from;
# lower it as you like. `adaptor site check` compares this file with the cluster.

sites:
"""


def describe_cluster(settings: Mapping[str, str], partitions: Iterable[SiteNodes], terms: Terms) -> str:
    """The text of a configuration: the first partition as a site, the others as comments."""
    first, *others = partitions
    yields = settings.get("PreemptType") == "preempt/partition_prio"
    text = _HEAD.format(
        cluster=settings.get("ClusterName", "?"), version=settings.get("SLURM_VERSION", "unknown")
    )
    text += "\n".join([*_site_lines(first, terms), *(_donation_lines(first, terms) if yields else ())]) + "\n"
    for nodes in others:
        text += "\n" + "\n".join(f"# {line}" for line in _site_lines(nodes, terms)) + "\n"
    return text


def _site_lines(nodes: SiteNodes, terms: Terms) -> list[str]:
    site = SiteConfig(backend="slurm", partition=nodes.partition)
    known = ceilings(terms, site, nodes)
    limits = limits_of(known)
    requests = source(known.requests, POLITE, "Slurm")
    lines = [
        f"  {site_name(nodes.partition, 'slurm')}:",
        f"    # {_portrait(nodes, terms)}",
        "    backend: slurm",
        f"    partition: {scalar(nodes.partition)}",
        *_account_lines(terms),
        "    limits:",
        f"      max_pending_requests: {limits.max_pending_requests}  # {requests}",
        f"      max_proc: {limits.max_proc}  # {known.processors.source}",
        f"      max_tr: {duration(limits.max_tr)}  # {source(known.seconds, LONGEST, 'Slurm')}",
        f"    processors_per_node: {nodes.usual_size}",
    ]
    if nodes.exclusive:
        lines.append("    whole_nodes: true  # the partition gives nothing less")
    return lines


def _donation_lines(nodes: SiteNodes, terms: Terms) -> list[str]:
    """How idle nodes could be donated, where jobs of another partition make room for those of this one."""
    own = terms.partitions[nodes.partition]
    yielding = [
        each.name
        for each in terms.partitions.values()
        if each.name in nodes.related and each.tier < own.tier and each.preempt_mode in ("CANCEL", "REQUEUE")
    ]
    if not yielding:
        return []
    return [
        f"    # Jobs of {' and '.join(yielding)} make room for others, so idle nodes can be donated:",
        f"    # donation: {{mode: preemptible, partition: {scalar(yielding[0])}}}",
    ]


def _portrait(nodes: SiteNodes, terms: Terms) -> str:
    sizes = sorted({(node.processors, node.memory) for node in nodes.nodes.values()})
    kinds = " or ".join(
        f"{cpus} processors and {format_size(memory * 2**20)} of memory" for cpus, memory in sizes
    )
    default = "; the default partition" if terms.partitions[nodes.partition].default else ""
    state = "" if nodes.available == "up" else f"; {nodes.available} at the moment"
    return f"{len(nodes.nodes)} nodes in service with {kinds or 'nothing'} each{default}{state}"


def _account_lines(terms: Terms) -> list[str]:
    """Which accounts and QOS there are to choose from; without a choice Slurm takes the default."""
    accounts = dict.fromkeys(each.account for each in terms.associations)
    qos = dict.fromkeys(name for each in terms.associations for name in each.qos)
    choices = {"account": accounts, "qos": qos}
    return [f"    # {key}: one of {', '.join(names)}" for key, names in choices.items() if len(names) > 1]
