"""`adaptor replay bats`."""

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

QUICK = 2


@click.command(short_help="Repeat the evaluation of BaTS, tail phase (Oprescu, Kielmann).")
@folder_option("bats")
@count_option("--bags", 1, 30, "Of each kind.")
@count_option("--runs", 1, 30, "Of each bag.")
@click.option("--quick", is_flag=True, help=f"Only {QUICK} runs of {QUICK} bags of each kind.")
@seed_option
@processes_option
def bats(output: Path, bags: int, runs: int, quick: bool, seed: int, processes: int) -> None:
    """Repeat the evaluation of the tail phase of BaTS (Oprescu, Kielmann).

    Bags of normal, heavy-tailed and multi-modal runtimes, run with two budgets of the menu, and ended
    without a tail phase, with random, stochastic and perfectly chosen replicas, and with migration.

    \b
    Example:
      adaptor replay bats --quick --output quick
    """
    from adaptor_experiments.bats.campaign import run_all
    from adaptor_experiments.bats.design import KINDS, Settings
    from adaptor_experiments.bats.report import write_report

    settings = Settings(seed=seed, bags=QUICK if quick else bags, runs=QUICK if quick else runs)
    with running("bags", len(KINDS) * settings.bags) as done:
        found = run_all(settings, processes, done)
    show(write_report(found, settings, output), output)
