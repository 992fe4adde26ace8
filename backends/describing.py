"""Common parts of the site configurations that `adaptor site init` writes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import msgspec
import yaml

from adaptor.config.loading import read_policy
from adaptor.config.policy import Policy
from adaptor.config.yaml_lines import read_yaml
from adaptor.model import Bound
from adaptor.units import clock_duration, counted, format_duration, format_size, parse_duration
from backends.ceilings import (
    LONGEST,
    POLITE,
    Ceilings,
    limits_of,
    polite_pilots,
    polite_processors,
    within_policy,
)
from backends.observed.site import SiteNodes


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of the entry of a partition (or queue)."""

    backend: str
    scheduler: str  # its name for people
    nodes: SiteNodes
    known: Ceilings
    remarks: str = ""  # behind the sizes of its nodes
    note: str = ""  # behind its name
    choices: Sequence[str] = ()  # lines below its name
    whole_nodes: str = ""  # why only whole nodes are given; empty: parts of nodes are


_HEAD = """\
# Written by `adaptor site init` for {0}.
# Durations are seconds, '1h 30m' or 'HH:MM:SS'. What stands after a limit says where it comes from;
# lower it as you like. `adaptor site check` compares this file with the {1}.

sites:
"""


def described(
    of: str,
    against: str,
    sites: Sequence[Described],
    word: str,
    names: Sequence[str],
    more: Sequence[str] = (),
) -> str:
    """The text of a configuration: the first entry as a site, the others as comments.

    The limits stay within the policy of this machine.

    Args:
        of: the scheduler that answers, with its release.
        against: what a check compares the text with.
        word: what the scheduler calls partitions, in the plural.
        names: of those that could be one site.
        more: lines below the first entry.
    """
    allowed = read_policy()
    first, *others = (_site_lines(site, allowed) for site in sites)
    text = _HEAD.format(of, against) + "\n".join([*first, *_partition_lines(names, word), *more]) + "\n"
    return text + "".join("\n" + "".join(f"# {line}\n" for line in lines) for lines in others)


def _site_lines(site: Described, policy: Policy) -> list[str]:
    known, name, scheduler = within_policy(site.known, policy), site.nodes.name, site.scheduler
    limits = limits_of(known)
    requests = _source(known.requests, POLITE, scheduler)
    pilots = polite_pilots(known)
    pilots = Bound(pilots.value, _source(known.requests, int(pilots.value), scheduler, pilots.source))
    if (most := policy.keys.limits.max_pilots) is not None and most < pilots.value:
        pilots = Bound(most, policy.at("limits.max_pilots"))
    polite = polite_processors(known, limits.max_pending_requests)
    processors = _source(known.processors, limits.max_proc, scheduler, polite.source)
    count = len(site.nodes.sizes)
    each = "" if count == 1 else " each"
    lines = [
        f"  {scalar(site_name(name, site.backend))}:",
        f"    # {counted(count, 'node')} in service with {_kinds(site.nodes)}{each}{site.remarks}",
        f"    backend: {site.backend}",
        f"    partition: {scalar(name)}{site.note}",
        *site.choices,
        "    limits:",
        f"      max_pending_requests: {limits.max_pending_requests}  # {requests}",
        f"      max_pilots: {int(pilots.value)}  # {pilots.source}",
        f"      max_proc: {limits.max_proc}  # {processors}",
        f"      max_tr: {_duration(limits.max_tr)}  # {_source(known.seconds, LONGEST, scheduler)}",
        f"    processors_per_node: {site.nodes.usual_size}",
    ]
    return [*lines, f"    whole_nodes: true  # {site.whole_nodes}"] if site.whole_nodes else lines


def _kinds(nodes: SiteNodes) -> str:
    serving = [node for node in nodes.machines if node.ours and node.in_service]
    sizes = sorted({(node.processors, node.memory or 0, node.gpus) for node in serving})
    return " or ".join(size_in_words(size, memory or None, gpus) for size, memory, gpus in sizes) or "nothing"


def size_in_words(processors: int, memory: int | None, gpus: Iterable[tuple[str, int]]) -> str:
    """`4 processors, 4G of memory and 2 GPUs`."""
    words = [counted(processors, "processor")]
    if memory is not None:
        words.append(f"{format_size(memory)} of memory")
    words += [counted(count, f"{type} GPU".strip()) for type, count in gpus]
    return " and ".join([", ".join(words[:-1]), words[-1]] if words[:-1] else words)


def _source(bound: Bound, ours: int, scheduler: str, why: str = "") -> str:
    """Source of a limit: the scheduler, or our own choice where the scheduler allows more than is polite."""
    if bound.value <= ours:
        return bound.source
    allows = "" if math.isinf(bound.value) else f" ({bound.value:g})"
    chosen = f"our own choice, {why}" if why else "our own choice"
    return f"{chosen}; {scheduler}: {bound.source}{allows}"


def _duration(seconds: int) -> str:
    """The shortest text that is read back as exactly this duration."""
    text = format_duration(seconds)
    return text if parse_duration(text) == seconds else f"'{clock_duration(seconds)}'"


def _partition_lines(names: Sequence[str], word: str) -> list[str]:
    """A comment that shows several partitions as one site, for below its first key; empty if there is only
    one."""
    if len(names) < 2:
        return []
    listed = ", ".join(map(_entry, names))
    return [
        f"    # To have each request choose among several {word}, write instead of `partition` and `limits`:",
        f"    # partitions: {{{listed}}}",
    ]


def _entry(partition: str) -> str:
    name = site_name(partition, "other")
    return f"{scalar(name)}: {{{'' if name == partition else f'partition: {scalar(partition)}'}}}"


def site_name(queue: str, otherwise: str) -> str:
    """A site's name from that of a partition or queue."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", queue).lstrip("-_") or otherwise


def scalar(text: str) -> str:
    """The text in YAML such that `read_yaml` reads it back: a partition may be called `null` or `1e3`."""
    written = str(yaml.safe_dump(text, default_flow_style=True)).split("\n")[0]
    return (
        written if read_yaml(written, "")[1] == text else str(yaml.safe_dump(text, default_style="'")).strip()
    )
