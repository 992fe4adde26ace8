"""`adaptor replay a2ha` and `adaptor replay budget-check`."""

from __future__ import annotations

from pathlib import Path

import click

from adaptor.cli.research.running import folder_option, processes_option, running, seed_option, show

FILE = click.Path(path_type=Path, dir_okay=False)
DEMO = Path("fixtures/runtimes/demo.csv")
QUICK = 10

demo_option = click.option(
    "--demo", type=FILE, default=DEMO, show_default=True, help="Measured runtimes, a column `seconds`."
)


@click.command(short_help="Repeat the evaluations of A²HA (Silva et al. 2008 and 2011).")
@folder_option("a2ha")
@click.option("--orders", type=click.IntRange(2), default=200, show_default=True, help="Of each bag.")
@click.option("--quick", is_flag=True, help=f"Only {QUICK} orders.")
@demo_option
@seed_option
@processes_option
def a2ha(output: Path, orders: int, quick: bool, demo: Path, seed: int, processes: int) -> None:
    """Repeat the evaluations of A²HA (Silva et al. 2011, §4) and of its forerunner (2008, §5).

    How many hosts the estimators buy for bags whose task runtimes are not known, beside the figures and
    tables of the papers, and beside our own preset `frugal`.

    \b
    Example:
      adaptor replay a2ha --quick --output quick
    """
    from adaptor.extras import require_extra

    require_extra("numpy", "matplotlib")
    from adaptor.experiments.a2ha.campaign import run_all
    from adaptor.experiments.a2ha.design import Settings, schemes
    from adaptor.experiments.a2ha.report import write_report

    settings = Settings(seed=seed, orders=QUICK if quick else orders, demo=demo)
    wanted = schemes()
    with running("runs", len(wanted) * settings.orders) as done:
        rows = run_all(wanted, settings, processes, done)
    show(write_report(rows, settings, output), output)


@click.command("budget-check", short_help="Measure what the budget promises.")
@click.option(
    "--bags", type=click.IntRange(2), default=10_000, show_default=True, help="Simulated under budgets."
)
@click.option(
    "--orders", type=click.IntRange(2), default=200, show_default=True, help="Of each estimated bag."
)
@demo_option
@seed_option
@processes_option
@click.pass_context
def budget_check(ctx: click.Context, bags: int, orders: int, demo: Path, seed: int, processes: int) -> None:
    """Measure what the budget promises; the exit code is 1 where a promise is not kept.

    No simulated bag spends more than its budget, the preset `frugal` buys nearly the optimal number of
    hosts, forecasts hold as often as they say, and estimators are fast.

    \b
    Example:
      adaptor replay budget-check --bags 1000
    """
    from adaptor.extras import require_extra

    require_extra("numpy")
    from adaptor.experiments.a2ha.design import Settings
    from adaptor.experiments.a2ha.targets import (
        check_budgets,
        check_estimates,
        check_speed,
        runs_of_estimates,
    )

    settings = Settings(seed=seed, orders=orders, demo=demo)
    with running("bags", bags + runs_of_estimates(settings)) as done:
        targets = [check_budgets(bags, seed, processes, done), *check_estimates(settings, processes, done)]
    targets.append(check_speed())
    for target in targets:
        click.echo(f"{'kept    ' if target.met else 'NOT KEPT'}  {target.promise}: {target.found}")
        for line in target.lines:
            click.echo(f"          {line}")
    if not all(target.met for target in targets):
        ctx.exit(1)
