"""`adaptor replay derose`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptor.cli.research.running import (
    folder_option,
    list_option,
    mean_option,
    processes_option,
    running,
    seed_option,
    tasks_option,
    traces_option,
)

if TYPE_CHECKING:
    from adaptor.experiments.derose.campaign import Piece
    from adaptor.experiments.derose.design import Settings
    from adaptor.experiments.derose.store import Store

TRACES = ("sdsc-sp2", "sdsc-blue", "ctc-sp2-512", "ctc-sp2-338")


@click.command(short_help="Repeat the evaluation of De Rose et al. 2008.")
@folder_option("derose")
@traces_option
@click.option("--trace", "names", type=click.Choice(TRACES), multiple=True, help="Only these; repeatable.")
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
@click.option("--static-maximum", is_flag=True, help="Let static always ask for the whole machine.")
@click.option(
    "--quick",
    is_flag=True,
    help="A fair sample: 6 submission times, max_pending_requests 1 and 6, heterogeneity 2.",
)
@seed_option
@processes_option
def derose(
    output: Path,
    traces: Path,
    names: tuple[str, ...],
    samples: int | None,
    processes: int,
    quick: bool,
    **part: Any,
) -> None:
    """Repeat the evaluation of De Rose et al. 2008, §4.4, whole or in part.

    36 kinds of bag (the paper's grid jobs), max_pending_requests 1 to 6, both heuristics and 100
    submission times on each trace. Stop it at any time: the same command goes on from there. The tables,
    the paper's figures and a page with both are in the output folder.

    \b
    Example:
      adaptor replay derose --quick --output quick
      adaptor replay derose --trace sdsc-sp2 --tasks 100,1000 --samples 20
      adaptor replay derose --trace ctc-sp2-512 --stretch 0.7 --samples 20 --output loaded
    """
    from adaptor.extras import require_extra

    require_extra("numpy", "numba", "matplotlib")
    from adaptor.experiments.derose.campaign import pieces
    from adaptor.experiments.derose.design import WORKLOADS, Settings
    from adaptor.experiments.derose.store import Store

    if quick:
        part["max_pending"] = part["max_pending"] or (1, 6)
        part["heterogeneities"] = part["heterogeneities"] or (2,)
    settings = Settings(**{name: value for name, value in part.items() if value is not None})
    workloads = [each for each in WORKLOADS if not names or each.key in names]
    wanted = pieces(workloads, traces, settings, samples or (6 if quick else 100))
    store = Store(output, settings)
    _run(wanted, store, processes, settings)
    _report(wanted, store, settings)


def _run(wanted: list[Piece], store: Store, processes: int, settings: Settings) -> None:
    from adaptor.experiments.derose.campaign import run_piece
    from adaptor.experiments.resumable import run_missing

    each = settings.jobs_per_sample
    with running("bags", len(wanted) * each) as done:
        run_missing(run_piece, wanted, store, processes, lambda samples: done(samples * each))


def _report(wanted: list[Piece], store: Store, settings: Settings) -> None:
    from adaptor.cli.table import layout
    from adaptor.experiments.derose.report import write_report
    from adaptor.experiments.derose.tables import table_3

    click.echo("Table 3: average speedup of adaptive over static, with 95 % confidence intervals")
    for line in layout(*table_3(write_report(wanted, store, settings))):
        click.echo(line)
    click.echo(f"The page: {store.folder / 'report.html'}")
