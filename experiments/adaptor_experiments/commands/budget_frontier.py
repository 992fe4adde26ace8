"""`adaptor replay budget-frontier`."""

from __future__ import annotations

from pathlib import Path

import click

from adaptor_experiments.commands.running import (
    count_option,
    folder_option,
    processes_option,
    running,
    seed_option,
    show,
)


@click.command("budget-frontier", short_help="Measure how near bags come to the best cost and time.")
@folder_option("budget-frontier")
@count_option("--orders", 1, 3, "Of each bag.")
@click.option("--quick", is_flag=True, help="Only 1 order of two bags.")
@seed_option
@processes_option
def budget_frontier(output: Path, orders: int, quick: bool, seed: int, processes: int) -> None:
    """Measure how near bags with a budget, a deadline or a preference come to the best cost and time.

    Bags with light and heavy tails are run at a simulated site by the broker, the planner and the ledger of
    the daemon, charged by the second, the minute or the hour, with unknown runtimes, with those of an earlier
    bag, and with `--time`. The best is found by a search that knows every runtime.

    \b
    Example:
      adaptor replay budget-frontier --quick --output quick
    """
    from adaptor_experiments.frontier.campaign import pieces, run_all
    from adaptor_experiments.frontier.design import QUICK, Settings
    from adaptor_experiments.frontier.report import write_report

    settings = Settings(seed=seed, orders=1, bags=QUICK) if quick else Settings(seed=seed, orders=orders)
    with running("runs", sum(len(piece.wishes) for piece in pieces(settings))) as done:
        rows = run_all(settings, processes, done)
    show(write_report(rows, settings, output), output)
