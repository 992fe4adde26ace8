"""From what is held of vnodes to parts of machines. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from adaptor.resources import Part
from backends.pbs.rows import NOTHING, Amounts
from backends.pbs.state.nodes import SiteNode, SiteNodes

Holding = Mapping[str, Amounts]
"""By vnode."""


def added(holdings: Iterable[Holding]) -> dict[str, Amounts]:
    """All of them together."""
    found: dict[str, Amounts] = {}
    for holding in holdings:
        for name, amounts in holding.items():
            found[name] = found.get(name, NOTHING) + amounts
    return found


def processors_of(held: Holding, site: SiteNodes) -> int:
    """Those on nodes in service that the site's requests may use."""
    return sum(amounts.processors for name, amounts in held.items() if name in site.nodes)


def parts_of(held: Holding, site: SiteNodes) -> tuple[Part, ...]:
    """On machines that are listed and in service; the vnodes of one together."""
    listed = site.listed
    machines: dict[str, list[tuple[SiteNode, Amounts]]] = {}
    for name, amounts in held.items():
        if amounts and name in listed:
            machines.setdefault(listed[name].host, []).append((listed[name], amounts))
    return tuple(_part(host, held) for host, held in machines.items())


def _part(host: str, held: Collection[tuple[SiteNode, Amounts]]) -> Part:
    gpus: Counter[str] = Counter()
    for node, amounts in held:
        gpus[node.gpu_type] += amounts.gpus
    total = sum((amounts for _, amounts in held), NOTHING)
    return Part(
        node=host,
        processors=total.processors,
        memory=total.memory,
        gpus=tuple(sorted((type, count) for type, count in gpus.items() if count)),
    )


def whole_machines(hosts: Collection[str], site: SiteNodes) -> dict[str, Amounts]:
    """All of them."""
    return {name: node.has for name, node in site.listed.items() if node.host in hosts}
