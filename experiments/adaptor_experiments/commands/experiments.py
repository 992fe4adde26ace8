"""`adaptor replay` for the papers, the peers and two checks of budgets: their texts and options as data."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptor.cli.options import duration
from adaptor.crafting.heuristics import HEURISTICS
from adaptor_experiments.commands.running import (
    Decorator,
    choice_option,
    count_option,
    duration_option,
    experiment_options,
    list_option,
    mean_option,
    own_processors_option,
    running,
    scheduler_option,
    tasks_option,
    trace_option,
    traces_option,
)

if TYPE_CHECKING:
    from adaptor_experiments.experiment import Experiment


def _quick(about: str, **values: object) -> Decorator:
    """The option `--quick`: these values stand for the options that are not given."""

    def few(ctx: click.Context, _param: click.Parameter, on: bool) -> None:
        ctx.default_map = values if on else None

    return click.option("--quick", is_flag=True, is_eager=True, expose_value=False, callback=few, help=about)


def _command(name: str, module: str, summary: str, text: str, *options: Decorator) -> click.Command:
    """The command of the `EXPERIMENT` of a module; it goes on from what its output folder holds.

    Args:
        options: those that make the plan, by the names that it has for them. `--output`, `--seed` and
            `--processes` follow.
    """

    def run(ctx: click.Context, /, output: Path, processes: int, **given: Any) -> None:
        from adaptor.cli.printing import layout

        experiment: Experiment[Any, Any, Any] = importlib.import_module(module).EXPERIMENT
        plan = experiment.plan(**{option: value for option, value in given.items() if value is not None})
        with running("pieces", len(plan.pieces)) as done:
            rows, report = experiment.finish(plan, output, processes, done)
        click.echo("\n".join((*report.conclusion, "")))
        for exhibit in (each for each in report.exhibits if each.name.startswith(experiment.printed)):
            click.echo("\n".join((exhibit.title, *layout(exhibit.headings, exhibit.rows), "")))
        click.echo(f"The page: {output / 'report.html'}")
        if experiment.failed(rows):
            ctx.exit(1)

    made = click.pass_context(run)
    for option in reversed((*options, experiment_options(name))):
        made = option(made)
    return click.command(name, short_help=summary, help=text)(made)


a2ha = _command(
    "a2ha",
    "adaptor_experiments.a2ha.report",
    "Repeat the evaluations of A²HA (Silva et al. 2008 and 2011).",
    """Repeat the evaluations of A²HA (Silva et al. 2011, §4) and of its forerunner (2008, §5).

    How many hosts the estimators buy for bags whose task runtimes are not known, next to the figures and
    tables of the papers, and next to our own preset `frugal`. Stop it at any time: the same command goes on
    from there.

    \b
    Example:
      adaptor replay a2ha --quick --output quick
    """,
    count_option("--orders", 2, 200, "Of each bag."),
    _quick("Only 10 orders.", orders=10),
)

bats = _command(
    "bats",
    "adaptor_experiments.bats.experiment",
    "Repeat the evaluation of BaTS, tail phase (Oprescu, Kielmann).",
    """Repeat the evaluation of the tail phase of BaTS (Oprescu, Kielmann).

    Bags of normal, heavy-tailed and multi-modal runtimes, run with two budgets of the menu, and ended
    without a tail phase, with random, stochastic and perfectly chosen replicas, and with migration. Stop it
    at any time: the same command goes on from there.

    \b
    Example:
      adaptor replay bats --quick --output quick
    """,
    count_option("--bags", 1, 30, "Of each kind."),
    count_option("--runs", 1, 30, "Of each bag."),
    _quick("Only 2 runs of 2 bags of each kind.", bags=2, runs=2),
)

cost_aware = _command(
    "cost-aware",
    "adaptor_experiments.ricciardi.experiment",
    "Repeat the evaluation of Ricciardi & Hwang 2011.",
    """Repeat the evaluation of Ricciardi & Hwang 2011, §4: Figs 1 and 2.

    2,000 tasks on 2, 3 and 4 resources, stable (Table 1) and unstable (Table 2), with a target time or a
    target cost; with the paper's allocation, with the daemon's (`daemon`: certainty 0.9, a reserve of 10 %),
    and with the daemon's function at even odds and without a reserve. Stop it at any time: the same command
    goes on from there.

    \b
    Example:
      adaptor replay cost-aware --quick --output quick
    """,
    count_option("--runs", 6, 50, "Of each kind."),
    _quick("Only 7 runs of each kind.", runs=7),
)

transparent = _command(
    "transparent",
    "adaptor_experiments.transparent.report",
    "Use donated processors besides formal requests.",
    """Use idle processors of simulated clusters besides formal requests (De Rose et al. 2008, §3 and §5).

    Bags of 100 to 10,000 tasks of 100 s to 10,000 s on three traces with their interarrival times × 1.3,
    1 and 0.7, by transparent, static, adaptive and mixed allocation, and by transparent allocation as in
    the paper (all-idle), by time and by cost. Stop it at any time: the same command goes on from there, at
    another price too. The tables, the paper's claims and figures are in the output folder.

    \b
    Example:
      adaptor replay transparent --quick --output quick
    """,
    traces_option,
    count_option("--samples", 1, 4, "Submission times for each trace and load."),
    tasks_option,
    mean_option,
    list_option("--load", "loads", (1.3, 1.0, 0.7), "Only these factors of the interarrival times"),
    click.option(
        "--donated-price",
        type=click.FloatRange(0, 1, min_open=True),
        metavar="CREDITS",
        default=0.2,
        show_default=True,
        help="Of an hour of a donated processor; one in a formal request costs 1.",
    ),
    _quick(
        "One submission time, no more than 1,000 tasks, no heavy load.",
        samples=1,
        tasks="100,1000",
        loads="1.3,1.0",
    ),
)

derose = _command(
    "derose",
    "adaptor_experiments.derose.report",
    "Repeat the evaluation of De Rose et al. 2008.",
    """Repeat the evaluation of De Rose et al. 2008, §4.4, whole or in part, and compare heuristics.

    36 kinds of bag (the paper's grid jobs), max_pending_requests 1 to 6, both heuristics of the paper and
    100 submission times on each trace. Stop it at any time: the same command goes on from there. The
    output folder has the tables, the figures, a page with both, and comparison.json for programs.

    \b
    Example:
      adaptor replay derose --quick --output quick
      adaptor replay derose --trace sdsc-sp2 --tasks 100,1000 --samples 20
      adaptor replay derose --trace ctc-sp2-512 --stretch 0.7 --samples 20 --output loaded
      adaptor replay derose --trace mine.swf.gz --cells goals --samples 40 --output mine
    """,
    traces_option,
    trace_option,
    own_processors_option,
    list_option("--heuristic", "heuristics", tuple(HEURISTICS), "What is compared, else static and adaptive"),
    choice_option(
        "--cells",
        ("paper", "goals"),
        "The kinds of bag and limits: the paper's 216, or the 54 by which heuristics are judged.",
    ),
    count_option("--samples", 1, 100, "Submission times for each trace."),
    tasks_option,
    mean_option,
    list_option("--heterogeneity", "heterogeneities", (1, 2, 4), "Only bags of these heterogeneities"),
    list_option("--max-pending", "max_pending", (1, 2, 3, 4, 5, 6), "Only these max_pending_requests"),
    click.option(
        "--stretch",
        type=click.FloatRange(0.01, 100),
        default=1.0,
        show_default=True,
        metavar="FACTOR",
        help="Of the local jobs' interarrival times: below 1 the load is higher.",
    ),
    scheduler_option,
    click.option(
        "--initial-tr",
        type=duration,
        metavar="DURATION",
        help="What static and adaptive take a task to run at first.  [default: 1h]",
    ),
    count_option("--growth-factor", 2, 2, "By which adaptive lets tr grow."),
    click.option(
        "--poll-interval",
        type=duration,
        metavar="DURATION",
        help="Between two looks at the queue.  [default: a look at each event]",
    ),
    click.option("--static-maximum", is_flag=True, help="Let static always ask for the whole machine."),
    _quick(
        "A part: 6 submission times, max_pending_requests 1 and 6, heterogeneity 2.",
        samples=6,
        max_pending="1,6",
        heterogeneities="2",
    ),
)

peers = _command(
    "peers",
    "adaptor_experiments.peers.experiment",
    "Compare with job arrays and managers of workers.",
    """Compare what people use for a bag with what the daemon does, on simulated clusters.

    Job arrays whose user knows the longest task to a factor, chunks, whole nodes, one big job, HyperQueue's
    automatic allocation, Parsl, and the daemon's heuristics. Stop it at any time: the same command goes on
    from there.

    \b
    Example:
      adaptor replay peers --quick --output quick
      adaptor replay peers --trace mine.swf.gz --ways elastic-100,array-3 --output mine
    """,
    traces_option,
    trace_option,
    own_processors_option,
    list_option(
        "--ways",
        "ways",
        "adaptor_experiments.peers.experiment:WAYS",
        "Only these ways, such as elastic-1000,array-3; array-1.5 is always there.",
    ),
    count_option("--samples", 1, 10, "Submission times for each trace and scheduler."),
    list_option("--tasks", "tasks", (100, 1000, 10_000), "Only bags of this many tasks, else 100 and 1000"),
    list_option("--mean", "means", (100, 1000, 10_000), "Only these mean runtimes in s, else 1000 and 10000"),
    list_option("--shape", "shapes", ("equal", "log-normal", "heavy"), "Only runtimes of these shapes"),
    list_option("--scheduler", "schedulers", ("conservative", "easy"), "Only these"),
    count_option(
        "--node", 1, 1, "Processors of a node, of which every job has whole ones; 1: jobs have processors."
    ),
    count_option("--start", 0, 0, "Seconds from the start of a job or pilot until its first task begins."),
    duration_option(
        "--fair-share",
        "Serve by fair share and age; usage halves in this time, such as 7d. Else by submission.",
    ),
    count_option("--backfill-per-user", 0, 0, "Waiting jobs of a user that backfilling looks at; 0: all."),
    _quick("One submission time, log-normal runtimes.", samples=1, shapes="log-normal"),
)

budget_check = _command(
    "budget-check",
    "adaptor_experiments.forecasts.coverage",
    "Measure how often the forecasts of `adaptor status` hold.",
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
    """,
    count_option("--orders", 4, 200, "Of each bag."),
    list_option(
        "--bags",
        "bags",
        "adaptor_experiments.forecasts.paid_bags:BAG",
        "Only these, such as sorted,demo.",
    ),
    _quick("Only 20 orders.", orders=20),
)

budget_frontier = _command(
    "budget-frontier",
    "adaptor_experiments.frontier.experiment",
    "Measure how near bags come to the best cost and time.",
    """Measure how near bags with a budget, a deadline or a preference come to the best cost and time.

    Bags with light and heavy tails are run at a simulated site by the broker, the planner and the ledger of
    the daemon, charged by the second, the minute or the hour, with unknown runtimes, with those of an earlier
    bag, and with `--time`. The best is found by a search that knows every runtime. Stop it at any time: the
    same command goes on from there.

    \b
    Example:
      adaptor replay budget-frontier --quick --output quick
      adaptor replay budget-frontier --bag image --heuristic adaptive --initial-tr 1h --requests 1
    """,
    count_option("--orders", 1, 3, "Of each bag."),
    _quick("Only 1 order of two bags.", orders=1, bags="image,levy"),
    list_option(
        "--bag",
        "bags",
        "adaptor_experiments.frontier.design:BAGS",
        "Only these: constant, normal, image, levy, and so on.",
    ),
    click.option("--tasks", type=click.IntRange(1), metavar="N", help="Tasks of a bag, at most."),
    click.option(
        "--heuristic",
        type=click.Choice(list(HEURISTICS)),
        default="completion",
        show_default=True,
        help="Of the site.",
    ),
    duration_option("--initial-tr", "First guess of a task.  [default: that of the heuristic]"),
    click.option(
        "--processors",
        type=click.IntRange(1, 64),
        metavar="N",
        default=64,
        show_default=True,
        help="Of the site.",
    ),
    count_option("--requests", 1, 4, "That the site takes; together they may have all processors."),
)
