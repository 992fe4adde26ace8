"""The options of `adaptor replay bag` and `holes`: the bag, its queue, and the terms of a site."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from adaptor.cli.options import json_option, of_kind
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.errors import UsageError
from adaptor.option_kinds import MEMORY
from adaptor_experiments.commands.running import (
    FILE,
    MOST_PROCESSORS,
    PROCESSORS,
    choices_option,
    duration_option,
    lenient_option,
    list_option,
    processors_option,
    scheduler_option,
    seed_option,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from adaptor.config.schema import SiteConfig
    from adaptor.crafting.heuristics import HeuristicName
    from adaptor.resources import TaskSize
    from adaptor_simulation.cluster import Cluster
    from adaptor_simulation.grid_job import GridTerms

PROFILES = {False: "processors", True: "nodes"}  # what the planner sees, by `GridTerms.sees_nodes`


class AskedBag(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A bag and the queue that it meets."""

    cluster: Cluster
    """At the start of the trace."""
    left_out: int
    """Jobs of the trace that the nodes never hold."""
    task: TaskSize
    runtimes: npt.NDArray[np.int64]
    seed: int
    trace: str
    title: str
    """Title of the bag and its trace."""

    @property
    def nodes(self) -> bool:
        """Whether jobs hold parts of nodes; else processors are all that is counted."""
        return self.cluster.machine.shown


def _chunk(_ctx: click.Context, _param: click.Parameter, text: str) -> int | None:
    """Processors; None: whole nodes."""
    if text == "node":
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:20]) <= MOST_PROCESSORS:
        raise UsageError(f"--chunk: {text[:40]!r} is neither a number of processors nor 'node'")
    return int(text)


_OPTIONS = (
    click.option("--trace", type=FILE, required=True, metavar="FILE", help="The queue: a trace (SWF)."),
    click.option("--tasks", type=click.IntRange(1, 10**7), required=True, metavar="N", help="Of the bag."),
    click.option(
        "--task-time", required=True, metavar="TIME", help="10m, uniform(5m, 15m), lognormal(10m, 1)…"
    ),
    click.option("--cpus", type=PROCESSORS, default=1, show_default=True, metavar="N", help="Of each task."),
    click.option("--mem", type=of_kind(MEMORY), metavar="SIZE", help="Of each task, such as 4G."),
    scheduler_option,
    processors_option,
    click.option("--nodes", metavar="SPEC", help="The machine as nodes: 128x4, or 100x32:64G+10x64:256G."),
    click.option("--node-memory", metavar="SIZE", help="Of nodes without one in SPEC, such as 16G."),
    click.option(
        "--chunk",
        metavar="N",
        default="1",
        show_default=True,
        callback=_chunk,
        help="Processors of a job on one node, or 'node'.",
    ),
    list_option("--profile", "profile", tuple(PROFILES.values()), "What the planner sees"),
    lenient_option,
    choices_option,
    click.option(
        "--max-pending",
        type=click.IntRange(1, 10**4),
        metavar="N",
        help="Requests in the system, in place of the site's limit.",
    ),
    click.option("--max-proc", type=PROCESSORS, metavar="N", help="Of a request, likewise."),
    duration_option("--max-tr", "Of a request, likewise."),
    seed_option,
    json_option,
)


def bag_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The parameters `asked`, of type `AskedBag`, `profiles`, `as_json`, and the limits by name.

    `profiles`: by replay, whether the planner sees the nodes; empty: it was not said.
    """

    @functools.wraps(command)
    def with_bag(
        *,
        trace: Path,
        tasks: int,
        task_time: str,
        cpus: int,
        mem: int | None,
        profile: tuple[str, ...] | None,
        seed: int,
        **others: Any,
    ) -> Any:
        from adaptor.resources import TaskSize
        from adaptor_simulation.distributions import draw_runtimes

        machine = {
            name: others.pop(name)
            for name in ("scheduler", "processors", "nodes", "node_memory", "chunk", "lenient", "choices")
        }
        given = {"--node-memory": machine["node_memory"], "--profile": profile}
        given["--chunk"] = machine["chunk"] != 1 or None
        for flag, value in given.items():
            if machine["nodes"] is None and value is not None:
                raise UsageError(f"{flag} means nothing without --nodes")
        if machine["nodes"] is not None and machine["processors"] is not None:
            raise UsageError("--nodes and --processors both say how large the machine is; say one of them")
        cluster, left_out = load_cluster(trace, **machine)
        asked = AskedBag(
            cluster=cluster,
            left_out=left_out,
            task=TaskSize(processors=cpus, memory=mem),
            runtimes=draw_runtimes(task_time, tasks, seed),
            seed=seed,
            trace=trace.name,
            title=f"{tasks:,} tasks of {task_time} on {trace.name}",
        )
        profiles = tuple(sees for sees, name in PROFILES.items() if name in (profile or ()))
        return command(asked=asked, profiles=profiles, **others)

    for option in reversed(_OPTIONS):
        with_bag = option(with_bag)
    return with_bag


def load_cluster(
    trace: Path,
    *,
    scheduler: Any = "conservative",
    processors: int | None = None,
    nodes: str | None = None,
    node_memory: str | None = None,
    chunk: int | None = 1,
    lenient: bool = False,
    choices: Any = None,
) -> tuple[Cluster, int]:
    """The cluster at the start of a trace, and the number of jobs that its nodes never hold.

    Args:
        processors: None: as the header says.
        nodes: None: the cluster counts processors.
        chunk: processors of a job on one node; None: whole nodes.

    Raises:
        TraceError: the trace is at fault.
        UsageError: `nodes` says no machine.
    """
    from adaptor_simulation.cluster import Cluster, cluster_of_processors
    from adaptor_simulation.files import TraceError
    from adaptor_simulation.machine import lay_out, parse_machine
    from adaptor_simulation.trace_run import load_jobs
    from adaptor_simulation.traces.repairs import Choices

    choices = choices or Choices()
    try:
        machine = None if nodes is None else parse_machine(nodes, node_memory)
    except ValueError as error:
        raise UsageError(f"--nodes: {error}") from error
    size = machine.processors if machine else processors
    loaded = load_jobs(trace, processors=size, choices=choices, lenient=lenient)
    if machine is None:
        return cluster_of_processors(loaded.jobs, loaded.processors, scheduler), 0
    laid_out = lay_out(loaded.jobs, machine, chunk)
    if laid_out.left_out and choices.larger == "refuse":
        raise TraceError(f"{loaded.name}: the nodes never hold {laid_out.left_out:,} of its jobs")
    return Cluster(laid_out, scheduler), laid_out.left_out


site_options = (
    click.option("--site", type=FILE, metavar="YAML", help="Limits, heuristic, pad and so on of a site."),
    click.option("--site-name", metavar="NAME", help="Which site of it, where it has several."),
    list_option("--heuristic", "heuristics", tuple(HEURISTICS), "Instead of the site's"),
)


def terms_of_bag(
    cluster: Cluster,
    task: TaskSize,
    *,
    site: Path | None = None,
    site_name: str | None = None,
    heuristics: tuple[HeuristicName, ...] | None = None,
    max_pending: int | None = None,
    max_proc: int | None = None,
    max_tr: float | None = None,
) -> list[GridTerms]:
    """By heuristic. What neither an option nor the site says is as large as the machine and its jobs."""
    from adaptor.crafting.fits import placeable
    from adaptor.daemon.sites import terms_of
    from adaptor.model import Limits
    from adaptor_simulation.grid_job import GridTerms, WorkerTerms
    from adaptor_simulation.pilot_requests import empty
    from backends.ceilings import POLITE
    from backends.registry import backend_type, site_rules

    config = _site(site, site_name)
    limits = Limits(
        max_pending_requests=max_pending or config.limits.max_pending_requests or POLITE,
        max_proc=max_proc or config.limits.max_proc or placeable(empty(cluster), task),
        max_tr=math.floor(max_tr or config.limits.max_tr or int(cluster.jobs.estimate.max())),
    )
    terms = terms_of(config, limits)
    workers = WorkerTerms(  # how the daemon's workers behave at the site, in whole seconds
        last=math.ceil(terms.last),
        idle_timeout=math.ceil(config.idle_timeout),
        latency=terms.latency,
        reserve=terms.reserve,
    )
    pad = max(float(config.pad), workers.last)  # the daemon learns no less with the first pilot
    return [
        GridTerms(
            rules=site_rules(config, backend_type(config.backend), limits, pad),
            heuristic=name,
            workers=workers,
            initial_tr=msgspec.structs.replace(config, heuristic=name).assumed_runtime,
            growth_factor=config.growth_factor,
            task=task,
        )
        for name in heuristics or (config.heuristic,)
    ]


def _site(path: Path | None, name: str | None) -> SiteConfig:
    from adaptor.config.loading import load_config
    from adaptor.config.schema import SiteConfig, sites_of

    if path is None:
        return SiteConfig(backend="local")
    sites = {
        f"{site}/{partition}" if partition else site: alone
        for site, config in load_config(path).sites.items()
        for partition, alone in sites_of(config).items()
    }
    if name is None and len(sites) > 1:
        raise UsageError(f"{path}: which of its sites? Say --site-name: {', '.join(sites)}")
    chosen = sites.get(name if name is not None else next(iter(sites), ""))
    if chosen is None:
        raise UsageError(f"{path}: no site {name!r}; there are {', '.join(sites)}")
    return chosen
