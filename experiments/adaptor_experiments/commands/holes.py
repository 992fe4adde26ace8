"""`adaptor replay holes`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from adaptor.cli.json_output import print_figures
from adaptor.cli.options import json_option, of_kind
from adaptor.errors import UsageError
from adaptor.option_kinds import MEMORY
from adaptor.units import format_duration
from adaptor_experiments.commands.bag_terms import terms_of_bag
from adaptor_experiments.commands.nodes_options import PROFILES, NodesOptions, nodes_option
from adaptor_experiments.commands.running import count_option, seed_option
from adaptor_experiments.commands.trace_options import (
    FILE,
    PROCESSORS,
    choices_option,
    lenient_option,
    processors_option,
    scheduler_option,
)

if TYPE_CHECKING:
    from adaptor.simulation.nodes.holes import HolesFound
    from adaptor.simulation.traces.repairs import Choices

_BOTH = (False, True)


@click.command(short_help="See whether free slots are there, with and without nodes.")
@click.option("--trace", type=FILE, required=True, metavar="FILE", help="The queue: a trace (SWF).")
@click.option("--tasks", type=click.IntRange(1, 10**7), required=True, metavar="N", help="Of the bag.")
@click.option("--task-time", required=True, metavar="TIME", help="10m, uniform(5m, 15m), lognormal(10m, 1)…")
@click.option("--cpus", type=PROCESSORS, default=1, show_default=True, metavar="N", help="Of each task.")
@click.option("--mem", type=of_kind(MEMORY), metavar="SIZE", help="Of each task, such as 4G.")
@count_option("--samples", 1, 20, "Bags, at random times of the trace.")
@scheduler_option
@processors_option
@nodes_option
@lenient_option
@choices_option
@click.option("--max-pending", type=click.IntRange(1, 10**4), metavar="N", help="Requests in the system.")
@click.option("--max-proc", type=PROCESSORS, metavar="N", help="Processors of a request.")
@click.option("--max-tr", metavar="TIME", help="Of a request.")
@seed_option
@json_option
def holes(
    trace: Path,
    tasks: int,
    task_time: str,
    cpus: int,
    mem: int | None,
    samples: int,
    scheduler: Any,
    processors: int | None,
    nodes: NodesOptions,
    lenient: bool,
    choices: Choices,
    seed: int,
    as_json: bool,
    **limits: Any,
) -> None:
    """Run one bag at many times of a trace on nodes, and count the free slots that were none.

    The planner sees the nodes, or one number of processors, as of a scheduler that does not show its nodes.
    A request for a slot that is free now, as the planner sees it, should start within two scheduling cycles.

    \b
    Example:
      adaptor replay holes --trace site.swf.gz --nodes 16x8 --tasks 300 --task-time 10m --cpus 3
    """
    import numpy as np

    from adaptor.resources import TaskSize
    from adaptor.simulation.distributions import draw_runtimes
    from adaptor.simulation.nodes.cluster import NodeCluster
    from adaptor.simulation.nodes.holes import find_holes
    from adaptor_experiments.commands.bag_cluster import load_cluster

    task = TaskSize(processors=cpus, memory=mem)
    loaded = load_cluster(trace, scheduler, processors, nodes, choices, lenient=lenient)
    cluster = loaded.cluster
    if not isinstance(cluster, NodeCluster):
        raise UsageError("on which nodes? Say --nodes, such as 128x4")
    (terms,) = terms_of_bag(loaded, task, heuristic="adaptive", **limits)
    runtimes = draw_runtimes(task_time, tasks, seed)
    first, last = int(cluster.jobs.submit[0]), int(cluster.jobs.submit[-1])
    instants = np.random.default_rng(seed).integers(first, last + 1, samples).tolist()
    every = [msgspec.structs.replace(terms, sees_nodes=sees) for sees in nodes.profiles or _BOTH]
    _show(find_holes(cluster, instants, runtimes, every), as_json)


def _show(found: list[HolesFound], as_json: bool) -> None:
    if as_json:
        figures = [msgspec.structs.asdict(each) for each in found]
        print_figures([{"profile": PROFILES[each.pop("sees_nodes")], **each} for each in figures])
        return
    from adaptor.cli.table import layout

    titles = ("mean turnaround", "requests", "for a slot that is free now", "  started within two cycles")
    columns = [titles, *(_texts(each) for each in found)]
    names = ["the planner sees", *(PROFILES[each.sees_nodes] for each in found)]
    for line in layout(names, list(zip(*columns, strict=True))):
        click.echo(line)


def _texts(found: HolesFound) -> tuple[str, ...]:
    share = f" ({found.started / found.promised:.0%})" if found.promised else ""
    return (
        format_duration(found.mean_turnaround),
        f"{found.requests:,}",
        f"{found.promised:,}",
        f"{found.started:,}{share}",
    )
