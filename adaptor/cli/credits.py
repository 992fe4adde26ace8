"""`adaptor credits`: what sites and bags have used, reserve, and may cost."""

from __future__ import annotations

import time

import click

from adaptor import api
from adaptor.cli.daemon_process import ask_daemon
from adaptor.cli.options import config_option, json_option, selector_argument
from adaptor.cli.printing import Columns, NumberCell, duration, plural, print_json, print_lines, table
from adaptor.cli.sentences import amount
from adaptor.client.reading import Reader
from adaptor.errors import UsageError
from adaptor.journal.selectors import RECENT
from adaptor.option_kinds import INSTANT
from adaptor.units import format_instant


@click.command()
@selector_argument("[BAGS]", default="recent")
@click.option(
    "--settle", "site", metavar="SITE", help="Charge the pilots of a site that left the configuration now."
)
@click.option("--ended", metavar="TIME", help="With --settle: when, such as 2026-11-22T08:00.")
@config_option
@json_option
def credits(selector: str, site: str | None, ended: str | None, config: str | None, as_json: bool) -> None:
    """Show credits: used, reserved and left, per site and per bag.

    BAGS selects bags (default: unfinished ones and the newest 20).

    A credit is a processor-hour unless the configuration sets another price. `wasted` is the part of
    `used` that paid for idle slots, killed attempts and losing replicas.

    Pilots of a site that left the configuration keep their reservation until they have certainly ended;
    with --settle they are charged at once, up to TIME or the last sign of their workers.

    \b
    Examples:
      adaptor credits last
      adaptor credits --settle oldcluster --ended 2026-11-22T08:00
    """
    if site is not None:
        try:
            at = None if ended is None else INSTANT.parse(ended, time.time())
        except ValueError as error:
            raise UsageError(f"--ended: {error}") from error
        settled = ask_daemon(api.SettleSite(site, at), config)
        click.echo(f"{plural(settled, 'pilot')} of site {site} settled", err=True)
    elif ended is not None:
        raise UsageError("--ended says when the pilots of --settle SITE ended")
    found = Reader(time.time).get(api.GetCredits(selector))
    if as_json:
        print_json(found)
        return
    if not found.sites and not found.bags:
        click.echo("no credits used yet")
        return
    print_lines(table([*found.sites, *found.bags], _COLUMNS))
    if selector == "recent" and len(found.bags) >= RECENT:
        click.echo("earlier bags: adaptor credits all")
    print_lines(map(_price, found.prices))
    print_lines(map(_removed, found.removed))


def _removed(pilot: api.RemovedPilotView) -> str:
    since = (
        f"submitted {format_instant(pilot.submitted)}"
        if pilot.started is None
        else f"started {format_instant(pilot.started)}"
    )
    return (
        f"pilot {pilot.pilot}: its site {pilot.site} left the configuration; {since}, it reserves "
        f"{amount(pilot.reserved)} until {format_instant(pilot.due)}"
    )


_COLUMNS: Columns = {
    "of": lambda line: f"bag {line.bag}" if line.bag is not None else f"site {line.site}",
    "period": "period",
    "budget": lambda line: NumberCell(amount(line.budget)),
    "used": lambda line: NumberCell(amount(line.used)),
    "wasted": lambda line: NumberCell(amount(line.wasted)),
    "reserved": lambda line: NumberCell(amount(line.reserved)),
    "left": lambda line: NumberCell(amount(line.left)),
}


def _price(price: api.SitePrice) -> str:
    donated = "" if price.donated == price.explicit else f", {amount(price.donated)} on donated nodes"
    unit = duration(price.charging_unit)
    gpu = f", {amount(price.gpu)} a GPU-hour" if price.gpu else ""
    return (
        f"{price.site}: {amount(price.explicit)} a processor-hour{donated}{gpu}, charged in units of {unit}"
    )
