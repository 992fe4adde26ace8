"""The cluster that a replayed bag meets, and on which terms: a site's configuration, and the options."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import msgspec

from adaptor.config.loading import load_config
from adaptor.config.schema import SiteConfig, sites_of
from adaptor.errors import UsageError
from adaptor.units import parse_duration
from adaptor_simulation.cluster import Cluster, Policy, cluster_of_processors
from adaptor_simulation.files import TraceError
from adaptor_simulation.machine import Machine, lay_out, parse_machine
from adaptor_simulation.trace_run import load_jobs
from adaptor_simulation.traces.repairs import Choices

if TYPE_CHECKING:
    from adaptor.crafting.heuristics import HeuristicName
    from adaptor.resources import TaskSize
    from adaptor.scheduling.state import SiteTerms
    from adaptor_simulation.grid_job import GridTerms, WorkerTerms


class NodesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """As they were given, and found to go together."""

    nodes: str | None
    """None: the cluster counts processors."""
    memory: str | None
    chunk: int | None
    """Processors that a job has on one node; None: whole nodes."""
    profiles: tuple[bool, ...]
    """By replay, whether the planner sees the nodes; empty: it was not said."""


class BagCluster(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A cluster at the start of its trace."""

    name: str
    """Of the trace."""
    cluster: Cluster
    left_out: int = 0
    """Jobs that the nodes never hold."""

    @property
    def nodes(self) -> bool:
        """Whether jobs hold parts of nodes; else processors are all that is counted."""
        return self.cluster.machine.shown


def load_cluster(
    trace: Path,
    policy: Policy,
    processors: int | None,
    options: NodesOptions,
    choices: Choices,
    *,
    lenient: bool,
) -> BagCluster:
    """Raises TraceError, or UsageError where the options say no machine."""
    machine = _machine(options)
    size = machine.processors if machine else processors
    loaded = load_jobs(trace, processors=size, choices=choices, lenient=lenient)
    if machine is None:
        cluster = cluster_of_processors(loaded.jobs, loaded.processors, policy)
        return BagCluster(name=loaded.name, cluster=cluster)
    laid_out = lay_out(loaded.jobs, machine, options.chunk)
    if laid_out.left_out and choices.larger == "refuse":
        raise TraceError(f"{loaded.name}: the nodes never hold {laid_out.left_out:,} of its jobs")
    return BagCluster(name=loaded.name, cluster=Cluster(laid_out, policy), left_out=laid_out.left_out)


def _machine(options: NodesOptions) -> Machine | None:
    try:
        return parse_machine(options.nodes, options.memory) if options.nodes is not None else None
    except ValueError as error:
        raise UsageError(f"--nodes: {error}") from error


def terms_of_bag(
    loaded: BagCluster,
    task: TaskSize,
    *,
    site: Path | None = None,
    site_name: str | None = None,
    heuristic: str | None,
    max_pending: int | None,
    max_proc: int | None,
    max_tr: str | None,
) -> list[GridTerms]:
    from adaptor.crafting.fits import placeable
    from adaptor.daemon.sites import terms_of
    from adaptor.model import Limits
    from adaptor_simulation.grid_job import GridTerms
    from adaptor_simulation.pilot_requests import empty
    from backends.ceilings import POLITE
    from backends.registry import backend_type, site_rules

    config, jobs = _site(site, site_name), loaded.cluster.jobs
    longest = duration("--max-tr", max_tr) if max_tr else config.limits.max_tr or int(jobs.estimate.max())
    limits = Limits(
        max_pending_requests=max_pending or config.limits.max_pending_requests or POLITE,
        max_proc=max_proc or config.limits.max_proc or placeable(empty(loaded.cluster), task),
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
            initial_tr=msgspec.structs.replace(config, heuristic=name).assumed_runtime,
            growth_factor=config.growth_factor,
            task=task,
        )
        for name in _heuristics(heuristic or config.heuristic)
    ]


def _workers(terms: SiteTerms, config: SiteConfig) -> WorkerTerms:
    """How the daemon's workers behave at the site, in whole seconds."""
    from adaptor_simulation.grid_job import WorkerTerms

    return WorkerTerms(
        last=math.ceil(terms.last),
        idle_timeout=math.ceil(config.idle_timeout),
        latency=terms.latency,
        reserve=terms.reserve,
    )


def _heuristics(text: str) -> list[HeuristicName]:
    from adaptor.crafting.heuristics import HeuristicName

    known: tuple[HeuristicName, ...] = get_args(HeuristicName)
    wanted = [part.strip() for part in text.split(",")]
    unknown = [part for part in wanted if part not in known]
    if unknown:
        raise UsageError(f"--heuristic: {unknown[0]!r} is none of {', '.join(known)}")
    return [name for name in known if name in wanted]


def _site(path: Path | None, name: str | None) -> SiteConfig:
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


def duration(option: str, text: str) -> float:
    """Seconds of an option."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
