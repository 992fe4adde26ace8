"""`adaptor replay a2ha`."""

from __future__ import annotations

from pathlib import Path

import click

from adaptor_experiments.commands.running import folder_option, processes_option, running, seed_option, show

FILE = click.Path(path_type=Path, dir_okay=False)
QUICK = 10

demo_option = click.option(
    "--demo",
    type=FILE,
    metavar="FILE",
    help="Measured runtimes, a column `seconds`.  [default: those of `make demo`]",
)


@click.command(short_help="Repeat the evaluations of A²HA (Silva et al. 2008 and 2011).")
@folder_option("a2ha")
@click.option("--orders", type=click.IntRange(2), default=200, show_default=True, help="Of each bag.")
@click.option("--quick", is_flag=True, help=f"Only {QUICK} orders.")
@demo_option
@seed_option
@processes_option
def a2ha(output: Path, orders: int, quick: bool, demo: Path | None, seed: int, processes: int) -> None:
    """Repeat the evaluations of A²HA (Silva et al. 2011, §4) and of its forerunner (2008, §5).

    How many hosts the estimators buy for bags whose task runtimes are not known, beside the figures and
    tables of the papers, and beside our own preset `frugal`.

    \b
    Example:
      adaptor replay a2ha --quick --output quick
    """
    from adaptor_experiments.a2ha.campaign import run_all
    from adaptor_experiments.a2ha.design import Settings, schemes
    from adaptor_experiments.a2ha.report import write_report

    settings = Settings(seed=seed, orders=QUICK if quick else orders, demo=demo)
    wanted = schemes()
    with running("runs", len(wanted) * settings.orders) as done:
        rows = run_all(wanted, settings, processes, done)
    show(write_report(rows, settings, output), output)
