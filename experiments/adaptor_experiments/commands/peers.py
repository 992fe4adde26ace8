"""`adaptor replay peers`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from adaptor_experiments.commands.running import (
    chosen,
    count_option,
    duration_option,
    experiment_options,
    list_option,
    measure,
    own_processors_option,
    quick_option,
    trace_option,
    traces_named,
    traces_option,
)

_WAYS = "Only these ways, such as elastic-1000,array-3; array-1.5 is always there."


def _ways(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    from adaptor_experiments.peers.design import REFERENCE, WAYS

    found = chosen("--ways", value, WAYS)
    return found and tuple(name for name in WAYS if name in (*found, REFERENCE))


@click.command(short_help="Compare with job arrays and managers of workers.")
@traces_option
@trace_option
@own_processors_option
@click.option("--ways", metavar="LIST", callback=_ways, help=_WAYS)
@count_option("--samples", 1, 10, "Submission times for each trace and scheduler.")
@list_option("--tasks", "tasks", (100, 1000, 10_000), "Only bags of this many tasks, else 100 and 1000")
@list_option("--mean", "means", (100, 1000, 10_000), "Only these mean runtimes in s, else 1000 and 10000")
@list_option("--shape", "shapes", ("equal", "log-normal", "heavy"), "Only runtimes of these shapes")
@list_option("--scheduler", "schedulers", ("conservative", "easy"), "Only these")
@count_option(
    "--node", 1, 1, "Processors of a node, of which every job has whole ones; 1: jobs have processors."
)
@count_option("--start", 0, 0, "Seconds from the start of a job or pilot until its first task begins.")
@duration_option(
    "--fair-share", "Serve by fair share and age; usage halves in this time, such as 7d. Else by submission."
)
@count_option("--backfill-per-user", 0, 0, "Waiting jobs of a user that backfilling looks at; 0: all.")
@quick_option("One submission time, log-normal runtimes.")
@experiment_options("peers")
def peers(
    traces: Path | None,
    names: tuple[str, ...],
    processors: int | None,
    samples: int,
    quick: bool,
    seed: int,
    output: Path,
    processes: int,
    **part: Any,
) -> None:
    """Compare what people use for a bag with what the daemon does, on simulated clusters.

    Job arrays whose user knows the longest task to a factor, chunks, whole nodes, one big job, HyperQueue's
    automatic allocation, Parsl, and the daemon's heuristics. Stop it at any time: the same command goes on
    from there.

    \b
    Example:
      adaptor replay peers --quick --output quick
      adaptor replay peers --trace mine.swf.gz --ways elastic-100,array-3 --output mine
    """
    from adaptor_experiments.peers.design import Settings, pieces
    from adaptor_experiments.peers.report import report_of
    from adaptor_experiments.peers.sample import Outcome, run_piece

    if quick:
        part["shapes"] = part["shapes"] or ("log-normal",)
    settings = Settings(seed=seed, **{name: value for name, value in part.items() if value is not None})
    workloads, folder = traces_named(names, processors, traces)
    wanted = pieces(workloads, folder, settings, 1 if quick else samples)
    measure(run_piece, wanted, Outcome, settings, report_of, output, processes)
