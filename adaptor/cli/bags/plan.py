"""`adaptor plan`: what would become of a bag if it were submitted now."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

import click

from adaptor import api
from adaptor.cli.bags.bag_input import plan_of
from adaptor.cli.bags.bag_options import WithWords, bag_options
from adaptor.cli.bags.quote import places_of
from adaptor.cli.bags.submit import tell_refused
from adaptor.cli.options import config_option, json_option
from adaptor.cli.printing import (
    NumberCell,
    clock,
    duration,
    layout,
    plural,
    print_json,
    print_lines,
    printable,
)
from adaptor.cli.sentences import amount, interval
from adaptor.client.asking import SCHEDULERS_TIMEOUT, ask
from adaptor.errors import NoDaemonError


@click.command(cls=WithWords, short_help="Show what would become of a bag if it were submitted now.")
@bag_options
@click.option("--commands", is_flag=True, help="Print the command of each task instead.")
@config_option
@json_option
def plan(bag: api.BagInput, commands: bool, config: str | None, as_json: bool) -> None:
    """Show what would become of a bag if it were submitted now; submits nothing.

    The requests that would be made now, when they would start by the time limits of the queue, and when
    the bag would be done (an interval that holds with 90 %). Where a price is set: its credits
    and, with --time or earlier bags of its kind, the cheapest and the fastest slots that `quote` would
    offer.

    \b
    Examples:
      adaptor plan tasks.bag --time 10m
      adaptor plan tasks.bag --time 10m --site hpc
      adaptor plan --commands gzip -k {} ::: *.csv
    """
    if commands:
        lines = [each if isinstance(each := task.command, str) else shlex.join(each) for task in bag.tasks]
        print_json(lines) if as_json else print_lines(lines)
        return
    found = _read(plan_of(bag), config)
    if as_json:
        print_json(found)
        return
    print_lines(plan_lines(found, bag.budget))
    reasons = [f"{bag.tasks[place].shown(place, bag.file)}: {why}" for place, why in found.reasons.items()]
    tell_refused(found.refused, reasons, "would fail at once")
    of_each = all(task.needs is not None and task.needs.time is not None for task in bag.tasks)
    if bag.spec.time is None and not of_each and not found.earlier:
        click.echo("how long a task takes is not known; --time DURATION says it, and the requests fit better")


def _read(question: api.GetPlan, config: str | None) -> api.PlanView:
    try:
        return ask(question, timeout=SCHEDULERS_TIMEOUT)
    except NoDaemonError:
        click.echo("adaptor: no daemon is running; asking the schedulers from here", err=True)
    from adaptor.config.loading import config_path, load_config
    from adaptor.daemon.client.plans import plan_here

    return plan_here(question, load_config(config_path(config)).sites)


def _start(request: api.PlannedRequest, now: float) -> str:
    return "now" if request.start is not None and request.start <= now else clock(request.start, now)


def plan_lines(found: api.PlanView, budget: float | None = None) -> Iterator[str]:
    """The lines of a plan. `budget`: credits that the bag may cost; None: no limit."""
    for site, problem in found.problems.items():
        yield f"{site}: {printable(problem)}"
    yield from map(printable, found.earlier)
    if found.requests:
        yield "requests that would be made now:"
        equal = Counter((each.site, each.p, each.tr, _start(each, found.now)) for each in found.requests)
        rows = [
            (site, NumberCell(p if count == 1 else f"{count} × {p}"), NumberCell(duration(tr)), start)
            for (site, p, tr, start), count in equal.items()
        ]
        yield from layout(("site", "processors", "walltime", "start"), rows)
    for site, why in found.withheld.items():
        yield f"{site}: no request now: {printable(why)}"
    work = f"{duration(found.work.low)} to {duration(found.work.high)} of processor time"
    credits = ""
    if found.credits is not None:
        low, high = amount(found.credits.low), amount(found.credits.high)
        credits = f", {low} to {high} credits and what is wasted"
    yield f"{plural(found.tasks, 'task')}: {work}{credits}"
    if found.choices:
        yield "slots that a quote would offer, without their wait in the queue:"
        first, last = found.choices[0], found.choices[-1]
        ends = {"cheapest": first, "fastest": last} if first.cost != last.cost else {"only": first}
        yield from layout(
            ("choice", "credits", "time", "processors"),
            [
                (name, amount(line.cost.value), duration(line.seconds.value), places_of(line))
                for name, line in ends.items()
            ],
        )
    least, what = 0.0, ""
    if found.choices:
        least, what = found.choices[0].cost.value, "the cheapest choice costs"
    elif found.credits is not None:
        least, what = found.credits.low, "their work costs at least"
    if budget is not None and budget < least:
        yield (
            f"with --budget {amount(budget)} the bag is likely to pause before its last tasks: "
            f"{what} {amount(least)}"
        )
        return
    yield "no end can be seen" if found.end is None else f"done {interval(found.end, found.now)}"
