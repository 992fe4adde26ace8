"""The options of `adaptor replay bag` that put a trace on nodes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click
import msgspec

from adaptor.errors import UsageError
from adaptor_experiments.commands.trace_options import MOST_PROCESSORS

PROFILES = {False: "processors", True: "nodes"}
"""What the planner sees, by `GridTerms.sees_nodes`."""


class NodesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """As they were given, and found to go together."""

    nodes: str | None
    """None: the cluster counts processors."""
    memory: str | None
    chunk: int | None
    """Processors that a job has on one node; None: whole nodes."""
    profiles: tuple[bool, ...]
    """By replay, whether the planner sees the nodes; empty: it was not said."""


_OPTIONS = (
    click.option("--nodes", metavar="SPEC", help="The machine as nodes: 128x4, or 100x32:64G+10x64:256G."),
    click.option("--node-memory", metavar="SIZE", help="Of nodes without one in SPEC, such as 16G."),
    click.option("--chunk", metavar="N", help="Processors of a job on one node, or 'node'.  [default: 1]"),
    click.option("--profile", metavar="LIST", help="What the planner sees.  [default: nodes; or processors]"),
)


def nodes_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The parameter `nodes`, of type `NodesOptions`."""

    @functools.wraps(command)
    def with_nodes(
        *args: Any,
        nodes: str | None,
        node_memory: str | None,
        chunk: str | None,
        profile: str | None,
        processors: int | None,
        **others: Any,
    ) -> Any:
        for flag, value in (("--node-memory", node_memory), ("--chunk", chunk), ("--profile", profile)):
            if nodes is None and value is not None:
                raise UsageError(f"{flag} means nothing without --nodes")
        if nodes is not None and processors is not None:
            raise UsageError("--nodes and --processors both say how large the machine is; say one of them")
        chosen = NodesOptions(
            nodes=nodes,
            memory=node_memory,
            chunk=_chunk(chunk or "1"),
            profiles=_profiles(profile) if profile else (),
        )
        return command(*args, nodes=chosen, processors=processors, **others)

    for option in reversed(_OPTIONS):
        with_nodes = option(with_nodes)
    return with_nodes


def _chunk(text: str) -> int | None:
    if text == "node":
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:20]) <= MOST_PROCESSORS:
        raise UsageError(f"--chunk: {text[:40]!r} is neither a number of processors nor 'node'")
    return int(text)


def _profiles(text: str) -> tuple[bool, ...]:
    wanted = [part.strip() for part in text.split(",")]
    unknown = [part for part in wanted if part not in PROFILES.values()]
    if unknown:
        raise UsageError(f"--profile: {unknown[0]!r} is none of {', '.join(PROFILES.values())}")
    return tuple(sees for sees, name in PROFILES.items() if name in wanted)
