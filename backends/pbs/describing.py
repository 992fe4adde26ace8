"""The site configuration of a PBS cluster as YAML with comments. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from backends.ceilings import LONGEST, POLITE, limits_of, polite_processors
from backends.describing import duration, partition_lines, scalar, site_name, source
from backends.pbs.limits import ceilings
from backends.pbs.state.sizes import size_in_words
from backends.pbs.terms import Terms

_HEAD = """\
# Written by `adaptor site init` for the PBS server {server} ({dialect} {version}).
# Durations are seconds, '1h 30m' or 'HH:MM:SS'. What stands after a limit says where it comes from;
# lower it as you like. `adaptor site check` compares this file with the server.

sites:
"""


def describe_server(dialect: str, sites: Iterable[Terms]) -> str:
    """The text of a configuration: the first queue as a site, the others as comments."""
    first, *others = sites
    text = _HEAD.format(server=first.server.name, dialect=dialect, version=first.server.version)
    names = [terms.site.queue.name for terms in (first, *others)]
    text += "\n".join([*_site_lines(first), *partition_lines(names, "queues")]) + "\n"
    for terms in others:
        text += "\n" + "\n".join(f"# {line}" for line in _site_lines(terms)) + "\n"
    return text


def _site_lines(terms: Terms) -> list[str]:
    known = ceilings(terms)
    limits = limits_of(known)
    requests = source(known.requests, POLITE, "PBS")
    polite = polite_processors(known, limits.max_pending_requests)
    processors = source(known.processors, limits.max_proc, "PBS", polite.source)
    queue = terms.site.queue.name
    lines = [
        f"  {site_name(queue, 'pbs')}:",
        f"    # {_portrait(terms)}",
        "    backend: pbs",
        f"    partition: {scalar(queue)}  # the queue",
        "    limits:",
        f"      max_pending_requests: {limits.max_pending_requests}  # {requests}",
        f"      max_proc: {limits.max_proc}  # {processors}",
        f"      max_tr: {duration(limits.max_tr)}  # {source(known.seconds, LONGEST, 'PBS')}",
        f"    processors_per_node: {terms.site.usual_size}",
    ]
    if terms.site.exclusive:
        lines.append("    whole_nodes: true  # its nodes are given whole only")
    return lines


def _portrait(terms: Terms) -> str:
    site = terms.site
    serving = [node for node in site.machines if node.ours and node.in_service]
    sizes = sorted({(node.processors, node.memory or 0, node.gpus) for node in serving})
    kinds = " or ".join(size_in_words(size, memory or None, gpus) for size, memory, gpus in sizes)
    default = "; the default queue" if site.queue.name == terms.server.default_queue else ""
    routes = f"; leads to {', '.join(site.queue.routes_to)}" if site.queue.routes_to else ""
    state = f"; {terms.standstill}" if terms.standstill else ""
    return f"{len(site.sizes)} nodes in service with {kinds or 'nothing'} each{default}{routes}{state}"
