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
from adaptor_experiments.commands.bag_options import (
    PROFILES,
    AskedBag,
    bag_options,
    site_options,
    terms_of_bag,
)
from adaptor_experiments.commands.running import FILE, count_option, duration_option

if TYPE_CHECKING:
    from adaptor_simulation.what_if import HolesFound, WhatIf


@click.command(short_help="Ask what a bag would meet on the queue of a trace.")
@bag_options
@site_options[0]
@site_options[1]
@site_options[2]
@duration_option("--at", "Since the start of the trace.  [default: in the middle]")
@click.option("--gantt", type=FILE, metavar="PNG", help="Draw the pilots in the holes (.png, .svg, .pdf).")
def bag(
    asked: AskedBag,
    profiles: tuple[bool, ...],
    at: float | None,
    gantt: Path | None,
    as_json: bool,
    **terms: Any,
) -> None:
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

    every = [
        msgspec.structs.replace(term, sees_nodes=sees_nodes)
        for term in terms_of_bag(asked.cluster, asked.task, **terms)
        for sees_nodes in profiles or (True,)
    ]
    begin = _instant(at, asked)
    found = what_if(asked.cluster, begin, asked.runtimes, every)
    if gantt:
        from adaptor_experiments.figures.gantt import draw_gantt

        title = f"{asked.title}, submitted at {format_duration(begin)}"
        draw_gantt(asked.cluster.jobs, asked.cluster.processors, found, title, gantt)
    if as_json:
        print_figures([_figures(each, asked) for each in found])
        return
    names = (
        f"{each.heuristic}, {PROFILES[each.sees_nodes]}" if asked.nodes else each.heuristic for each in found
    )
    _print_columns(["", *names], [_texts(each, asked.nodes) for each in found])
    if asked.left_out:
        click.echo(f"{counted(asked.left_out, 'job')} of the trace left out: the nodes never hold them")


def _instant(at: float | None, asked: AskedBag) -> int:
    """The second of the trace at which the bag is submitted, while there are local jobs."""
    jobs = asked.cluster.jobs
    first, last = int(jobs.submit[0]), int((jobs.submit + jobs.run).max())
    if at is None:
        return (first + int(jobs.submit[-1])) // 2
    if not first <= at <= last:
        raise UsageError(
            f"--at {format_duration(at)}: the jobs of {asked.trace} come and run from"
            f" {format_duration(first)} to {format_duration(last)}; say a time in between"
        )
    return round(at)


def _print_columns(headings: Sequence[str], columns: Sequence[dict[str, str]]) -> None:
    """A column for each; its rows by their titles."""
    from adaptor.cli.printing import layout

    rows = [[title, *(column[title] for column in columns)] for title in columns[0]]
    click.echo("\n".join(layout(headings, rows)))


def _figures(found: WhatIf, asked: AskedBag) -> dict[str, Any]:
    result = found.result
    on_nodes = {"profile": PROFILES[found.sees_nodes], "left_out": asked.left_out} if asked.nodes else {}
    return {
        "heuristic": found.heuristic,
        **on_nodes,
        "submitted": result.submitted,
        "turnaround": result.turnaround,
        "bound": found.bound,
        "processor_seconds_used": result.work,
        "processor_seconds_wasted": result.wasted,
        "local_jobs": found.waits,
        "requests": result.requests,
    }


def _texts(found: WhatIf, nodes: bool) -> dict[str, str]:
    from adaptor_simulation.what_if import TWO_CYCLES

    result, waits = found.result, found.waits
    run = sum(request.started is not None for request in result.requests)
    bound = f"{format_duration(found.bound)} ({result.turnaround / found.bound:.2f} times as long)"
    wasted = f"{result.wasted / 3600:,.1f} ({result.wasted / max(1, result.held):.0%} of what was held)"
    texts = {
        "turnaround": format_duration(result.turnaround),
        "not possible in less than": bound,
        "requests": f"{run} run, {len(result.requests) - run} withdrawn",
        "processor-hours used": f"{result.work / 3600:,.1f}",
        "processor-hours wasted": wasted,
        "local jobs still to start": f"{waits.jobs:,}",
        "  mean wait without us": format_duration(waits.mean_without),
        "  mean wait with us": format_duration(waits.mean_with),
        "  start later": f"{waits.delayed:,}, by {format_duration(waits.largest_delay)} at most",
        "  start earlier": f"{waits.advanced:,}",
    }
    if nodes:  # whether requests that were made to start at once did
        holes, started = result.holes(TWO_CYCLES)
        share = f"{started} of {holes} ({started / holes:.0%})" if holes else "-"
        texts["started at once, as planned"] = share
    return texts


@click.command(short_help="See whether free slots are there, with and without nodes.")
@bag_options
@count_option("--samples", 1, 20, "Bags, at random times of the trace.")
def holes(asked: AskedBag, profiles: tuple[bool, ...], samples: int, as_json: bool, **limits: Any) -> None:
    """Run one bag at many times of a trace on nodes, and count the free slots that were none.

    The planner sees the nodes, or one number of processors, as of a scheduler that does not show its nodes.
    A request for a slot that is free now, as the planner sees it, should start within two scheduling cycles.

    \b
    Example:
      adaptor replay holes --trace site.swf.gz --nodes 16x8 --tasks 300 --task-time 10m --cpus 3
    """
    import numpy as np

    from adaptor_simulation.what_if import find_holes

    cluster = asked.cluster
    if not asked.nodes:
        raise UsageError("on which nodes? Say --nodes, such as 128x4")
    (terms,) = terms_of_bag(cluster, asked.task, heuristics=("adaptive",), **limits)
    first, last = int(cluster.jobs.submit[0]), int(cluster.jobs.submit[-1])
    instants = np.random.default_rng(asked.seed).integers(first, last + 1, samples).tolist()
    every = [msgspec.structs.replace(terms, sees_nodes=sees) for sees in profiles or (False, True)]
    found = find_holes(cluster, instants, asked.runtimes, every)
    names = [PROFILES[each.sees_nodes] for each in found]
    if as_json:
        figures = [msgspec.structs.asdict(each) for each in found]
        print_figures(
            [
                {"profile": name, **{key: value for key, value in each.items() if key != "sees_nodes"}}
                for name, each in zip(names, figures, strict=True)
            ]
        )
        return
    _print_columns(["the planner sees", *names], list(map(_hole_texts, found)))


def _hole_texts(found: HolesFound) -> dict[str, str]:
    share = f" ({found.started / found.promised:.0%})" if found.promised else ""
    return {
        "mean turnaround": format_duration(found.mean_turnaround),
        "requests": f"{found.requests:,}",
        "for a slot that is free now": f"{found.promised:,}",
        "  started within two cycles": f"{found.started:,}{share}",
    }
