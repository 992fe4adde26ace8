"""`adaptor report`: every request of a bag, and what became of it."""

from __future__ import annotations

import click

from adaptor import views
from adaptor.cli.credit_words import credit_line
from adaptor.cli.donation_words import used_words
from adaptor.cli.forecast_words import first_forecast_lines, record_line
from adaptor.cli.json_output import print_json
from adaptor.cli.options import json_option
from adaptor.cli.pilot_table import pilot_lines
from adaptor.cli.progress import counts, title
from adaptor.cli.reader import Reader
from adaptor.cli.selectors import selector_argument
from adaptor.cli.words import duration, plural
from adaptor.protocol import control


@click.command()
@selector_argument("[BAG]", default="last")
@json_option
def report(selector: str, as_json: bool) -> None:
    """List every request of a bag: reason, times and cost.

    Cost is processor time: one hour on 4 processors is 4h.

    \b
    Example:
      adaptor report 7
    """
    reader = Reader()
    found = reader.get(control.GetReport(reader.bag(selector).id), control.Report).report
    if as_json:
        print_json(found)
        return
    click.echo(f"{title(found.bag)}: {found.bag.state}, {counts(found.bag)}")
    for line in pilot_lines(found.requests, reasons=True):
        click.echo(line)
    for line in totals(found.totals):
        click.echo(line)
    if found.donation is not None:
        click.echo(f"on donated nodes: {used_words(found.donation)}")
    if found.credits is not None:
        click.echo(credit_line(found.credits))
    for line in forecast_lines(found):
        click.echo(line)


def forecast_lines(found: views.BagReport) -> list[str]:
    """The bag's first forecast and the record of all; nothing where it had none."""
    first = [] if found.first_forecast is None else first_forecast_lines(found.first_forecast)
    return [*first, *([] if found.forecast_record is None else [record_line(found.forecast_record)])]


def totals(sums: views.Totals) -> list[str]:
    """The sums in at most three lines."""
    share = f" ({100 * sums.used / sums.paid:.0f} %)" if sums.paid else ""
    requests = plural(sums.requests, "request") if sums.requests or not sums.donations else ""
    donations = plural(sums.donations, "donated node") if sums.donations else ""
    lines = [
        f"{' and '.join(filter(None, (requests, donations)))}: paid {duration(sums.paid)} of processor time,"
        f" used {duration(sums.used)}{share}, wasted {duration(sums.wasted)}",
        f"in processor-seconds: paid {sums.paid:,.0f}, used {sums.used:,.0f}, wasted {sums.wasted:,.0f}",
    ]
    results = [
        f"{word} result after {duration(seconds)}"
        for word, seconds in (("first", sums.first_result), ("last", sums.turnaround))
        if seconds is not None
    ]
    return [*lines, ", ".join(results)] if results else lines
