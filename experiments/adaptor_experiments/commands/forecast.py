"""`adaptor replay forecast`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from adaptor_experiments.commands.running import (
    count_option,
    experiment_options,
    folder_of_traces,
    list_option,
    running,
    traces_option,
)

if TYPE_CHECKING:
    from adaptor_experiments.forecasts.replayed import Case
    from adaptor_experiments.forecasts.starts import Scheduler

_TRACES = ("SDSC-SP2-1998", "CTC-SP2", "SDSC-BLUE", "lublin_256_est")
_SCHEDULERS: tuple[Scheduler, ...] = ("recorded", "conservative", "easy")


@click.command(short_help="Measure how often forecasts of ends and starts hold, and how near they are.")
@traces_option
@count_option("--bags", 1, 40, "On each trace.")
@click.option("--starts", type=click.IntRange(1), metavar="N", help="Instead, the starts of N jobs a trace.")
@list_option("--schedulers", "schedulers", _SCHEDULERS, "Who starts the jobs")
@click.option("--scores", is_flag=True, help="Print the scores that new sites begin with, too.")
@experiment_options("forecast-starts")
def forecast(
    traces: Path | None,
    bags: int,
    starts: int | None,
    schedulers: tuple[Scheduler, ...] | None,
    scores: bool,
    output: Path,
    seed: int,
    processes: int,
) -> None:
    """Measure how often bags end, and jobs start, within the interval that users are shown.

    Bags of four kinds (alike, log-normal, two kinds, a sorted file), half of them with a hint of --time,
    meet the queues of the traces at instants drawn at random. The decisions are the daemon's; the
    forecast is made by the function that users meet, when 0, 10, 50 and 90 % of the tasks have ended.
    Also: when the last request in the system would end by its planned start and its limit (what
    `squeue --start` says), and the rate of the last half minute. Widths and errors are medians, as
    shares of the time that was left. Bags that take more than four days are left out.

    Intervals are calibrated by the forecasts on the other traces, as at a new site, and then also by
    those of the same trace whose bags had ended before, as with the record of a site.

    --starts: the jobs of the traces themselves, each at its submission, from the queue of that moment, as
    recorded and by simulated schedulers; next to the plan by time limits and the binomial bound of Brevik,
    Nurmi and Wolski (2006). Stop it at any time: the same command goes on from there.

    \b
    Example:
      adaptor replay forecast --bags 40 --seed 7
      adaptor replay forecast --starts 700
    """
    from adaptor_experiments.forecasts.replayed import as_measured

    there = sorted((folder := folder_of_traces(traces)).glob("*.swf*"))
    files = [path for name in _TRACES for path in there if path.name.startswith(name)]
    if not files:
        raise click.UsageError(f"no trace in {folder}: {', '.join(_TRACES)}")
    if starts is None:
        cases = _ends(files, bags, seed, processes)
    else:
        cases = _starts(files[:3], schedulers or _SCHEDULERS, starts, seed, output, processes)
    for kind in dict.fromkeys(case.raw.kind for case in cases if scores):
        # As `adaptor.forecast.measured_scores` has them.
        its = [case.score for case in cases if case.raw.kind == kind]
        click.echo(f'"{kind}": ({", ".join(map(str, as_measured(its)))}),  # {len(its)} forecasts')


def _print(headings: tuple[str, ...], rows: Iterable[Sequence[str]]) -> None:
    from adaptor.cli.printing import layout

    click.echo("\n".join(layout(headings, list(rows))))


def _ends(files: Sequence[Path], bags: int, seed: int, processes: int) -> list[Case]:
    from adaptor_experiments.forecasts.coverage import HEADINGS, table
    from adaptor_experiments.forecasts.queue_bags import pieces, run_piece
    from adaptor_experiments.forecasts.replayed import by_others, by_past
    from adaptor_experiments.forecasts.row import with_intervals
    from adaptor_experiments.resumable import in_processes

    rows = []
    with running("forecasts", bags * len(files)) as done:
        for some in in_processes(run_piece, [*pieces(files, bags, seed)], processes):
            rows += [row for row in some if row.foreseen]
            done(1)
    cases = [row.case for row in rows]
    click.echo("calibrated by the other traces:")
    _print(HEADINGS, table(with_intervals(rows, by_others(cases))))
    click.echo("by earlier bags of the trace, too:")
    _print(HEADINGS, table(with_intervals(rows, by_past(cases))))
    return cases


def _starts(
    files: Sequence[Path],
    schedulers: Sequence[Scheduler],
    sample: int,
    seed: int,
    output: Path,
    processes: int,
) -> list[Case]:
    from adaptor_experiments.forecasts import starts
    from adaptor_experiments.resumable import resumed

    settings = starts.Settings(sample=sample, seed=seed)
    pieces = starts.pieces(files, schedulers, settings)
    with running("pieces", len(pieces)) as done:
        rows = resumed(starts.run_piece, pieces, starts.Start, output, settings, processes, done)
    _print(starts.NEAR_HEADINGS, starts.near_table(rows))
    _print(starts.COVER_HEADINGS, starts.cover_table(rows))
    return [row.case for row in rows]
