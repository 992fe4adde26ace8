"""`adaptor replay cost-aware`."""

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

QUICK = 7


@click.command("cost-aware", short_help="Repeat the evaluation of Ricciardi & Hwang 2011.")
@folder_option("cost-aware")
@count_option("--runs", 6, 50, "Of each kind.")
@click.option("--quick", is_flag=True, help=f"Only {QUICK} runs of each kind.")
@seed_option
@processes_option
def cost_aware(output: Path, runs: int, quick: bool, seed: int, processes: int) -> None:
    """Repeat the evaluation of Ricciardi & Hwang 2011, §4: Figs 1 and 2.

    2,000 tasks on 2, 3 and 4 resources, stable (Table 1) and unstable (Table 2), with a target time or a
    target cost; with the paper's allocation, with the daemon's (`daemon`: certainty 0.9, a reserve of 10 %),
    and with the daemon's function at even odds and without a reserve.

    \b
    Example:
      adaptor replay cost-aware --quick --output quick
    """
    from adaptor_experiments.ricciardi.campaign import Settings, cells, run_all
    from adaptor_experiments.ricciardi.report import write_report
    from adaptor_experiments.ricciardi.tables import conclusion

    settings = Settings(seed=seed, runs=QUICK if quick else runs)
    with running("productions", sum(map(settings.runs_of, cells()))) as done:
        found = run_all(settings, processes, done)
    show(write_report(found, settings, output), output)
    for sentence in conclusion(found):
        click.echo(sentence)
