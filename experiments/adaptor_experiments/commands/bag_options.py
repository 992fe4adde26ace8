"""The options of `adaptor replay bag` and `holes`: the bag, the queue that it meets, and nodes below that."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from adaptor.cli.options import json_option, of_kind
from adaptor.errors import UsageError
from adaptor.option_kinds import MEMORY
from adaptor_experiments.commands.running import (
    FILE,
    MOST_PROCESSORS,
    PROCESSORS,
    choices_option,
    lenient_option,
    processors_option,
    scheduler_option,
    seed_option,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from adaptor.resources import TaskSize
    from adaptor_experiments.commands.bag_terms import BagCluster, NodesOptions

PROFILES = {False: "processors", True: "nodes"}  # what the planner sees, by `GridTerms.sees_nodes`


class AskedBag(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A bag and the queue that it meets."""

    loaded: BagCluster
    task: TaskSize
    runtimes: npt.NDArray[np.int64]
    profiles: tuple[bool, ...]
    """See `NodesOptions`."""
    seed: int
    title: str
    """Of the bag and its trace."""


_OPTIONS = (
    click.option("--trace", type=FILE, required=True, metavar="FILE", help="The queue: a trace (SWF)."),
    click.option("--tasks", type=click.IntRange(1, 10**7), required=True, metavar="N", help="Of the bag."),
    click.option(
        "--task-time", required=True, metavar="TIME", help="10m, uniform(5m, 15m), lognormal(10m, 1)…"
    ),
    click.option("--cpus", type=PROCESSORS, default=1, show_default=True, metavar="N", help="Of each task."),
    click.option("--mem", type=of_kind(MEMORY), metavar="SIZE", help="Of each task, such as 4G."),
    scheduler_option,
    processors_option,
    click.option("--nodes", metavar="SPEC", help="The machine as nodes: 128x4, or 100x32:64G+10x64:256G."),
    click.option("--node-memory", metavar="SIZE", help="Of nodes without one in SPEC, such as 16G."),
    click.option("--chunk", metavar="N", help="Processors of a job on one node, or 'node'.  [default: 1]"),
    click.option("--profile", metavar="LIST", help="What the planner sees.  [default: nodes; or processors]"),
    lenient_option,
    choices_option,
    click.option(
        "--max-pending",
        type=click.IntRange(1, 10**4),
        metavar="N",
        help="Requests in the system, in place of the site's limit.",
    ),
    click.option("--max-proc", type=PROCESSORS, metavar="N", help="Of a request, likewise."),
    click.option("--max-tr", metavar="TIME", help="Of a request, likewise."),
    seed_option,
    json_option,
)


def bag_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The parameters `asked`, of type `AskedBag`, `as_json`, and the limits by name."""

    @functools.wraps(command)
    def with_bag(
        *,
        trace: Path,
        tasks: int,
        task_time: str,
        cpus: int,
        mem: int | None,
        scheduler: Any,
        processors: int | None,
        lenient: bool,
        choices: Any,
        seed: int,
        **others: Any,
    ) -> Any:
        from adaptor.resources import TaskSize
        from adaptor_experiments.commands.bag_terms import load_cluster
        from adaptor_simulation.distributions import draw_runtimes

        given = {name: others.pop(name) for name in ("nodes", "node_memory", "chunk", "profile")}
        nodes = _nodes(**given, processors=processors)
        asked = AskedBag(
            loaded=load_cluster(trace, scheduler, processors, nodes, choices, lenient=lenient),
            task=TaskSize(processors=cpus, memory=mem),
            runtimes=draw_runtimes(task_time, tasks, seed),
            profiles=nodes.profiles,
            seed=seed,
            title=f"{tasks:,} tasks of {task_time} on {trace.name}",
        )
        return command(asked=asked, **others)

    for option in reversed(_OPTIONS):
        with_bag = option(with_bag)
    return with_bag


def _nodes(
    *,
    nodes: str | None,
    node_memory: str | None,
    chunk: str | None,
    profile: str | None,
    processors: int | None,
) -> NodesOptions:
    for flag, value in (("--node-memory", node_memory), ("--chunk", chunk), ("--profile", profile)):
        if nodes is None and value is not None:
            raise UsageError(f"{flag} means nothing without --nodes")
    if nodes is not None and processors is not None:
        raise UsageError("--nodes and --processors both say how large the machine is; say one of them")
    from adaptor_experiments.commands.bag_terms import NodesOptions

    return NodesOptions(
        nodes=nodes,
        memory=node_memory,
        chunk=_chunk(chunk or "1"),
        profiles=_profiles(profile) if profile else (),
    )


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
