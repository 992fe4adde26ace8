"""`adaptor replay transparent`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from adaptor.cli.replay_derose import FOLDER, NEARBY, some_of
from adaptor.cli.replay_running import folder_option, processes_option, running, seed_option, show
from adaptor.errors import UsageError


@click.command(short_help="Lend idle processors, beside formal requests.")
@folder_option("transparent")
@click.option("--traces", type=FOLDER, metavar="DIR", help="Where the traces are.")
@click.option(
    "--samples", type=click.IntRange(1), help="Submission times for each trace and load.  [default: 4]"
)
@click.option(
    "--tasks",
    metavar="LIST",
    callback=some_of(100, 1000, 10_000, 100_000),
    help="Only bags of so many tasks.",
)
@click.option(
    "--mean",
    "means",
    metavar="LIST",
    callback=some_of(100, 1000, 10_000),
    help="Only these mean runtimes, in s.",
)
@click.option("--quick", is_flag=True, help="A fair sample: one submission time, no more than 1,000 tasks.")
@seed_option
@processes_option
def transparent(
    output: Path, traces: Path | None, samples: int | None, processes: int, quick: bool, **part: Any
) -> None:
    """Lend idle processors on simulated clusters, beside formal requests (De Rose et al. 2008, §3 and §5).

    Bags of 100 to 10,000 tasks of 100 s to 10,000 s on three traces with their interarrival times × 1.3,
    1 and 0.7, by transparent, static, adaptive and mixed allocation. Stop it at any time: the same
    command goes on from there. The tables, the paper's claims and figures are in the output folder.

    \b
    Example:
      adaptor replay transparent --quick --output quick
    """
    from adaptor.replay.extra import require_extra

    require_extra("numpy", "numba", "matplotlib")
    from adaptor.replay.transparent.campaign import run_missing
    from adaptor.replay.transparent.design import Settings, pieces
    from adaptor.replay.transparent.report import write_report
    from adaptor.replay.transparent.store import Store

    if quick:
        part["tasks"] = part["tasks"] or (100, 1000)
        part["loads"] = (1.3, 1.0)
    settings = Settings(**{name: value for name, value in part.items() if value is not None})
    wanted = pieces(_folder(traces), settings, samples or (1 if quick else 4))
    store = Store(output, settings)
    with running("submission times", len(wanted)) as done:
        outcomes = run_missing(wanted, store, processes, done)
    show(write_report(outcomes, settings, output), output)


def _folder(traces: Path | None) -> Path:
    if traces is None and not NEARBY.is_dir():
        raise UsageError("where are the traces? Say --traces DIR; `adaptor trace fetch` downloads them")
    return traces or NEARBY
