"""`adaptor status`: the bags, the daemon and its pilots."""

from __future__ import annotations

import click

from adaptor import api
from adaptor.cli.bags.report import pilot_lines
from adaptor.cli.daemon_process import config_lines, daemon_lines
from adaptor.cli.options import BagReader, json_option, selector_argument
from adaptor.cli.printing import (
    Columns,
    NumberCell,
    StateWord,
    clock,
    duration,
    pilots_line,
    plural,
    print_json,
    print_lines,
    printable,
    table,
)
from adaptor.cli.sentences import forecast_line, held_off_lines, pause_lines, pilot_notes
from adaptor.client.asking import OtherVersionError, ask
from adaptor.errors import UsageError


@click.command(short_help="Show bags, the daemon and its pilots.")
@selector_argument("[SEL]", default="recent")
@click.option("--pilots", "only_pilots", is_flag=True, help="List the pilots that are queued or running.")
@click.option("--all", "ended", is_flag=True, help="With --pilots: ended ones too.")
@json_option
def status(selector: str, only_pilots: bool, ended: bool, as_json: bool) -> None:
    """Show bags, the daemon and its pilots (default: unfinished bags and the newest 20).

    \b
    Examples:
      adaptor status all
      adaptor status 1-10
      adaptor status --pilots --all
    """
    reader = BagReader()
    if only_pilots:
        _print_pilots(reader.get(api.GetPilots(ended)), as_json, ended=ended)
        return
    if ended:
        raise UsageError("--all: with --pilots only; all bags: adaptor status all")
    try:
        found = reader.get(api.GetBags(selector, record=as_json))
    except OtherVersionError:
        if not as_json:
            print_lines(daemon_lines(ask(api.GetDaemon())))
        raise
    bags = found.bags
    pilots = reader.get(api.GetPilots())
    daemon = None if reader.offline else ask(api.GetDaemon())
    if as_json:
        told = {"bags": bags, "forecast_record": found.record, "daemon": daemon, "pilots": pilots}
        print_json(told)
        return
    _print_bags(bags)
    if selector == "recent" and found.others:
        click.echo(f"{plural(found.others, 'earlier bag')}: adaptor status all")
    if daemon is not None:
        where = f"daemon on {daemon.host} (process {daemon.pid}) since {clock(daemon.started)}"
        click.echo(f"{where}; {pilots_line(pilots)}")
        if daemon.stalled:
            click.echo(f"daemon stalled: {printable(daemon.stalled)}")
        print_lines(config_lines(daemon, only_problems=True))
    print_lines(pilot_notes(pilots))


def _print_pilots(pilots: list[api.PilotRecord], as_json: bool, *, ended: bool) -> None:
    if as_json:
        print_json(pilots)
        return
    print_lines(pilot_lines(pilots))
    if not pilots:
        click.echo("no pilots" if ended else "no pilots queued or running; --all shows ended ones")


def _print_bags(bags: list[api.BagView]) -> None:
    if not bags:
        click.echo("no bags; submit one: adaptor submit FILE")
        return
    print_lines(table(bags, _COLUMNS))
    for bag in bags:
        if bag.forecast is not None and not bag.paused:
            click.echo(f"bag {bag.id}: {forecast_line(bag.forecast)}")
        print_lines([*pause_lines(bag), *held_off_lines(bag)])


_COLUMNS: Columns = {
    "bag": "id",
    "name": lambda bag: printable(bag.name, 24),
    "state": lambda bag: StateWord("paused" if bag.paused else bag.state),
    "done": lambda bag: NumberCell(f"{bag.done}/{bag.tasks}"),
    "running": "running",
    "waiting": lambda bag: NumberCell(bag.waiting + bag.blocked),
    "failed": "failed",
    "cancelled": "cancelled",
    "mean": "mean_runtime",
    "submitted": "submitted",
    "took": lambda bag: NumberCell(duration(None if bag.ended is None else bag.ended - bag.submitted)),
    "sites": lambda bag: ",".join(bag.sites) or "any",
}
