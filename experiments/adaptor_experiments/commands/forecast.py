"""`adaptor replay forecast`."""

from __future__ import annotations

from pathlib import Path

import click

from adaptor_experiments.commands.running import (
    count_option,
    processes_option,
    running,
    seed_option,
    traces_option,
)

_TRACES = ("SDSC-SP2-1998", "CTC-SP2", "SDSC-BLUE", "lublin_256_est")


@click.command(short_help="Measure how often bags end within the interval shown to users.")
@traces_option
@count_option("--bags", 1, 40, "On each trace.")
@seed_option
@processes_option
def forecast(traces: Path, bags: int, seed: int, processes: int) -> None:
    """Measure how often bags end within the interval that `adaptor status` shows.

    Bags of four kinds (alike, log-normal, two kinds, a sorted file), half of them with a hint of --time,
    meet the queues of the traces at instants drawn at random. The decisions are the daemon's; the
    forecast is made by the function that users meet, when 0, 10, 50 and 90 % of the tasks have ended.
    Also: when the last request in the system would end by its planned start and its limit (what
    `squeue --start` says), and the rate of the last half minute. Widths and errors are medians, as
    shares of the time that was left. Bags that take more than four days are left out.

    \b
    Example:
      adaptor replay forecast --bags 40 --seed 7
    """
    from adaptor.cli.printing import layout
    from adaptor_experiments.forecasts.campaign import on_queues
    from adaptor_experiments.forecasts.coverage import HEADINGS, table

    there = sorted(traces.glob("*.swf*"))
    files = [path for name in _TRACES for path in there if path.name.startswith(name)]
    if not files:
        raise click.UsageError(f"no trace in {traces}: {', '.join(_TRACES)}")
    with running("forecasts", bags * len(files)) as done:
        rows = on_queues(files, bags, seed, processes, done)
    for line in layout(HEADINGS, list(table(rows))):
        click.echo(line)
