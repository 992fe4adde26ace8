"""`adaptor replay a2ha`, `bats`, `cost-aware`, `transparent` (evaluations of papers), and two on budgets."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from adaptor.crafting.heuristics import HEURISTICS, HeuristicName
from adaptor_experiments.commands.running import (
    chosen,
    count_option,
    duration_option,
    experiment_options,
    folder_of_traces,
    mean_option,
    measure,
    quick_option,
    tasks_option,
    traces_option,
)


@click.command(short_help="Repeat the evaluations of A²HA (Silva et al. 2008 and 2011).")
@count_option("--orders", 2, 200, "Of each bag.")
@quick_option("Only 10 orders.")
@experiment_options("a2ha")
def a2ha(orders: int, quick: bool, seed: int, output: Path, processes: int) -> None:
    """Repeat the evaluations of A²HA (Silva et al. 2011, §4) and of its forerunner (2008, §5).

    How many hosts the estimators buy for bags whose task runtimes are not known, next to the figures and
    tables of the papers, and next to our own preset `frugal`. Stop it at any time: the same command goes on
    from there.

    \b
    Example:
      adaptor replay a2ha --quick --output quick
    """
    from adaptor_experiments.a2ha.design import Row, Settings, pieces, run_piece
    from adaptor_experiments.a2ha.report import report_of

    settings = Settings(seed=seed, orders=10 if quick else orders)
    measure(run_piece, pieces(settings), Row, settings, report_of, output, processes)


@click.command(short_help="Repeat the evaluation of BaTS, tail phase (Oprescu, Kielmann).")
@count_option("--bags", 1, 30, "Of each kind.")
@count_option("--runs", 1, 30, "Of each bag.")
@quick_option("Only 2 runs of 2 bags of each kind.")
@experiment_options("bats")
def bats(bags: int, runs: int, quick: bool, seed: int, output: Path, processes: int) -> None:
    """Repeat the evaluation of the tail phase of BaTS (Oprescu, Kielmann).

    Bags of normal, heavy-tailed and multi-modal runtimes, run with two budgets of the menu, and ended
    without a tail phase, with random, stochastic and perfectly chosen replicas, and with migration. Stop it
    at any time: the same command goes on from there.

    \b
    Example:
      adaptor replay bats --quick --output quick
    """
    from adaptor_experiments.bats.campaign import Run, pieces, run_piece
    from adaptor_experiments.bats.design import Settings
    from adaptor_experiments.bats.report import report_of

    settings = Settings(seed=seed, bags=2 if quick else bags, runs=2 if quick else runs)
    measure(run_piece, pieces(settings), Run, settings, report_of, output, processes)


@click.command("cost-aware", short_help="Repeat the evaluation of Ricciardi & Hwang 2011.")
@count_option("--runs", 6, 50, "Of each kind.")
@quick_option("Only 7 runs of each kind.")
@experiment_options("cost-aware")
def cost_aware(runs: int, quick: bool, seed: int, output: Path, processes: int) -> None:
    """Repeat the evaluation of Ricciardi & Hwang 2011, §4: Figs 1 and 2.

    2,000 tasks on 2, 3 and 4 resources, stable (Table 1) and unstable (Table 2), with a target time or a
    target cost; with the paper's allocation, with the daemon's (`daemon`: certainty 0.9, a reserve of 10 %),
    and with the daemon's function at even odds and without a reserve. Stop it at any time: the same command
    goes on from there.

    \b
    Example:
      adaptor replay cost-aware --quick --output quick
    """
    from adaptor_experiments.ricciardi.campaign import Run, Settings, pieces, run_piece
    from adaptor_experiments.ricciardi.report import report_of

    settings = Settings(seed=seed, runs=7 if quick else runs)
    measure(run_piece, pieces(settings), Run, settings, report_of, output, processes)


@click.command(short_help="Use donated processors besides formal requests.")
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
@quick_option("One submission time, no more than 1,000 tasks, no heavy load.")
@experiment_options("transparent")
def transparent(
    traces: Path | None,
    samples: int | None,
    donated_price: float,
    quick: bool,
    output: Path,
    processes: int,
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
    from adaptor_experiments.transparent.design import Settings, pieces, prices
    from adaptor_experiments.transparent.report import report_of
    from adaptor_experiments.transparent.sample import Outcome, run_piece

    if quick:
        part["tasks"] = part["tasks"] or (100, 1000)
        part["loads"] = (1.3, 1.0)
    settings = Settings(**{name: value for name, value in part.items() if value is not None})
    wanted = pieces(folder_of_traces(traces), settings, samples or (1 if quick else 4))
    report = partial(report_of, tariff=prices(donated_price))
    measure(run_piece, wanted, Outcome, settings, report, output, processes)


QUICK = 20


def _bags(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    from adaptor_experiments.forecasts.paid_bags import BAG

    return chosen("--bags", value, BAG)


@click.command("budget-check", short_help="Measure how often the forecasts of `adaptor status` hold.")
@count_option("--orders", 4, 200, "Of each bag.")
@click.option("--bags", metavar="LIST", callback=_bags, help="Only these, such as sorted,demo.")
@quick_option(f"Only {QUICK} orders.")
@experiment_options("budget-check")
@click.pass_context
def budget_check(
    ctx: click.Context,
    orders: int,
    bags: tuple[str, ...] | None,
    quick: bool,
    seed: int,
    output: Path,
    processes: int,
) -> None:
    """Measure how often the forecasts of `adaptor status` hold; exit code 1 where a promise is not kept.

    Bags of many kinds are run at a simulated site by the broker, the planner and the ledger of the daemon:
    sorted files in random order and with order=file, shuffled ones, bags with two kinds of tasks, with heavy
    tails, the measured one of the demo, and others. After 30, 100 and half of the tasks the forecast is made
    by the function that `adaptor status` prints, and compared with what the bag costs in the end, and when it
    ends. A promise counts as not kept only where chance is no excuse: the fewer orders, the more is open.
    Stop it at any time: the same command goes on from there.

    \b
    Example:
      adaptor replay budget-check --quick --output quick
      adaptor replay budget-check --orders 200 --bags sorted,sorted-file,shuffled
    """
    from adaptor_experiments.forecasts.coverage import promises
    from adaptor_experiments.forecasts.paid_bags import BAG, Settings, pieces, run_piece
    from adaptor_experiments.forecasts.report import report_of
    from adaptor_experiments.forecasts.row import Row

    settings = Settings(
        seed=seed, orders=QUICK if quick else orders, bags=tuple(BAG) if bags is None else bags
    )
    rows = measure(run_piece, pieces(settings), Row, settings, report_of, output, processes)
    if any(promise.verdict == "NOT KEPT" for promise in promises(rows)):
        ctx.exit(1)


@click.command("budget-frontier", short_help="Measure how near bags come to the best cost and time.")
@count_option("--orders", 1, 3, "Of each bag.")
@quick_option("Only 1 order of two bags.")
@click.option("--bag", "bags", metavar="LIST", help="Only these: constant, normal, image, levy, and so on.")
@click.option("--tasks", type=click.IntRange(1), metavar="N", help="Tasks of a bag, at most.")
@click.option(
    "--heuristic",
    type=click.Choice(list(HEURISTICS)),
    default="completion",
    show_default=True,
    help="Of the site.",
)
@duration_option("--initial-tr", "First guess of a task.  [default: that of the heuristic]")
@click.option(
    "--processors",
    type=click.IntRange(1, 64),
    metavar="N",
    default=64,
    show_default=True,
    help="Of the site.",
)
@count_option("--requests", 1, 4, "That the site takes; together they may have all processors.")
@experiment_options("budget-frontier")
def budget_frontier(
    orders: int,
    quick: bool,
    bags: str | None,
    tasks: int | None,
    heuristic: HeuristicName,
    initial_tr: float | None,
    processors: int,
    requests: int,
    seed: int,
    output: Path,
    processes: int,
) -> None:
    """Measure how near bags with a budget, a deadline or a preference come to the best cost and time.

    Bags with light and heavy tails are run at a simulated site by the broker, the planner and the ledger of
    the daemon, charged by the second, the minute or the hour, with unknown runtimes, with those of an earlier
    bag, and with `--time`. The best is found by a search that knows every runtime. Stop it at any time: the
    same command goes on from there.

    \b
    Example:
      adaptor replay budget-frontier --quick --output quick
      adaptor replay budget-frontier --bag image --heuristic adaptive --initial-tr 1h --requests 1
    """
    from adaptor_experiments.frontier.campaign import pieces, run_piece
    from adaptor_experiments.frontier.design import BAGS, QUICK, Row, Settings, Shape
    from adaptor_experiments.frontier.report import report_of

    shape = Shape(
        heuristic=heuristic,
        initial_tr=initial_tr or HEURISTICS[heuristic].assumed_runtime,
        processors=processors,
        requests=min(requests, processors),
        tasks=tasks,
    )
    some = chosen("--bag", bags, BAGS) or (QUICK if quick else BAGS)
    settings = Settings(seed=seed, orders=1 if quick else orders, bags=some, shape=shape)
    measure(run_piece, pieces(settings), Row, settings, report_of, output, processes)
