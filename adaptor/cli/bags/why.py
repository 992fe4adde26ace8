"""`adaptor why`: why requests were issued, held back, withdrawn or ended."""

from __future__ import annotations

import time
from typing import get_args

import click
import msgspec

from adaptor import api
from adaptor.cli.options import OneOf, json_option, selector_argument
from adaptor.cli.printing import clock, print_json, print_lines, printable
from adaptor.client.reading import Reader
from adaptor.errors import UsageError
from adaptor.units import format_offset, utc_offset

PAUSE = 1.0  # seconds between two looks of `--follow`
_MOST = 1000  # lines of one look


@click.command()
@selector_argument("[BAG]", required=False)
@click.option("--pilot", type=click.IntRange(min=0), metavar="N", help="Only lines about this pilot.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=OneOf(get_args(api.ExplanationKind)),
    metavar="KIND",
    help=f"Only lines of this kind; repeatable: `{'`, `'.join(get_args(api.ExplanationKind))}`.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    default=20,
    show_default=True,
    help="How many lines to show, at most.",
)
@click.option("--follow", is_flag=True, help="Go on with new lines, until Ctrl-C or the end of the bag.")
@json_option
def why(
    selector: str | None, pilot: int | None, kinds: tuple[str, ...], limit: int, follow: bool, as_json: bool
) -> None:
    """Explain decisions about a bag, a pilot, or all sites.

    \b
    Examples:
      adaptor why last
      adaptor why --pilot 12
      adaptor why --kind withheld --follow
    """
    if selector is not None and pilot is not None:
        raise UsageError("BAG and --pilot are mutually exclusive")
    if follow and as_json:
        raise UsageError("--json and --follow are mutually exclusive")
    reader = Reader(time.time)
    bag = reader.bag(selector).id if selector is not None else None
    question = api.GetWhy(bag, pilot, limit, list(kinds))
    told = reader.get(question)
    if as_json:
        print_json(told.lines)
        return
    _print(told.lines)
    if told.lines and (offset := utc_offset(time.time())) != told.offset:
        zones = f"{format_offset(told.offset)}; the first one of each line is yours, {format_offset(offset)}"
        click.echo(f"times within the reasons are those of the daemon, {zones}", err=True)
    if follow:
        _follow(reader, msgspec.structs.replace(question, limit=_MOST), told.last)
    elif not told.lines:
        click.echo("no decisions yet")


def _follow(reader: Reader, question: api.GetWhy, last: int) -> None:
    while True:
        # Asked before the lines: all that was decided up to the end of the bag is then among them.
        ended = question.bag is not None and reader.bag(str(question.bag)).state != "running"
        told = reader.get(msgspec.structs.replace(question, after=last))
        last = max(last, told.last)
        _print(told.lines)
        if ended:
            return
        time.sleep(PAUSE)


def _print(lines: list[api.Explanation]) -> None:
    for line in lines:
        subject = line.subject if line.subject != line.site else ""
        place = " ".join(filter(None, (line.site, subject)))
        parts = [place, line.kind] if not line.text.startswith(f"{subject} is {line.kind}") else []
        print_lines([f"{clock(line.time)} {': '.join([*filter(None, parts), printable(line.text)])}"])
