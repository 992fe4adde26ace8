"""`adaptor replay budget-check`."""

from __future__ import annotations

from pathlib import Path

import click

from adaptor_experiments.commands.running import (
    chosen,
    count_option,
    demo_option,
    folder_option,
    processes_option,
    running,
    seed_option,
    show,
)

QUICK = 20


def _bags(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    from adaptor_experiments.forecasts.paid_bags import BAG

    return chosen(value, BAG)


@click.command("budget-check", short_help="Measure how often the forecasts of `adaptor status` hold.")
@folder_option("budget-check")
@count_option("--orders", 4, 200, "Of each bag.")
@click.option("--bags", metavar="LIST", callback=_bags, help="Only these, such as sorted,demo.")
@click.option("--quick", is_flag=True, help=f"Only {QUICK} orders.")
@demo_option
@seed_option
@processes_option
@click.pass_context
def budget_check(
    ctx: click.Context,
    output: Path,
    orders: int,
    bags: tuple[str, ...] | None,
    quick: bool,
    demo: Path | None,
    seed: int,
    processes: int,
) -> None:
    """Measure how often the forecasts of `adaptor status` hold; exit code 1 where a promise is not kept.

    Bags of many kinds are run at a simulated site by the broker, the planner and the ledger of the daemon:
    sorted files in random order and with order=file, shuffled ones, bags with two kinds of tasks, with heavy
    tails, the measured one of the demo, and others. After 30, 100 and half of the tasks the forecast is made
    by the function that `adaptor status` prints, and compared with what the bag costs in the end, and when it
    ends. A promise counts as not kept only where chance is no excuse: the fewer orders, the more is open.

    \b
    Example:
      adaptor replay budget-check --quick --output quick
      adaptor replay budget-check --orders 200 --bags sorted,sorted-file,shuffled
    """
    from adaptor_experiments.forecasts.campaign import paid_for
    from adaptor_experiments.forecasts.coverage import promises
    from adaptor_experiments.forecasts.paid_bags import BAG, Settings
    from adaptor_experiments.forecasts.report import write_report

    settings = Settings(
        seed=seed, orders=QUICK if quick else orders, demo=demo, bags=tuple(BAG) if bags is None else bags
    )
    with running("bags", len(settings.bags) * settings.orders) as done:
        rows = paid_for(settings, processes, done)
    show(write_report(rows, settings, output), output)
    if any(each.verdict == "NOT KEPT" for each in promises(rows)):
        ctx.exit(1)
