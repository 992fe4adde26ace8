"""`adaptor replay`, and its command `trace`; the others are in files of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptor.cli.command_groups import LazyGroup, show_help
from adaptor.cli.options import json_option
from adaptor.cli.printing import print_figures
from adaptor.units import format_duration
from adaptor_experiments.commands.running import (
    FILE,
    choices_option,
    lenient_option,
    processors_option,
    scheduler_option,
)

if TYPE_CHECKING:
    from adaptor_simulation.trace_run import TraceRun
    from adaptor_simulation.traces.repairs import Choices

COMMANDS = {
    "trace": "adaptor_experiments.commands.replay:trace",
    "derose": "adaptor_experiments.commands.experiments:derose",
    "peers": "adaptor_experiments.commands.experiments:peers",
    "bag": "adaptor_experiments.commands.bag:bag",
    "holes": "adaptor_experiments.commands.bag:holes",
    "a2ha": "adaptor_experiments.commands.experiments:a2ha",
    "cost-aware": "adaptor_experiments.commands.experiments:cost_aware",
    "bats": "adaptor_experiments.commands.experiments:bats",
    "transparent": "adaptor_experiments.commands.experiments:transparent",
    "budget-check": "adaptor_experiments.commands.experiments:budget_check",
    "budget-frontier": "adaptor_experiments.commands.experiments:budget_frontier",
    "forecast": "adaptor_experiments.commands.forecast:forecast",
    "tasks": "adaptor_experiments.commands.tasks:tasks",
}


@click.group(cls=LazyGroup, sections={"Commands": COMMANDS}, invoke_without_command=True)
@click.pass_context
def replay(ctx: click.Context) -> None:
    """Simulate clusters on a virtual clock."""
    show_help(ctx)


@click.command(short_help="Run a trace through a simulated cluster.")
@click.argument("file", type=FILE)
@scheduler_option
@click.option(
    "--csv", "csv_file", type=FILE, metavar="FILE", help="Write job, submit, start, end, processors."
)
@processors_option
@lenient_option
@choices_option
@json_option
def trace(
    file: Path,
    scheduler: Any,
    csv_file: Path | None,
    processors: int | None,
    lenient: bool,
    choices: Choices,
    as_json: bool,
) -> None:
    """Run the trace in FILE through a simulated cluster, without any job of ours.

    \b
    Example:
      adaptor replay trace SDSC-SP2-1998-4.2-cln.swf.gz --scheduler easy --csv starts.csv
    """
    from adaptor_simulation.trace_run import run_trace, write_schedule

    run = run_trace(file, scheduler, processors=processors, choices=choices, lenient=lenient)
    if csv_file is not None:
        write_schedule(run.jobs, run.starts, csv_file)
    if as_json:
        print_figures(_plain(run))
        return
    for line in _lines(run):
        click.echo(line)


def _plain(run: TraceRun) -> dict[str, Any]:
    return {
        "trace": run.name,
        "scheduler": run.policy,
        "processors": run.processors,
        "metrics": run.metrics,
        "repairs": {rule.value: count for rule, count in run.repairs.jobs.items()},
        "rows": run.repairs.rows,
        "kept": run.repairs.kept,
        "skipped_lines": run.repairs.skipped,
    }


def _lines(run: TraceRun) -> list[str]:
    metrics = run.metrics
    pairs = [
        ("trace", run.name),
        ("jobs", run.repairs.summary()),
        ("machine", f"{run.processors:,} processors ({run.processors_from}), {run.policy}"),
        ("mean wait", f"{metrics.mean_wait:,.0f} s ({format_duration(metrics.mean_wait)})"),
        ("median wait", f"{metrics.median_wait:,.0f} s ({format_duration(metrics.median_wait)})"),
        ("longest wait", f"{metrics.longest_wait:,} s ({format_duration(metrics.longest_wait)})"),
        ("waited", f"{metrics.waited:,} jobs ({metrics.waited / metrics.jobs:.0%})"),
        ("mean turnaround", f"{metrics.mean_turnaround:,.0f} s ({format_duration(metrics.mean_turnaround)})"),
        ("bounded slowdown", f"{metrics.mean_bounded_slowdown:,.2f} (run times below 10 s count as 10 s)"),
        ("  per processor", f"{metrics.mean_bounded_slowdown_per_processor:,.2f}"),
        ("makespan", format_duration(metrics.makespan)),
        (
            "utilisation",
            f"{metrics.utilisation:.1%}; while jobs come, {metrics.utilisation_while_submitting:.1%}",
        ),
    ]
    return [f"{name:<18}{value}" for name, value in pairs]
