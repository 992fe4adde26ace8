"""`adaptor replay bag`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from adaptor.cli.json_output import print_figures
from adaptor.cli.options import json_option
from adaptor.cli.research.running import seed_option
from adaptor.cli.research.trace_options import (
    FILE,
    PROCESSORS,
    choices_option,
    lenient_option,
    processors_option,
    scheduler_option,
)
from adaptor.config.loading import load_config
from adaptor.config.schema import SiteConfig
from adaptor.errors import UsageError
from adaptor.units import format_duration, parse_duration

if TYPE_CHECKING:
    from adaptor.scheduling.state import SiteTerms
    from adaptor.simulation.grid_job import GridTerms, WorkerTerms
    from adaptor.simulation.jobs import Jobs
    from adaptor.simulation.trace_run import LoadedTrace
    from adaptor.simulation.traces.repairs import Choices
    from adaptor.simulation.what_if import WhatIf

HEURISTICS: tuple[Literal["static", "adaptive"], ...] = ("static", "adaptive")

_TITLES = (
    "turnaround",
    "not possible in less than",
    "requests",
    "processor-hours used",
    "processor-hours wasted",
    "local jobs still to start",
    "  mean wait without us",
    "  mean wait with us",
    "  start later",
    "  start earlier",
)


@click.command(short_help="Ask what a bag would meet on the queue of a trace.")
@click.option("--trace", type=FILE, required=True, metavar="FILE", help="The queue: a trace (SWF).")
@click.option("--site", type=FILE, metavar="YAML", help="Limits, heuristic, pad and so on of a site.")
@click.option("--site-name", metavar="NAME", help="Which site of it, where it has several.")
@click.option("--tasks", type=click.IntRange(1, 10**7), required=True, metavar="N", help="Of the bag.")
@click.option("--task-time", required=True, metavar="TIME", help="10m, uniform(5m, 15m), lognormal(10m, 1)…")
@click.option("--at", metavar="TIME", help="Since the start of the trace.  [default: in the middle]")
@click.option("--heuristic", metavar="LIST", help="static, adaptive or both.  [default: the site's]")
@scheduler_option
@processors_option
@lenient_option
@choices_option
@click.option(
    "--max-pending", type=click.IntRange(1, 10**4), metavar="N", help="In place of the site's limit."
)
@click.option("--max-proc", type=PROCESSORS, metavar="N", help="In place of the site's limit.")
@click.option("--max-tr", metavar="TIME", help="In place of the site's limit.")
@seed_option
@click.option("--gantt", type=FILE, metavar="PNG", help="Draw the pilots in the holes (.png, .svg, .pdf).")
@json_option
def bag(
    trace: Path,
    tasks: int,
    task_time: str,
    at: str | None,
    scheduler: Any,
    processors: int | None,
    lenient: bool,
    choices: Choices,
    seed: int,
    gantt: Path | None,
    as_json: bool,
    **terms: Any,
) -> None:
    """Ask what a bag would meet on the queue of a trace, and what that queue would meet.

    Where neither the site nor an option sets a limit, one request may have the whole machine for the
    longest time that a job of the trace asked for, and 4 requests may be in the system.

    \b
    Example:
      adaptor replay bag --trace site.swf.gz --tasks 1000 --task-time 'lognormal(10m, 0.8)' \\
        --heuristic static,adaptive --gantt bag.png
    """
    from adaptor.extras import require_extra

    if gantt:
        require_extra("matplotlib")
    from adaptor.simulation.distributions import draw_runtimes
    from adaptor.simulation.trace_run import load_jobs
    from adaptor.simulation.what_if import what_if

    loaded = load_jobs(trace, processors=processors, choices=choices, lenient=lenient)
    runtimes = draw_runtimes(task_time, tasks, seed)
    every = _terms(loaded.jobs, loaded.processors, **terms)
    begin = _instant(at, loaded)
    found = what_if(loaded.jobs, loaded.processors, scheduler, begin, runtimes, every)
    if gantt:
        from adaptor.figures.gantt import draw_gantt

        title = f"{tasks:,} tasks of {task_time} on {trace.name}, submitted at {format_duration(begin)}"
        draw_gantt(loaded.jobs, loaded.processors, found, title, gantt)
    _show(found, as_json)


def _instant(at: str | None, loaded: LoadedTrace) -> int:
    """The second of the trace at which the bag is submitted, while there are local jobs."""
    jobs = loaded.jobs
    first, last = int(jobs.submit[0]), int((jobs.submit + jobs.run).max())
    if at is None:
        return (first + int(jobs.submit[-1])) // 2
    wanted = _duration("--at", at)
    if not first <= wanted <= last:
        raise UsageError(
            f"--at {at}: the jobs of {loaded.name} come and run from {format_duration(first)} to"
            f" {format_duration(last)}; say a time in between"
        )
    return round(wanted)


def _duration(option: str, text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def _terms(
    jobs: Jobs,
    processors: int,
    site: Path | None,
    site_name: str | None,
    heuristic: str | None,
    max_pending: int | None,
    max_proc: int | None,
    max_tr: str | None,
) -> list[GridTerms]:
    from adaptor.daemon.sites import terms_of
    from adaptor.model import Limits
    from adaptor.simulation.grid_job import GridTerms
    from backends.ceilings import POLITE
    from backends.registry import backend_type
    from backends.rules import site_rules

    config = _site(site, site_name)
    longest = _duration("--max-tr", max_tr) if max_tr else config.limits.max_tr or int(jobs.estimate.max())
    limits = Limits(
        max_pending_requests=max_pending or config.limits.max_pending_requests or POLITE,
        max_proc=max_proc or config.limits.max_proc or processors,
        max_tr=math.floor(longest),
    )
    workers = _workers(terms_of(config, limits), config)
    pad = max(float(config.pad), workers.last)  # the daemon learns no less with the first pilot
    rules = site_rules(config, backend_type(config.backend), limits, pad)
    return [
        GridTerms(
            rules=rules,
            heuristic=name,
            workers=workers,
            initial_tr=float(config.initial_tr),
            growth_factor=config.growth_factor,
        )
        for name in _heuristics(heuristic or config.heuristic)
    ]


def _workers(terms: SiteTerms, config: SiteConfig) -> WorkerTerms:
    """How the daemon's workers behave at the site, in whole seconds."""
    from adaptor.simulation.grid_job import WorkerTerms

    return WorkerTerms(
        last=math.ceil(terms.last),
        idle_timeout=math.ceil(config.idle_timeout),
        latency=terms.latency,
        reserve=terms.reserve,
    )


def _heuristics(text: str) -> list[Literal["static", "adaptive"]]:
    wanted = [part.strip() for part in text.split(",")]
    unknown = [part for part in wanted if part not in HEURISTICS]
    if unknown:
        raise UsageError(f"--heuristic: {unknown[0]!r} is none of {', '.join(HEURISTICS)}")
    return [name for name in HEURISTICS if name in wanted]


def _site(path: Path | None, name: str | None) -> SiteConfig:
    if path is None:
        return SiteConfig(backend="local")
    sites = load_config(path).sites
    if name is None and len(sites) > 1:
        raise UsageError(f"{path}: which of its sites? Say --site-name: {', '.join(sites)}")
    chosen = sites.get(name if name is not None else next(iter(sites), ""))
    if chosen is None:
        raise UsageError(f"{path}: no site {name!r}; there are {', '.join(sites)}")
    return chosen


def _show(found: list[WhatIf], as_json: bool) -> None:
    if as_json:
        told = [_figures(each) | {"requests": each.result.requests} for each in found]
        print_figures(told)
        return
    from adaptor.cli.table import layout

    columns = [_TITLES, *(_texts(each) for each in found)]
    for line in layout(["", *(each.heuristic for each in found)], list(zip(*columns, strict=True))):
        click.echo(line)


def _figures(found: WhatIf) -> dict[str, Any]:
    result = found.result
    return {
        "heuristic": found.heuristic,
        "submitted": result.submitted,
        "turnaround": result.turnaround,
        "bound": found.bound,
        "processor_seconds_used": result.work,
        "processor_seconds_wasted": result.wasted,
        "local_jobs": found.waits,
    }


def _texts(found: WhatIf) -> list[str]:
    result, waits = found.result, found.waits
    asked = sum(request.started is not None for request in result.requests)
    return [
        format_duration(result.turnaround),
        f"{format_duration(found.bound)} ({result.turnaround / found.bound:.2f} times as long)",
        f"{asked} run, {len(result.requests) - asked} withdrawn",
        f"{result.work / 3600:,.1f}",
        f"{result.wasted / 3600:,.1f} ({result.wasted / max(1, result.held):.0%} of what was held)",
        f"{waits.jobs:,}",
        format_duration(waits.mean_without),
        format_duration(waits.mean_with),
        f"{waits.delayed:,}, by {format_duration(waits.largest_delay)} at most",
        f"{waits.advanced:,}",
    ]
