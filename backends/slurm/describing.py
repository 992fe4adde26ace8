"""The site configuration of a cluster as YAML with comments. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

import yaml

from adaptor.config import SiteConfig
from adaptor.units import clock_duration, format_duration, format_size, parse_duration
from backends.slurm.limits import LONGEST, POLITE, Bound, Terms, ceilings, limits_of
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
    text = _HEAD.format(
        cluster=settings.get("ClusterName", "?"), version=settings.get("SLURM_VERSION", "unknown")
    )
    text += "\n".join(_site_lines(first, terms)) + "\n"
    for nodes in others:
        text += "\n" + "\n".join(f"# {line}" for line in _site_lines(nodes, terms)) + "\n"
    return text


def _site_lines(nodes: SiteNodes, terms: Terms) -> list[str]:
    site = SiteConfig(backend="slurm", partition=nodes.partition)
    known = ceilings(terms, site, nodes)
    limits = limits_of(known)
    lines = [
        f"  {_site_name(nodes.partition)}:",
        f"    # {_portrait(nodes, terms)}",
        "    backend: slurm",
        f"    partition: {_scalar(nodes.partition)}",
        *_account_lines(terms),
        "    limits:",
        f"      max_pending_requests: {limits.max_pending_requests}  # {_source(known.requests, POLITE)}",
        f"      max_proc: {limits.max_proc}  # {known.processors.source}",
        f"      max_tr: {_duration(limits.max_tr)}  # {_source(known.seconds, LONGEST)}",
        f"    processors_per_node: {nodes.usual_size}",
    ]
    if nodes.exclusive:
        lines.append("    whole_nodes: true  # the partition gives nothing less")
    return lines


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


def _source(bound: Bound, ours: int) -> str:
    """Where a limit comes from: Slurm, or where that allows more than is neighbourly, ourselves."""
    if bound.value <= ours:
        return bound.source
    allows = "" if math.isinf(bound.value) else f" ({bound.value:g})"
    return f"our own choice; Slurm: {bound.source}{allows}"


def _duration(seconds: int) -> str:
    text = format_duration(seconds)
    return text if parse_duration(text) == seconds else f"'{clock_duration(seconds)}'"


def _site_name(partition: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "-", partition).lstrip("-_") or "slurm"


def _scalar(text: str) -> str:
    """As YAML writes it: a partition may be called `null` or `1e3`."""
    return str(yaml.safe_dump(text, default_flow_style=True)).split("\n")[0]
