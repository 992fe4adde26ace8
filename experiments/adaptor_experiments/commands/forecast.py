"""`adaptor replay forecast`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from adaptor_experiments.commands.running import (
    FILE,
    choices_option,
    count_option,
    experiment_options,
    lenient_option,
    list_option,
    own_processors_option,
    running,
    traces_option,
)

if TYPE_CHECKING:
    from adaptor_experiments.forecasts.history import Scheduler, Span
    from adaptor_experiments.forecasts.replayed import Case
    from adaptor_experiments.forecasts.starts import Settings
    from adaptor_experiments.forecasts.trace_queues import TraceFile
    from adaptor_simulation.traces.repairs import Choices

_SCHEDULERS: tuple[Scheduler, ...] = ("recorded", "conservative", "easy")


_DIR = click.Path(path_type=Path, file_okay=False)


def _span(_ctx: click.Context, _param: click.Parameter, text: str | None) -> Span | None:
    if text is None:
        return None
    try:
        first, last = (float(each) for each in text.split("-"))
    except ValueError:
        first, last = 1.0, 0.0
    if not 0.0 <= first < last <= 1.0:
        raise click.BadParameter(f"{text!r} is no part of a trace; from 0 to 1, such as 0.5-1")
    return first, last


@click.command(short_help="Measure how often forecasts of ends and starts hold, and how near they are.")
@click.option("--trace", "files", type=FILE, metavar="FILE", multiple=True, help="A trace (SWF); repeatable.")
@own_processors_option
@lenient_option
@choices_option
@traces_option
@click.option(
    "--snapshots",
    type=_DIR,
    metavar="DIR",
    help="Snapshots of a queue with later starts (CSV), for --starts N.",
)
@count_option("--bags", 1, 40, "On each trace.")
@click.option("--starts", type=click.IntRange(1), metavar="N", help="Instead, the starts of N jobs a trace.")
@click.option(
    "--span", callback=_span, metavar="A-B", help="Of --starts: only jobs of this part of the time, as 0.5-1."
)
@list_option("--schedulers", "schedulers", _SCHEDULERS, "Who starts the jobs")
@click.option("--scores", is_flag=True, help="Print the scores that new sites begin with, too.")
@experiment_options("forecast-starts")
def forecast(
    files: tuple[Path, ...],
    processors: int | None,
    lenient: bool,
    choices: Choices,
    traces: Path | None,
    snapshots: Path | None,
    bags: int,
    starts: int | None,
    span: Span | None,
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

    Without --trace: the traces of the published tables in the folder, or all that it has. A log of Slurm
    becomes a trace by `adaptor trace from-sacct`. What a trace does not show is said. --snapshots: starts
    from snapshots of a queue, N jobs of each, where no whole log is known.

    \b
    Example:
      adaptor replay forecast --bags 40 --seed 7
      adaptor replay forecast --starts 700
      adaptor replay forecast --snapshots graham-2021 --starts 300 --span 0.62-1
      adaptor replay forecast --trace site.swf.gz --starts 500 --schedulers recorded --span 0.5-1
    """
    from adaptor_experiments.derose.design import folder_of_traces
    from adaptor_experiments.forecasts.replayed import as_measured
    from adaptor_experiments.forecasts.starts import Settings
    from adaptor_experiments.forecasts.trace_queues import TraceFile, files_in, named_once

    if snapshots is not None:
        if starts is None or files:
            raise click.UsageError("--snapshots is for --starts N, and without --trace")
        _snapshots(snapshots, starts, seed, span)
        return
    if processors is not None and not files:
        raise click.UsageError("--processors is for a --trace FILE; other traces have their machines")
    if span is not None and starts is None:
        raise click.UsageError("--span is for --starts N")
    chosen = named_once(
        [
            TraceFile(path, processors, choices, lenient)
            for path in files or files_in(folder_of_traces(traces))
        ]
    )
    if starts is None:
        cases = _ends(chosen, bags, seed, processes)
    else:
        some = chosen if files else chosen[:3]  # the fourth published one is of a model: no starts recorded
        settings = Settings(sample=starts, seed=seed, span=span, traces=tuple(map(str, some)))
        cases = _starts(some, schedulers or _SCHEDULERS, settings, output, processes)
    for kind in dict.fromkeys(case.raw.kind for case in cases if scores):
        # As `adaptor.forecast.measured_scores` has them.
        its = [case.score for case in cases if case.raw.kind == kind]
        click.echo(f'"{kind}": ({", ".join(map(str, as_measured(its)))}),  # {len(its)} forecasts')


def _print(headings: tuple[str, ...], rows: Iterable[Sequence[str]]) -> None:
    from adaptor.cli.printing import layout

    click.echo("\n".join(layout(headings, list(rows))))


def _snapshots(folder: Path, sample: int, seed: int, span: Span | None) -> None:
    from adaptor_experiments.forecasts import snapshots
    from adaptor_simulation.files import ReplayError

    read = snapshots.read_snapshots(folder)
    rows = snapshots.foretell(read, sample, seed, span)
    if not rows:
        raise ReplayError("too few jobs had started before the snapshots of that span; choose a later one")
    for note in read.notes:
        click.echo(note)
    _print(snapshots.HEADINGS, snapshots.near_table(rows, read.errors))
    _print(snapshots.COVER_HEADINGS, snapshots.cover_table(rows))


def _ends(files: Sequence[TraceFile], bags: int, seed: int, processes: int) -> list[Case]:
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
    files: Sequence[TraceFile],
    schedulers: Sequence[Scheduler],
    settings: Settings,
    output: Path,
    processes: int,
) -> list[Case]:
    from adaptor_experiments.forecasts import start_tables, starts
    from adaptor_experiments.forecasts.history import history_of
    from adaptor_experiments.resumable import resumed
    from adaptor_simulation.files import ReplayError

    histories = {(file.name, who): history_of(file, who) for file in files for who in schedulers}
    pieces = starts.pieces(files, schedulers, settings)
    with running("pieces", len(pieces)) as done:
        rows = resumed(starts.run_piece, pieces, starts.Start, output, settings, processes, done)
    if not rows:
        raise ReplayError("no job of the traces is in that span; choose a wider one")
    for line in start_tables.remarks(rows, {key: its.notes for key, its in histories.items()}):
        click.echo(line)
    _print(start_tables.NEAR_HEADINGS, start_tables.near_table(rows))
    _print(start_tables.COVER_HEADINGS, start_tables.cover_table(rows))
    return [row.case for row in rows]
