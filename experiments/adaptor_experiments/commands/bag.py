"""`adaptor replay bag` and `holes`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from adaptor.cli.printing import print_figures
from adaptor.errors import UsageError
from adaptor.units import counted, format_duration
from adaptor_experiments.commands.bag_options import PROFILES, AskedBag, bag_options
from adaptor_experiments.commands.bag_terms import duration, terms_of_bag
from adaptor_experiments.commands.running import FILE, count_option

if TYPE_CHECKING:
    from adaptor_experiments.commands.bag_terms import BagCluster
    from adaptor_simulation.what_if import HolesFound, WhatIf


_HOLES = "started at once, as planned"
_TITLES = (
    "turnaround",
    "not possible in less than",
    "requests",
    "processor-hours used",
    "processor-hours wasted",
    "local jobs still to start",
    "  mean wait without us",
    "  mean wait with us",
    "  start later",
    "  start earlier",
)


@click.command(short_help="Ask what a bag would meet on the queue of a trace.")
@bag_options
@click.option("--site", type=FILE, metavar="YAML", help="Limits, heuristic, pad and so on of a site.")
@click.option("--site-name", metavar="NAME", help="Which site of it, where it has several.")
@click.option("--at", metavar="TIME", help="Since the start of the trace.  [default: in the middle]")
@click.option("--heuristic", metavar="LIST", help="Such as static,adaptive.  [default: the site's]")
@click.option("--gantt", type=FILE, metavar="PNG", help="Draw the pilots in the holes (.png, .svg, .pdf).")
def bag(asked: AskedBag, at: str | None, gantt: Path | None, as_json: bool, **terms: Any) -> None:
    """Ask what a bag would meet on the queue of a trace, and what that queue would meet.

    Where neither the site nor an option sets a limit, one request may have the whole machine for the
    longest time that a job of the trace asked for, and 4 requests may be in the system.

    With --nodes the jobs of the trace and the requests hold parts of nodes: a job waits until its chunks fit.
    --profile says what the planner sees of that.

    \b
    Example:
      adaptor replay bag --trace site.swf.gz --tasks 1000 --task-time 'lognormal(10m, 0.8)' \\
        --heuristic static,adaptive --gantt bag.png
    """
    from adaptor_simulation.what_if import what_if

    loaded = asked.loaded
    every = [
        msgspec.structs.replace(term, sees_nodes=sees_nodes)
        for term in terms_of_bag(loaded, asked.task, **terms)
        for sees_nodes in asked.profiles or (True,)
    ]
    begin = _instant(at, loaded)
    found = what_if(loaded.cluster, begin, asked.runtimes, every)
    if gantt:
        from adaptor_experiments.figures.gantt import draw_gantt

        title = f"{asked.title}, submitted at {format_duration(begin)}"
        draw_gantt(loaded.cluster.jobs, loaded.cluster.processors, found, title, gantt)
    _show(found, loaded, as_json)


def _instant(at: str | None, loaded: BagCluster) -> int:
    """The second of the trace at which the bag is submitted, while there are local jobs."""
    jobs = loaded.cluster.jobs
    first, last = int(jobs.submit[0]), int((jobs.submit + jobs.run).max())
    if at is None:
        return (first + int(jobs.submit[-1])) // 2
    wanted = duration("--at", at)
    if not first <= wanted <= last:
        raise UsageError(
            f"--at {at}: the jobs of {loaded.name} come and run from {format_duration(first)} to"
            f" {format_duration(last)}; say a time in between"
        )
    return round(wanted)


def _show(found: list[WhatIf], loaded: BagCluster, as_json: bool) -> None:
    if as_json:
        told = [_figures(each, loaded) | {"requests": each.result.requests} for each in found]
        print_figures(told)
        return
    titles = [*_TITLES, *([_HOLES] if loaded.nodes else [])]
    columns = [titles, *([*_texts(each), *_holes(each, loaded)] for each in found)]
    _print_columns(["", *(_name(each, loaded) for each in found)], columns)
    if loaded.left_out:
        click.echo(f"{counted(loaded.left_out, 'job')} of the trace left out: the nodes never hold them")


def _print_columns(headings: Sequence[str], columns: Sequence[Sequence[str]]) -> None:
    from adaptor.cli.printing import layout

    for line in layout(headings, list(zip(*columns, strict=True))):
        click.echo(line)


def _name(found: WhatIf, loaded: BagCluster) -> str:
    return f"{found.heuristic}, {PROFILES[found.sees_nodes]}" if loaded.nodes else found.heuristic


def _holes(found: WhatIf, loaded: BagCluster) -> list[str]:
    """On nodes, whether requests that were made to start at once did."""
    if not loaded.nodes:
        return []
    from adaptor_simulation.what_if import TWO_CYCLES

    holes, started = found.result.holes(TWO_CYCLES)
    return [f"{started} of {holes} ({started / holes:.0%})" if holes else "-"]


def _figures(found: WhatIf, loaded: BagCluster) -> dict[str, Any]:
    result = found.result
    on_nodes = {"profile": PROFILES[found.sees_nodes], "left_out": loaded.left_out} if loaded.nodes else {}
    return {
        "heuristic": found.heuristic,
        **on_nodes,
        "submitted": result.submitted,
        "turnaround": result.turnaround,
        "bound": found.bound,
        "processor_seconds_used": result.work,
        "processor_seconds_wasted": result.wasted,
        "local_jobs": found.waits,
    }


def _texts(found: WhatIf) -> list[str]:
    result, waits = found.result, found.waits
    asked = sum(request.started is not None for request in result.requests)
    return [
        format_duration(result.turnaround),
        f"{format_duration(found.bound)} ({result.turnaround / found.bound:.2f} times as long)",
        f"{asked} run, {len(result.requests) - asked} withdrawn",
        f"{result.work / 3600:,.1f}",
        f"{result.wasted / 3600:,.1f} ({result.wasted / max(1, result.held):.0%} of what was held)",
        f"{waits.jobs:,}",
        format_duration(waits.mean_without),
        format_duration(waits.mean_with),
        f"{waits.delayed:,}, by {format_duration(waits.largest_delay)} at most",
        f"{waits.advanced:,}",
    ]


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

    from adaptor_simulation.what_if import find_holes

    cluster = asked.loaded.cluster
    if not asked.loaded.nodes:
        raise UsageError("on which nodes? Say --nodes, such as 128x4")
    (terms,) = terms_of_bag(asked.loaded, asked.task, heuristic="adaptive", **limits)
    first, last = int(cluster.jobs.submit[0]), int(cluster.jobs.submit[-1])
    instants = np.random.default_rng(asked.seed).integers(first, last + 1, samples).tolist()
    every = [msgspec.structs.replace(terms, sees_nodes=sees) for sees in asked.profiles or (False, True)]
    _show_holes(find_holes(cluster, instants, asked.runtimes, every), as_json)


def _show_holes(found: list[HolesFound], as_json: bool) -> None:
    if as_json:
        figures = [msgspec.structs.asdict(each) for each in found]
        print_figures([{"profile": PROFILES[each.pop("sees_nodes")], **each} for each in figures])
        return
    titles = ("mean turnaround", "requests", "for a slot that is free now", "  started within two cycles")
    columns = [titles, *(_hole_texts(each) for each in found)]
    _print_columns(["the planner sees", *(PROFILES[each.sees_nodes] for each in found)], columns)


def _hole_texts(found: HolesFound) -> tuple[str, ...]:
    share = f" ({found.started / found.promised:.0%})" if found.promised else ""
    return (
        format_duration(found.mean_turnaround),
        f"{found.requests:,}",
        f"{found.promised:,}",
        f"{found.started:,}{share}",
    )
