"""`adaptor replay holes`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from adaptor.cli.printing import print_figures
from adaptor.errors import UsageError
from adaptor.units import format_duration
from adaptor_experiments.commands.bag_options import PROFILES, AskedBag, bag_options
from adaptor_experiments.commands.bag_terms import terms_of_bag
from adaptor_experiments.commands.running import count_option

if TYPE_CHECKING:
    from adaptor.simulation.holes import HolesFound

_BOTH = (False, True)


@click.command(short_help="See whether free slots are there, with and without nodes.")
@bag_options
@count_option("--samples", 1, 20, "Bags, at random times of the trace.")
def holes(asked: AskedBag, samples: int, as_json: bool, **limits: Any) -> None:
    """Run one bag at many times of a trace on nodes, and count the free slots that were none.

    The planner sees the nodes, or one number of processors, as of a scheduler that does not show its nodes.
    A request for a slot that is free now, as the planner sees it, should start within two scheduling cycles.

    \b
    Example:
      adaptor replay holes --trace site.swf.gz --nodes 16x8 --tasks 300 --task-time 10m --cpus 3
    """
    import numpy as np

    from adaptor.simulation.holes import find_holes

    cluster = asked.loaded.cluster
    if not asked.loaded.nodes:
        raise UsageError("on which nodes? Say --nodes, such as 128x4")
    (terms,) = terms_of_bag(asked.loaded, asked.task, heuristic="adaptive", **limits)
    first, last = int(cluster.jobs.submit[0]), int(cluster.jobs.submit[-1])
    instants = np.random.default_rng(asked.seed).integers(first, last + 1, samples).tolist()
    every = [msgspec.structs.replace(terms, sees_nodes=sees) for sees in asked.profiles or _BOTH]
    _show(find_holes(cluster, instants, asked.runtimes, every), as_json)


def _show(found: list[HolesFound], as_json: bool) -> None:
    if as_json:
        figures = [msgspec.structs.asdict(each) for each in found]
        print_figures([{"profile": PROFILES[each.pop("sees_nodes")], **each} for each in figures])
        return
    from adaptor.cli.printing import layout

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
