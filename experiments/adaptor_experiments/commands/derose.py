"""`adaptor replay derose`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from adaptor.cli.options import duration
from adaptor.crafting.heuristics import HEURISTICS
from adaptor_experiments.commands.running import (
    choice_option,
    count_option,
    experiment_options,
    list_option,
    mean_option,
    measure,
    own_processors_option,
    quick_option,
    scheduler_option,
    tasks_option,
    trace_option,
    traces_named,
    traces_option,
)


@click.command(short_help="Repeat the evaluation of De Rose et al. 2008.")
@traces_option
@trace_option
@own_processors_option
@list_option("--heuristic", "heuristics", tuple(HEURISTICS), "What is compared, else static and adaptive")
@choice_option(
    "--cells",
    ("paper", "goals"),
    "The kinds of bag and limits: the paper's 216, or the 54 by which heuristics are judged.",
)
@click.option(
    "--samples", type=click.IntRange(1), metavar="N", help="Submission times for each trace.  [default: 100]"
)
@tasks_option
@mean_option
@list_option("--heterogeneity", "heterogeneities", (1, 2, 4), "Only bags of these heterogeneities")
@list_option("--max-pending", "max_pending", (1, 2, 3, 4, 5, 6), "Only these max_pending_requests")
@click.option(
    "--stretch",
    type=click.FloatRange(0.01, 100),
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="Of the local jobs' interarrival times: below 1 the load is higher.",
)
@scheduler_option
@click.option(
    "--initial-tr",
    type=duration,
    metavar="DURATION",
    help="What static and adaptive take a task to run at first.  [default: 1h]",
)
@count_option("--growth-factor", 2, 2, "By which adaptive lets tr grow.")
@click.option(
    "--poll-interval",
    type=duration,
    metavar="DURATION",
    help="Between two looks at the queue.  [default: a look at each event]",
)
@click.option("--static-maximum", is_flag=True, help="Let static always ask for the whole machine.")
@quick_option("A part: 6 submission times, max_pending_requests 1 and 6, heterogeneity 2.")
@experiment_options("derose")
def derose(
    output: Path,
    traces: Path | None,
    names: tuple[str, ...],
    processors: int | None,
    samples: int | None,
    processes: int,
    cells: str,
    quick: bool,
    **part: Any,
) -> None:
    """Repeat the evaluation of De Rose et al. 2008, §4.4, whole or in part, and compare heuristics.

    36 kinds of bag (the paper's grid jobs), max_pending_requests 1 to 6, both heuristics of the paper and
    100 submission times on each trace. Stop it at any time: the same command goes on from there. The
    output folder has the tables, the figures, a page with both, and comparison.json for programs.

    \b
    Example:
      adaptor replay derose --quick --output quick
      adaptor replay derose --trace sdsc-sp2 --tasks 100,1000 --samples 20
      adaptor replay derose --trace ctc-sp2-512 --stretch 0.7 --samples 20 --output loaded
      adaptor replay derose --trace mine.swf.gz --cells goals --samples 40 --output mine
    """
    from adaptor_experiments.derose.design import PARTS, Settings
    from adaptor_experiments.derose.report import report_of
    from adaptor_experiments.derose.sample import Outcome, pieces, run_piece

    if quick:
        part["max_pending"] = part["max_pending"] or (1, 6)
        part["heterogeneities"] = part["heterogeneities"] or (2,)
    asked = {name: value for name, value in part.items() if value is not None}
    settings = Settings(**{**PARTS[cells], **asked})
    workloads, folder = traces_named(names, processors, traces)
    wanted = pieces(workloads, folder, settings, samples or (6 if quick else 100))
    report = partial(report_of, pieces=wanted)
    measure(run_piece, wanted, Outcome, settings, report, output, processes, ("goals", "table-3"))
