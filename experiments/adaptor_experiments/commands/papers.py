"""`adaptor replay a2ha`, `bats`, `cost-aware`, `transparent` (evaluations of papers), and two on budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from adaptor_experiments.commands.running import (
    chosen,
    count_option,
    demo_option,
    folder_option,
    mean_option,
    processes_option,
    running,
    seed_option,
    show,
    tasks_option,
    traces_option,
)


@click.command(short_help="Repeat the evaluations of A²HA (Silva et al. 2008 and 2011).")
@folder_option("a2ha")
@click.option("--orders", type=click.IntRange(2), default=200, show_default=True, help="Of each bag.")
@click.option("--quick", is_flag=True, help="Only 10 orders.")
@demo_option
@seed_option
@processes_option
def a2ha(output: Path, orders: int, quick: bool, demo: Path | None, seed: int, processes: int) -> None:
    """Repeat the evaluations of A²HA (Silva et al. 2011, §4) and of its forerunner (2008, §5).

    How many hosts the estimators buy for bags whose task runtimes are not known, next to the figures and
    tables of the papers, and next to our own preset `frugal`.

    \b
    Example:
      adaptor replay a2ha --quick --output quick
    """
    from adaptor_experiments.a2ha.campaign import run_all
    from adaptor_experiments.a2ha.design import Settings, schemes
    from adaptor_experiments.a2ha.report import write_report

    settings = Settings(seed=seed, orders=10 if quick else orders, demo=demo)
    wanted = schemes()
    with running("runs", len(wanted) * settings.orders) as done:
        rows = run_all(wanted, settings, processes, done)
    show(write_report(rows, settings, output), output)


@click.command(short_help="Repeat the evaluation of BaTS, tail phase (Oprescu, Kielmann).")
@folder_option("bats")
@count_option("--bags", 1, 30, "Of each kind.")
@count_option("--runs", 1, 30, "Of each bag.")
@click.option("--quick", is_flag=True, help="Only 2 runs of 2 bags of each kind.")
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

    settings = Settings(seed=seed, bags=2 if quick else bags, runs=2 if quick else runs)
    with running("bags", len(KINDS) * settings.bags) as done:
        found = run_all(settings, processes, done)
    show(write_report(found, settings, output), output)


@click.command("cost-aware", short_help="Repeat the evaluation of Ricciardi & Hwang 2011.")
@folder_option("cost-aware")
@count_option("--runs", 6, 50, "Of each kind.")
@click.option("--quick", is_flag=True, help="Only 7 runs of each kind.")
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

    settings = Settings(seed=seed, runs=7 if quick else runs)
    with running("productions", sum(map(settings.runs_of, cells()))) as done:
        found = run_all(settings, processes, done)
    show(write_report(found, settings, output), output)


@click.command(short_help="Use donated processors besides formal requests.")
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
@click.option(
    "--donated-price",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="CREDITS",
    default=0.2,
    show_default=True,
    help="Of an hour of a donated processor; one in a formal request costs 1.",
)
@click.option("--quick", is_flag=True, help="One submission time, no more than 1,000 tasks, no heavy load.")
@seed_option
@processes_option
def transparent(
    output: Path,
    traces: Path,
    samples: int | None,
    donated_price: float,
    processes: int,
    quick: bool,
    **part: Any,
) -> None:
    """Use idle processors of simulated clusters besides formal requests (De Rose et al. 2008, §3 and §5).

    Bags of 100 to 10,000 tasks of 100 s to 10,000 s on three traces with their interarrival times × 1.3,
    1 and 0.7, by transparent, static, adaptive and mixed allocation, and by transparent allocation as in
    the paper (all-idle), by time and by cost. Stop it at any time: the same command goes on from there, at
    another price too. The tables, the paper's claims and figures are in the output folder.

    \b
    Example:
      adaptor replay transparent --quick --output quick
    """
    from adaptor_experiments.resumable import Store, run_missing
    from adaptor_experiments.transparent.design import Settings, pieces, prices
    from adaptor_experiments.transparent.report import write_report
    from adaptor_experiments.transparent.sample import Outcome, run_piece

    if quick:
        part["tasks"] = part["tasks"] or (100, 1000)
        part["loads"] = (1.3, 1.0)
    settings = Settings(**{name: value for name, value in part.items() if value is not None})
    wanted = pieces(traces, settings, samples or (1 if quick else 4))
    store = Store(output, settings, Outcome)
    with running("submission times", len(wanted)) as done:
        run_missing(run_piece, wanted, store, processes, done)
    show(write_report(store.read(wanted), settings, prices(donated_price), output), output)


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
    bag, and with `--time`. The best is found by a search that knows every runtime. Stop it at any time: the
    same command goes on from there.

    \b
    Example:
      adaptor replay budget-frontier --quick --output quick
    """
    from adaptor_experiments.frontier.campaign import pieces, run_piece
    from adaptor_experiments.frontier.design import QUICK, Row, Settings
    from adaptor_experiments.frontier.report import write_report
    from adaptor_experiments.resumable import Store, run_missing

    settings = Settings(seed=seed, orders=1, bags=QUICK) if quick else Settings(seed=seed, orders=orders)
    wanted, store = pieces(settings), Store(output, settings, Row)
    with running("bags", len(wanted)) as done:
        run_missing(run_piece, wanted, store, processes, done)
    show(write_report(store.read(wanted), settings, output), output)
