"""`adaptor trace`: info, from-sacct, fetch."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from adaptor.cli.command_groups import show_help
from adaptor.cli.options import json_option
from adaptor.cli.printing import print_figures
from adaptor.errors import UsageError
from adaptor.units import format_duration
from adaptor_experiments.commands.running import FILE, PROCESSORS, lenient_option, processors_option

if TYPE_CHECKING:
    from adaptor_simulation.traces.describe import Spread, TraceInfo


@click.group(invoke_without_command=True)
@click.pass_context
def trace(ctx: click.Context) -> None:
    """Look at workload traces (SWF), and make or fetch them."""
    show_help(ctx)


@trace.command()
@click.argument("file", type=FILE)
@processors_option
@lenient_option
@json_option
def info(file: Path, processors: int | None, lenient: bool, as_json: bool) -> None:
    """Describe the trace in FILE (.swf, .swf.gz or .swf.xz).

    \b
    Example:
      adaptor trace info CTC-SP2-1996-3.1-cln.swf.gz
    """
    from adaptor_simulation.traces.describe import describe
    from adaptor_simulation.traces.swf_read import read_trace

    found = describe(read_trace(file, lenient=lenient), processors)
    if as_json:
        print_figures(found)
        return
    for line in _lines(found):
        click.echo(line)


@trace.command("from-sacct", short_help="Make a trace of a cluster's own history.")
@click.argument("file", default="-", metavar="[FILE]")
@click.option(
    "-o", "--output", type=FILE, metavar="FILE", required=True, help="The trace; .gz and .xz compress."
)
@click.option("--processors", type=PROCESSORS, metavar="N", help="Of the cluster, for the header.")
@click.option("--zone", metavar="NAME", help="Of sacct's times, such as Europe/Berlin; else this machine's.")
def from_sacct(file: str, output: Path, processors: int | None, zone: str | None) -> None:
    """Make a trace of a cluster's own history, from sacct's output in FILE or on standard input.

    Users and groups become numbers; nothing of names, commands or folders is kept.

    \b
    Example:
      sacct -a -X -P -S 2026-01-01 -E now -o JobIDRaw,Submit,Start,End,ElapsedRaw,\\
        TimelimitRaw,AllocCPUS,ReqCPUS,State,User,Group,Partition,QOS |
        adaptor trace from-sacct -o site.swf.gz --processors 512
    """
    from adaptor_simulation.traces.sacct import from_sacct as convert
    from adaptor_simulation.traces.swf import write_trace

    made = convert(_text(file), zone=_zone(zone), processors=processors, name=file)
    write_trace(made, output)
    click.echo(f"{output}: {len(made):,} jobs; {'; '.join(made.header.notes)}")


@trace.command()
@click.argument("name")
@click.option("--folder", type=FILE, default=".", show_default=True, help="Where to put it.")
def fetch(name: str, folder: Path) -> None:
    """Download trace NAME from the Parallel Workloads Archive.

    \b
    Example:
      adaptor trace fetch sdsc-sp2
    """
    from adaptor_simulation.traces.archive import fetch_trace

    click.echo(str(fetch_trace(name, folder)))


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}") from error


def _zone(name: str | None) -> datetime.tzinfo | None:
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(name) if name else None
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(f"--zone {name}: no such time zone; write it as in Europe/Berlin") from None


def _lines(found: TraceInfo) -> list[str]:
    pairs = [
        ("trace", found.name),
        ("computer", ", ".join(filter(None, (found.computer, found.installation))) or "-"),
        ("begin", f"{found.begin or '-'} {found.time_zone or ''}".rstrip()),
        ("period", format_duration(found.period)),
        ("processors", f"{found.processors or '-'} ({found.processors_from})"),
        ("lines", f"{found.rows:,}, of which {found.usable_jobs:,} usable jobs of {found.users:,} users"),
        ("status", ", ".join(f"{name} {count:,}" for name, count in found.statuses.items()) or "-"),
        ("offered load", "-" if found.offered_load is None else f"{found.offered_load:.1%}"),
        ("largest gap", format_duration(found.largest_gap)),
        ("repeated numbers", f"{found.repeated_numbers:,}"),
        ("damaged lines", f"{found.skipped_lines:,} skipped"),
    ]
    lines = [f"{name:<18}{value}" for name, value in pairs]
    if found.spreads:
        lines += [
            "",
            "usable jobs                     min      25 %    median      75 %      95 %       max      mean",
        ]
    lines += [f"  {name:<24}" + _spread_cells(name, spread) for name, spread in found.spreads.items()]
    touched = {name: count for name, count in found.repairs.items() if count}
    lines += [
        "",
        "repairs when it is replayed:",
        *(f"  {name:<24}{count:>10,}" for name, count in touched.items()),
    ]
    return lines if touched else [*lines, "  none"]


def _spread_cells(name: str, spread: Spread) -> str:
    values = msgspec.structs.astuple(spread)
    return "".join(f"{_amount(name, value):>10}" for value in values)


def _amount(name: str, value: float) -> str:
    return f"{value:,.4g}" if name == "processors" else format_duration(round(value)).replace(" ", "")
