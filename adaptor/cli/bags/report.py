"""`adaptor report`: requests, and what became of them."""

from __future__ import annotations

import time
from pathlib import Path

import click
import msgspec

from adaptor import api
from adaptor.cli.bags.pilot_table import pilot_lines, pilots_of, together
from adaptor.cli.options import json_option, selector_argument, with_key
from adaptor.cli.printing import (
    duration,
    plural,
    print_json,
    print_lines,
    printable,
    size,
    write_whole,
)
from adaptor.cli.sentences import (
    bags_words,
    counts,
    credit_line,
    first_forecast_lines,
    record_lines,
    title,
    used_words,
)
from adaptor.client.reading import Reader
from adaptor.private_files import PRIVATE

SHORT = 20  # requests and arrays that are listed where not all are asked for


@click.command(short_help="List the jobs that ran a bag: why, when, at what cost.")
@selector_argument("[BAG]", default="last")
@click.option("--html", "html_file", metavar="FILE", help="Write pilots, tasks and cost as one page.")
@click.option("--all", "every", is_flag=True, help=f"List every pilot, not the last {SHORT} requests.")
@json_option
def report(selector: str, html_file: str | None, every: bool, as_json: bool) -> None:
    """List the jobs that ran a bag: why, when, at what cost; then advice.

    Cost is processor time: one hour on 4 processors is 4h. GPUs are counted separately.

    \b
    Examples:
      adaptor report 7
      adaptor report 7 --html bag7.html
    """
    reader = Reader(time.time)
    bag = reader.bag(selector).id
    if html_file is not None:
        path = Path(html_file)
        from adaptor.dashboard.document import report_page, static_document

        page = static_document(report_page(reader.get, bag, time.time()))
        # It holds commands' output, so it is private until its owner opens it to others.
        write_whole(path, page.encode(), PRIVATE)
        click.echo(f"{path}: {size(len(page.encode()))}")
        return
    found = reader.get(api.GetReport(bag))
    found = msgspec.structs.replace(found, advice=advice(reader, bag))
    if as_json:
        print_json(found)
        return
    click.echo(f"{title(found.bag)}: {found.bag.state}, {counts(found.bag)}")
    rows = together(found.requests)
    shown = found.requests if every else [pilot for row in rows[-SHORT:] for pilot in pilots_of(row)]
    print_lines(pilot_lines(shown, reasons=True, each=every))
    if len(shown) < len(found.requests):
        click.echo(f"{plural(len(found.requests) - len(shown), 'earlier request')}: --all lists them")
    elif len(rows) < len(shown) and not every:
        click.echo("--all lists each pilot of an array")
    print_lines(totals(found.totals))
    if found.donation is not None:
        click.echo(f"on donated nodes: {used_words(found.donation)}")
    if found.credits is not None:
        click.echo(credit_line(found.credits))
    if found.first_forecast is not None:
        print_lines(first_forecast_lines(found.first_forecast))
    if found.forecast_record is not None:
        print_lines(record_lines(found.forecast_record))
    print_lines(f"advice: {printable(line)}" for line in found.advice)


def advice(reader: Reader, bag: int) -> list[str]:
    """Advice on what to ask for next time: nothing with a key, nothing of free slots without a daemon."""
    if with_key():
        return []
    told = reader.get(api.GetAdvice(bag))
    if not reader.offline:
        return told.lines
    from adaptor.advice import advise

    return advise(told.measured, [])


def totals(sums: api.Totals) -> list[str]:
    """The sums in at most four lines."""
    share = f" ({100 * sums.used / sums.paid:.0f} %)" if sums.paid else ""
    requests = plural(sums.requests, "request") if sums.requests or not sums.donations else ""
    donations = plural(sums.donations, "donated node") if sums.donations else ""
    names = bags_words(sums.others) if sums.others else "other bags"
    others = [
        f", {figure} by {names}" if sums.used_by_others else ""
        for figure in (duration(sums.used_by_others), f"{sums.used_by_others:,.0f}")
    ]
    running = [
        f", {figure} of tasks that run" if sums.running else ""
        for figure in (duration(sums.running), f"{sums.running:,.0f}")
    ]
    lines = [
        f"{' and '.join(filter(None, (requests, donations)))}: paid {duration(sums.paid)} of processor time,"
        f" used {duration(sums.used)}{share}{others[0]}{running[0]}, wasted {duration(sums.wasted)}",
        f"in processor-seconds: paid {sums.paid:,.0f}, used {sums.used:,.0f}{others[1]}"
        f"{running[1]}, wasted {sums.wasted:,.0f}",
    ]
    if sums.gpu_paid:
        lines.append(f"paid {duration(sums.gpu_paid)} of GPU time ({sums.gpu_paid:,.0f} GPU-seconds)")
    results = [
        f"{word} result after {duration(seconds)}"
        for word, seconds in (("first", sums.first_result), ("last", sums.turnaround))
        if seconds is not None
    ]
    return [*lines, ", ".join(results)] if results else lines
