"""`adaptor when`: when any request would start, and when a job does that waits."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence

import click

from adaptor import api
from adaptor.cli.options import config_option, json_option, of_kind
from adaptor.cli.printing import clock, duration, plural, print_json, print_lines, printable
from adaptor.cli.sentences import interval
from adaptor.client.when import read
from adaptor.errors import UsageError
from adaptor.forecast.asked import AskedRequest
from adaptor.model import Estimate
from adaptor.option_kinds import DURATION, GPUS, INSTANT, MEMORY
from adaptor.resources import TaskGpus
from adaptor.units import round_up


@click.command(short_help="Show when any request would start; needs no bag.")
@click.option("-p", "--processors", type=click.IntRange(1), metavar="N", help="Processors in all.")
@click.option("-t", "--time", "tr", type=of_kind(DURATION), metavar="DURATION", help="Walltime.")
@click.option("--nodes", type=click.IntRange(1), metavar="N", help="Nodes; without -p, whole ones.")
@click.option("--mem", type=of_kind(MEMORY), metavar="SIZE", help="Memory of each node, such as 8G.")
@click.option("--gpus", type=of_kind(GPUS), metavar="[TYPE:]N", help="GPUs of each node: 1 or a100:2.")
@click.option("--job", default="", metavar="ID", help="A job that waits, instead of a request.")
@click.option("--map", "as_map", is_flag=True, help="The wait of all sizes and walltimes, as a heat map.")
@click.option("--site", default="", metavar="NAME", help="Ask only here (default: all sites).")
@click.option("--partition", default="", metavar="NAME", help="Ask only there (default: all of a site).")
@click.option("--at", metavar="TIME", help="When it is submitted: tomorrow, 12h, or 2026-11-22T08:00.")
@config_option
@json_option
def when(
    processors: int | None,
    tr: float | None,
    nodes: int | None,
    mem: int | None,
    gpus: TaskGpus | None,
    job: str,
    as_map: bool,
    site: str,
    partition: str,
    at: str | None,
    config: str | None,
    as_json: bool,
) -> int:
    """Show when a request would start, with an interval that holds in 90 % of cases.

    The request may be of any program. The command submits nothing and needs no bag. It says what a
    shorter or narrower request would gain, what starts before it, and how earlier predictions held. It
    reads the queue now, through the daemon if one runs; without a configuration, that of the scheduler
    here. Exit code 1: a queue could not be read; 2: no such request can ever start.

    \b
    Examples:
      adaptor when -p 64 -t 3h
      adaptor when --nodes 2 -t 1h --gpus a100:2 --at tomorrow
      adaptor when --job 4711
      adaptor when --map
    """
    instant: float | None = None
    if at is not None:
        try:
            instant = INSTANT.parse(at, time.time())
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--at") from None
    if as_map and (job or any(each is not None for each in (processors, tr, nodes, mem, gpus))):
        raise UsageError(
            "--map is of all processors and walltimes; leave out -p, -t, --nodes, --mem, --gpus, --job"
        )
    question = api.GetStart(
        request=None if job or as_map else _request(processors, tr, nodes, mem, gpus),
        job=job,
        map=as_map,
        site=site,
        partition=partition,
        at=instant,
    )
    told = "adaptor: no daemon is running; reading the queue from here"
    found = read(question, config, offline=lambda: click.echo(told, err=True))
    if as_json:
        print_json(found)
    elif as_map:
        print_lines(map_lines(found))
    else:
        print_lines(start_lines(found))
    return int(any(view.problem for view in found))


def _request(
    processors: int | None, tr: float | None, nodes: int | None, mem: int | None, gpus: TaskGpus | None
) -> AskedRequest:
    if tr is None:
        raise UsageError("say how long it may run, such as -t 3h; or name a job that waits: --job ID")
    if gpus is not None and gpus.count != int(gpus.count):
        raise UsageError("a request has whole GPUs; write --gpus 1")
    return AskedRequest(
        tr=tr,
        processors=processors,
        nodes=nodes,
        memory=mem,
        gpus=int(gpus.count) if gpus else 0,
        gpu_type=gpus.type if gpus else "",
    )


_SOON = 120.0  # seconds within which a start is at once


def start_lines(found: Sequence[api.StartView]) -> Iterator[str]:
    """The earliest place in full, a line for each of the others."""
    for number, view in enumerate(found):
        yield f"{view.place}: {_answer(view)}"
        if number == 0 and view.start is not None:
            yield from (f"  {line}" for line in _details(view))


def _answer(view: api.StartView) -> str:
    if view.problem:
        return printable(view.problem)
    if view.never:
        return f"never: {printable(view.never)}"
    if view.standing in ("running", "ended"):
        if view.standing == "ended":
            return f"job {view.job} has ended"
        if view.started is None:
            return f"job {view.job} runs"
        return f"job {view.job} has run since {clock(view.started, view.observed)}"
    what = f"job {view.job}" if view.job else _request_words(view.processors or 0, view.tr or 0.0)
    if view.start is None:
        return f"{what}: no start can be foreseen: {printable(view.reason)}"
    return f"{what} {'starts' if view.job else 'would start'} {_start(view.start, view)}"


def _request_words(processors: int, tr: float) -> str:
    return f"{plural(processors, 'processor')} for {duration(tr)}"


def _start(start: Estimate, view: api.StartView) -> str:
    """`now`, or `about 14:10 (13:40 to 15:25)`."""
    now = view.observed or 0.0
    at = max(now, view.at or now)
    if start.value > at + 1:
        return f"about {interval(start, now)}"
    at_once = "now" if at <= now + 1 else f"at once, at {clock(at, now)}"
    return at_once if start.high - at < _SOON else f"{at_once} (or by {clock(start.high, now)[:5]})"


def _details(view: api.StartView) -> Iterator[str]:
    now = view.observed
    if view.reason:
        yield f"because {printable(view.reason)}"
    if view.scheduler is not None:
        yield f"the scheduler's own estimate: {clock(view.scheduler, now)}"
    if view.choices:
        choices = (
            f"{_request_words(each.processors, each.tr)}: {_start(each.start, view)}" for each in view.choices
        )
        yield f"sooner: {'; '.join(choices)}"
    if view.planned is not None and view.start is not None and view.planned > view.start.value + 1:
        yield f"if all jobs run to their limits: {clock(view.planned, now)}"
    yield f"record: {record_words(view.record)}"
    if view.remarks:
        yield f"not known: {'; '.join(map(printable, view.remarks))}"


def record_words(record: api.StartRecord | None) -> str:
    """`18 of 20 jobs started within their intervals, the median 2m off`."""
    if record is None:
        return "too little known: fewer than 5 starts were seen here"
    if record.own:
        started = (
            f"{record.held} of {plural(record.starts, 'request')} of yours started within 10m of their plan"
        )
    else:
        started = f"{record.held} of {plural(record.starts, 'job')} started within their intervals"
    known = "" if record.right else "too little known yet: "
    return f"{known}{started}, the median {duration(record.error)} off"


# --- the heat map -----------------------------------------------------------------------------------

_SHADES = (
    (60.0, "1m", 157, 16),
    (600.0, "10m", 114, 16),
    (3600.0, "1h", 228, 16),
    (6 * 3600.0, "6h", 215, 16),
    (86400.0, "1d", 203, 16),
    (math.inf, "longer", 88, 231),
)
"""The longest wait in seconds, its name, and the colours of the terminal's 256 behind and of the text."""


def map_lines(found: Sequence[api.StartView]) -> Iterator[str]:
    """A table for each place: walltimes down, processors across, the expected wait in each cell."""
    for view in found:
        if view.map is None:
            yield f"{view.place}: {printable(view.problem or view.reason)}"
            continue
        yield f"{view.place}: wait by processors and walltime, read at {clock(view.observed, view.observed)}"
        yield from _table(view, view.map)
        yield f"  record: {record_words(view.record)}"
        if view.remarks:
            yield f"  not known: {'; '.join(map(printable, view.remarks))}"
    if any(view.map is not None for view in found):
        shades = (_shaded(f" {name} ", shade) for shade, (_, name, *_) in enumerate(_SHADES))
        yield f"wait up to {' '.join(shades)}; -: never, or no start can be foreseen"


def _table(view: api.StartView, drawn: api.StartMap) -> Iterator[str]:
    at = max(view.observed or 0.0, view.at or 0.0)
    heads = [f"{each:,}" for each in drawn.processors]
    cells = [[_wait(start, at) for start in row] for row in drawn.starts]
    width = 2 + max(len(text) for text in (*heads, *(text for row in cells for text, _ in row)))
    names = [duration(each) for each in drawn.walltimes]
    first = 2 + max(map(len, names))
    yield " " * first + "".join(text.rjust(width - 1) + " " for text in heads)
    for name, row in zip(names, cells, strict=True):
        shaded = (text.rjust(width - 1) + " " for text, _ in row)
        shades = (shade for _, shade in row)
        yield name.rjust(first - 1) + " " + "".join(map(_shaded, shaded, shades))


def _wait(start: Estimate | None, at: float) -> tuple[str, int | None]:
    """The expected wait, and the place of its shade."""
    if start is None:
        return "-", None
    wait = start.value - at
    shade = next(place for place, (most, *_) in enumerate(_SHADES) if wait <= most)
    return "now" if wait <= 1 else duration(float(round_up(wait, 60 if wait >= 60 else 1))), shade


def _shaded(text: str, shade: int | None) -> str:
    """`$NO_COLOR` is honoured, and click drops colours off a terminal."""
    if shade is None or os.environ.get("NO_COLOR"):
        return text
    *_, behind, front = _SHADES[shade]
    return click.style(text, bg=behind, fg=front)
