"""`adaptor replay transparent`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from adaptor_experiments.commands.running import (
    folder_option,
    mean_option,
    processes_option,
    running,
    seed_option,
    show,
    tasks_option,
    traces_option,
)


@click.command(short_help="Use donated processors, beside formal requests.")
@folder_option("transparent")
@traces_option
@click.option(
    "--samples",
    type=click.IntRange(1),
    metavar="N",
    help="Submission times for each trace and load.  [default: 4]",
)
@tasks_option
@mean_option
@click.option("--quick", is_flag=True, help="A fair sample: one submission time, no more than 1,000 tasks.")
@seed_option
@processes_option
def transparent(
    output: Path, traces: Path, samples: int | None, processes: int, quick: bool, **part: Any
) -> None:
    """Use idle processors of simulated clusters, beside formal requests (De Rose et al. 2008, §3 and §5).

    Bags of 100 to 10,000 tasks of 100 s to 10,000 s on three traces with their interarrival times × 1.3,
    1 and 0.7, by transparent, static, adaptive and mixed allocation, and by transparent allocation as in
    the paper (all-idle). Stop it at any time: the same command goes on from there. The tables, the paper's
    claims and figures are in the output folder.

    \b
    Example:
      adaptor replay transparent --quick --output quick
    """
    from adaptor_experiments.resumable import run_missing
    from adaptor_experiments.transparent.design import Settings, pieces
    from adaptor_experiments.transparent.report import write_report
    from adaptor_experiments.transparent.sample import run_piece
    from adaptor_experiments.transparent.store import Store

    if quick:
        part["tasks"] = part["tasks"] or (100, 1000)
        part["loads"] = (1.3, 1.0)
    settings = Settings(**{name: value for name, value in part.items() if value is not None})
    wanted = pieces(traces, settings, samples or (1 if quick else 4))
    store = Store(output, settings)
    with running("submission times", len(wanted)) as done:
        run_missing(run_piece, wanted, store, processes, done)
    show(write_report(store.read(wanted), settings, output), output)
