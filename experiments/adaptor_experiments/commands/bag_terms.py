"""On which terms a bag is replayed: a site's configuration, and the options that come before it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import msgspec

from adaptor.config.loading import load_config
from adaptor.config.schema import SiteConfig, sites_of
from adaptor.errors import UsageError
from adaptor.units import parse_duration

if TYPE_CHECKING:
    from adaptor.crafting.heuristics import HeuristicName
    from adaptor.resources import TaskSize
    from adaptor.scheduling.state import SiteTerms
    from adaptor.simulation.grid_job import GridTerms, WorkerTerms
    from adaptor_experiments.commands.bag_cluster import BagCluster


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
    from adaptor.simulation.grid_job import GridTerms
    from adaptor.simulation.pilot_requests import empty
    from backends.ceilings import POLITE
    from backends.registry import backend_type
    from backends.rules import site_rules

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
    from adaptor.simulation.grid_job import WorkerTerms

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
