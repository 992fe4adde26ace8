"""`adaptor replay budget-check`."""

from __future__ import annotations

from pathlib import Path

import click

from adaptor.cli.research.a2ha import demo_option
from adaptor.cli.research.running import count_option, processes_option, running, seed_option


@click.command("budget-check", short_help="Measure how often the forecasts of `adaptor status` hold.")
@count_option("--orders", 2, 40, "Of each bag.")
@demo_option
@seed_option
@processes_option
@click.pass_context
def budget_check(ctx: click.Context, orders: int, demo: Path, seed: int, processes: int) -> None:
    """Measure how often the forecasts of `adaptor status` hold; exit code 1 where a promise is not kept.

    Bags of eleven kinds are run at a simulated site by the broker, the planner and the ledger of the
    daemon. After 30, 100 and half of the tasks the forecast is made by the function that `adaptor status`
    prints, and compared with what the bag costs in the end, and when it ends.

    \b
    Example:
      adaptor replay budget-check --orders 10
    """
    from adaptor.extras import require_extra

    require_extra("numpy")
    from adaptor.cli.table import layout
    from adaptor.experiments.forecasts.campaign import run_all
    from adaptor.experiments.forecasts.coverage import HEADINGS, promises, table
    from adaptor.experiments.forecasts.design import Settings, cells

    settings = Settings(seed=seed, orders=orders, demo=demo)
    with running("bags", len(cells()) * orders) as done:
        rows = run_all(settings, processes, done)
    click.echo("Forecasts whose 90 % interval holds, by finished tasks when they are made")
    for line in layout(HEADINGS, table(rows)):
        click.echo(line)
    found = promises(rows)
    for each in found:
        click.echo(f"{'kept    ' if each.kept else 'NOT KEPT'}  {each.text}: {each.found}")
    if not all(each.kept for each in found):
        ctx.exit(1)
