"""The site configuration of a PBS cluster as YAML with comments. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from adaptor.units import format_size
from backends.ceilings import LONGEST, POLITE, limits_of
from backends.describing import duration, scalar, site_name, source
from backends.pbs.limits import ceilings
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
    text += "\n".join(_site_lines(first)) + "\n"
    for terms in others:
        text += "\n" + "\n".join(f"# {line}" for line in _site_lines(terms)) + "\n"
    return text


def _site_lines(terms: Terms) -> list[str]:
    known = ceilings(terms)
    limits = limits_of(known)
    requests = source(known.requests, POLITE, "PBS")
    queue = terms.site.queue.name
    lines = [
        f"  {site_name(queue, 'pbs')}:",
        f"    # {_portrait(terms)}",
        "    backend: pbs",
        f"    partition: {scalar(queue)}  # the queue",
        "    limits:",
        f"      max_pending_requests: {limits.max_pending_requests}  # {requests}",
        f"      max_proc: {limits.max_proc}  # {known.processors.source}",
        f"      max_tr: {duration(limits.max_tr)}  # {source(known.seconds, LONGEST, 'PBS')}",
        f"    processors_per_node: {terms.site.usual_size}",
    ]
    if terms.site.exclusive:
        lines.append("    whole_nodes: true  # its nodes are given whole only")
    return lines


def _portrait(terms: Terms) -> str:
    site = terms.site
    sizes = sorted({(size, site.memory_of(host)) for host, size in site.sizes.items()})
    kinds = " or ".join(
        f"{size} processors" + (f" and {format_size(memory)} of memory" if memory else "")
        for size, memory in sizes
    )
    default = "; the default queue" if site.queue.name == terms.server.default_queue else ""
    routes = f"; leads to {', '.join(site.queue.routes_to)}" if site.queue.routes_to else ""
    state = f"; {terms.standstill}" if terms.standstill else ""
    return f"{len(site.sizes)} nodes in service with {kinds or 'nothing'} each{default}{routes}{state}"
