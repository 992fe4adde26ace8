"""Findings of `adaptor site check`, and the checks that are the same for every batch scheduler."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.model import Bound
from adaptor.units import counted, format_duration
from backends.ceilings import Ceilings, limits_of
from backends.observed.rows import total
from backends.observed.site import SiteNodes


class Finding(msgspec.Struct, frozen=True):
    """One line of `adaptor site check`."""

    level: Literal["ok", "warning", "error"]
    text: str


def ok(text: str) -> Finding:
    return Finding("ok", text)


def warning(text: str) -> Finding:
    return Finding("warning", text)


def error(text: str) -> Finding:
    return Finding("error", text)


def check_limits(site: SiteConfig, known: Ceilings, scheduler: str) -> Iterator[Finding]:
    """Check that the configured limits are not beyond the scheduler's."""
    yield _within("max_pending_requests", site.limits.max_pending_requests, known.requests, scheduler)
    pilots = limits_of(known).max_pilots
    yield _within("max_pilots", site.limits.max_pilots, known.requests, scheduler, otherwise=pilots)
    polite = limits_of(known, site.limits.max_pending_requests).max_proc
    yield _within("max_proc", site.limits.max_proc, known.processors, scheduler, otherwise=polite)
    yield _within("max_tr", site.limits.max_tr, known.seconds, scheduler, duration=True)


def check_service(word: str, nodes: SiteNodes) -> Iterator[Finding]:
    """Check that nodes are in service, and report how much jobs can use. `word`: `partition` or `queue`."""
    serving = nodes.nodes.values()
    if not serving:
        yield warning(f"{word} {nodes.name} has no node in service at the moment")
        return
    words = [f"{counted(len(nodes.sizes), 'node')} in service", f"{nodes.processors} processors"]
    words += [
        counted(count, f"{type} GPU".strip()) for type, count in total(node.has.gpus for node in serving)
    ]
    yield ok(f"{word} {nodes.name}: {', '.join(words)}")


def check_whole_nodes(site: SiteConfig, word: str, nodes: SiteNodes) -> Iterator[Finding]:
    """Check that the site asks for whole nodes, for a scheduler that gives only these."""
    if not site.whole_nodes:
        yield error(
            f"{word} {nodes.name} gives only whole nodes: set `whole_nodes: true` and "
            f"`processors_per_node: {nodes.usual_size}`, or the rest of each node stays idle"
        )


def check_sizes(site: SiteConfig, nodes: SiteNodes) -> Iterator[Finding]:
    """Check that the sizes of nodes, in processors, are as configured."""
    sizes, usual = set(nodes.sizes.values()), nodes.usual_size
    told = " or ".join(str(size) for size in sorted(sizes))
    if site.whole_nodes and site.processors_per_node is None:
        yield error(f"whole_nodes needs `processors_per_node: {usual}`")
    if site.processors_per_node is not None and sizes and site.processors_per_node not in sizes:
        yield error(f"processors_per_node is {site.processors_per_node}, but the nodes have {told}")
    if site.whole_nodes and len(sizes) > 1:
        yield warning(
            f"the nodes have {told} processors: requests are counted with "
            f"{site.processors_per_node or usual} each"
        )


def check_age(how: str, *, loses_age: bool) -> Finding:
    """Report whether withdrawing costs a request its place. `how`: by what jobs gain their place."""
    cost = "loses that" if loses_age else "loses no place"
    return ok(f"{how}: a request that is withdrawn and made again {cost}")


def check_prices(site: SiteConfig) -> Iterator[Finding]:
    """Check that donated nodes are cheaper than requests, if the site has both."""
    price = site.price
    donated = price.explicit if price.donated is None else price.donated
    if site.donation is None:
        return
    if donated >= price.explicit:
        yield warning(
            f"donation: donated nodes cost as much as requests ({donated:g}), so cost never chooses between "
            f"them: set `price.donated` below {price.explicit:g} to let cheap bags wait for donated nodes"
        )
    else:
        yield ok(f"donation: donated nodes cost {donated:g} an hour, requests {price.explicit:g}")


def check_shrinking(slot_margin: int, shrink_margin: int | None) -> Finding:
    """Report the part of a free slot that a request gets. The margins are seconds, as in
    `backends.base.Backend`."""
    if shrink_margin is None:
        margin = format_duration(slot_margin)
        return ok(f"a request starts with its whole walltime, and is {margin} shorter than its free slot")
    return ok(
        "a request in a free slot gets a walltime between the least that its tasks need and the most that it "
        "asks for: all that the slot holds when the job starts"
    )


def _within(
    key: str,
    configured: float | None,
    bound: Bound,
    scheduler: str,
    *,
    duration: bool = False,
    otherwise: float = math.inf,
) -> Finding:
    def words(value: float) -> str:
        return format_duration(value) if duration else f"{value:g}"

    allowed = f"{scheduler} allows {words(bound.value)} ({bound.source})"
    if math.isinf(bound.value):
        allowed = f"{scheduler} sets no limit"
    if configured is None:
        chosen = f", {otherwise:g} is our choice" if otherwise < bound.value else ""
        return ok(f"limits.{key} is not set{chosen}; {allowed}")
    if configured > bound.value:
        return error(
            f"limits.{key} is {words(configured)}, but {allowed}: larger requests are refused or never "
            "start; lower it"
        )
    return ok(f"limits.{key} is {words(configured)}; {allowed}")
