"""`adaptor quote`: cost and time of a bag, before it is paid for."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click
import msgspec

from adaptor import api
from adaptor.cli.bags.bag_options import WithWords, bag_options
from adaptor.cli.daemon_process import ensure_daemon, submit_bag, tell_started
from adaptor.cli.options import config_option, json_option
from adaptor.cli.printing import NumberCell, duration, layout, plural, print_json, print_lines, printable
from adaptor.cli.sentences import amount
from adaptor.errors import UsageError

if TYPE_CHECKING:
    from adaptor.budget.provisioning.menu_line import Line

_TITLES = ("line", "choice", "credits", "range", "time", "within", "processors")


@click.command(cls=WithWords, short_help="Show what a bag would cost, and how long it would take.")
@bag_options
@click.option("--choose", type=int, metavar="LINE", help="Submit the rest by this line (from 1).")
@click.option("--sample", is_flag=True, help="Run a sample, whatever earlier bags of its kind tell.")
@config_option
@json_option
def quote(bag: api.BagInput, choose: int | None, sample: bool, config: str | None, as_json: bool) -> None:
    """Show cost and time of a bag, one line for each choice, from cheapest to fastest.

    If at least 30 earlier tasks of its kind ran at each of its sites, they say how long a task takes.
    Otherwise a sample of its tasks runs first. With several sites, seven tasks run on each, to
    compare the sites. The sampled tasks are done and paid for, once: another quote of the same bag goes
    on from their results. On a terminal the command asks for a line; --choose names it beforehand.
    The rest is then submitted for the line's sites and number of processors, with the upper ends of its
    ranges as budget and deadline; what its requests reserve beyond their work is added to the budget, and
    most of it is given back.

    \b
    Example:
      adaptor quote tasks.bag --choose 2
    """
    from adaptor.cli.bags.sampling import by_earlier_bags, take_samples

    if ensure_daemon(config, sites=bag.spec.sites):
        tell_started()
    found = (None if sample else by_earlier_bags(bag)) or take_samples(bag)
    if not as_json:
        print_lines(map(printable, found.earlier))
        left = "without a sample" if found.earlier else "left after the sample"
        click.echo(f"{plural(len(found.rest.tasks), 'task')} {left}; ranges of 90 % probability")
        print_lines(layout(_TITLES, [_row(number, line) for number, line in enumerate(found.lines, 1)]))
    if choose is None and sys.stdin.isatty() and not as_json:
        choose = int(click.prompt("Which line (0: none)", type=click.IntRange(0, len(found.lines))))
    number = _go_on(found.rest, found.lines, choose, config) if choose else None
    if as_json:
        print_json({"samples": found.samples, "earlier": found.earlier, "lines": found.lines, "bag": number})
    elif number is not None:
        click.echo(f"bag {number}: {plural(len(found.rest.tasks), 'task')}")
        if found.samples:
            whole = ",".join(map(str, (*found.samples, number)))
            click.echo(f"with the sample these are all tasks: adaptor results {whole}")


def _row(number: int, line: Line) -> tuple[str, ...]:
    return (
        str(number),
        line.name,
        amount(line.cost.value),
        f"{amount(line.cost.low)} to {amount(line.cost.high)}",
        duration(line.seconds.value),
        f"{duration(line.seconds.low)} to {duration(line.seconds.high)}",
        places_of(line),
    )


def places_of(line: Line) -> NumberCell:
    """The line's slots at each site, for a table."""
    return NumberCell(", ".join(f"{count} at {site}" for site, count in line.processors.items()))


def _go_on(rest: api.BagInput, lines: list[Line], choose: int, config: str | None) -> int:
    """Submit the rest, within the line's ranges; the new bag's number."""
    if not 1 <= choose <= len(lines):
        raise UsageError(f"--choose: no line {choose}; the lines are 1 to {len(lines)}")
    chosen = by_line(rest, lines[choose - 1], time.time())
    return submit_bag(chosen, config).bag


def by_line(bag: api.BagInput, line: Line, now: float) -> api.BagInput:
    """The bag as the line says: at its sites, on no more slots, within the upper ends of its ranges."""
    slots = sum(line.processors.values())
    spec = msgspec.structs.replace(
        bag.spec,
        sites=tuple(line.processors),
        deadline=now + line.seconds.high,
        max_running=min(slots, bag.spec.max_running or slots),
        prefer=bag.spec.prefer or (None if line.name == "cheapest" else "fast"),
    )
    return msgspec.structs.replace(bag, spec=spec, budget=line.cost.high + line.reserved)
