"""`adaptor report`: every request of a bag, and what became of it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click
import msgspec

from adaptor import api
from adaptor.atomic_file import PRIVATE, write_atomically
from adaptor.cli.json_output import print_json
from adaptor.cli.operating.pilot import pilot_lines
from adaptor.cli.options import json_option
from adaptor.cli.progress import counts, title
from adaptor.cli.reader import Reader
from adaptor.cli.selectors import selector_argument
from adaptor.cli.sentences import credit_line, first_forecast_lines, record_line, used_words
from adaptor.cli.words import duration, plural, printable, size
from adaptor.errors import AdaptorError

SHORT = 20
"""Requests that are listed where not all are asked for."""


@click.command(short_help="List the jobs that ran a bag: why, when, at what cost.")
@selector_argument("[BAG]", default="last")
@click.option("--html", "html_file", metavar="FILE", help="Write pilots, tasks and cost as one page.")
@click.option("--all", "every", is_flag=True, help=f"List all requests, not the last {SHORT}.")
@json_option
def report(selector: str, html_file: str | None, every: bool, as_json: bool) -> None:
    """List the jobs that ran a bag: why, when, at what cost; then advice.

    Cost is processor time: one hour on 4 processors is 4h. GPUs count beside it.

    \b
    Examples:
      adaptor report 7
      adaptor report 7 --html bag7.html
    """
    reader = Reader()
    bag = reader.bag(selector).id
    if html_file is not None:
        _write_page(reader, bag, Path(html_file))
        return
    found = reader.get(api.GetReport(bag))
    found = msgspec.structs.replace(found, advice=advice(reader, bag))
    if as_json:
        print_json(found)
        return
    click.echo(f"{title(found.bag)}: {found.bag.state}, {counts(found.bag)}")
    shown = found.requests if every else found.requests[-SHORT:]
    for line in pilot_lines(shown, reasons=True):
        click.echo(line)
    if len(shown) < len(found.requests):
        click.echo(f"{plural(len(found.requests) - SHORT, 'earlier request')}: --all lists them")
    for line in totals(found.totals):
        click.echo(line)
    if found.donation is not None:
        click.echo(f"on donated nodes: {used_words(found.donation)}")
    if found.credits is not None:
        click.echo(credit_line(found.credits))
    for line in forecast_lines(found):
        click.echo(line)
    for line in found.advice:
        click.echo(f"advice: {printable(line)}")


def advice(reader: Reader, bag: int) -> list[str]:
    """What the bag would have better asked for; without a daemon nothing is known of free slots."""
    told = reader.get(api.GetAdvice(bag))
    if not reader.offline:
        return told.lines
    from adaptor.advice import advise

    return advise(told.measured, [])


def _write_page(reader: Reader, bag: int, path: Path) -> None:
    """Raises AdaptorError: it cannot be written."""
    from adaptor.dashboard.document import static_document
    from adaptor.dashboard.report_page import report_page

    page = static_document(report_page(reader.get, bag, time.time()))
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # It holds commands' output, so it is private until its owner opens it to others.
        write_atomically(path, page.encode(), temporary=temporary, mode=PRIVATE, sync=False)
    except OSError as error:
        raise AdaptorError(f"{path}: cannot be written: {error.strerror}") from error
    click.echo(f"{path}: {size(len(page.encode()))}")


def forecast_lines(found: api.BagReport) -> list[str]:
    """The bag's first forecast and the record of all; nothing where it had none."""
    first = [] if found.first_forecast is None else first_forecast_lines(found.first_forecast)
    return [*first, *([] if found.forecast_record is None else [record_line(found.forecast_record)])]


def totals(sums: api.Totals) -> list[str]:
    """The sums in at most four lines."""
    share = f" ({100 * sums.used / sums.paid:.0f} %)" if sums.paid else ""
    requests = plural(sums.requests, "request") if sums.requests or not sums.donations else ""
    donations = plural(sums.donations, "donated node") if sums.donations else ""
    lines = [
        f"{' and '.join(filter(None, (requests, donations)))}: paid {duration(sums.paid)} of processor time,"
        f" used {duration(sums.used)}{share}, wasted {duration(sums.wasted)}",
        f"in processor-seconds: paid {sums.paid:,.0f}, used {sums.used:,.0f}, wasted {sums.wasted:,.0f}",
    ]
    if sums.gpu_paid:
        lines.append(f"paid {duration(sums.gpu_paid)} of GPU time ({sums.gpu_paid:,.0f} GPU-seconds)")
    results = [
        f"{word} result after {duration(seconds)}"
        for word, seconds in (("first", sums.first_result), ("last", sums.turnaround))
        if seconds is not None
    ]
    return [*lines, ", ".join(results)] if results else lines
