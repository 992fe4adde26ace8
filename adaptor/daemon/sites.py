"""The sites of a configuration, with their backends and limits."""

from __future__ import annotations

from pathlib import Path

from adaptor.broker.books import SiteTerms
from adaptor.config import Config, SiteConfig
from adaptor.link.messages import LAST_SECONDS
from adaptor.link.state import private_directory
from adaptor.model import Limits
from backends.base import Backend, SchedulerError


def make_backend(name: str, config: SiteConfig, state: Path) -> Backend:
    match config.backend:
        case "local":
            from backends.local.backend import LocalBackend

            sites = private_directory(state / "sites")
            return LocalBackend(config, private_directory(sites / name))
        case "slurm":
            from backends.slurm.backend import SlurmBackend

            return SlurmBackend(config)


def make_backends(config: Config, state: Path) -> dict[str, Backend]:
    return {name: make_backend(name, site, state) for name, site in config.sites.items()}


def limits_of(config: SiteConfig, backend: Backend) -> Limits:
    """The configured limits; what is left out is asked of the scheduler.

    Raises:
        SchedulerError: something has to be asked, and the scheduler does not answer.
    """
    given = config.limits
    if None not in (given.max_pending_requests, given.max_proc, given.max_tr):
        advertised = Limits(max_pending_requests=0, max_proc=0, max_tr=0)
    else:
        try:
            advertised = backend.advertised_limits()
        except SchedulerError as error:
            raise SchedulerError(
                f"its limits cannot be asked: {error}; with limits.max_pending_requests, max_proc and max_tr "
                "in the configuration the daemon starts without asking"
            ) from error
    return Limits(
        max_pending_requests=given.max_pending_requests or advertised.max_pending_requests,
        max_proc=given.max_proc or advertised.max_proc,
        max_tr=int(given.max_tr or advertised.max_tr),
    )


def terms_of(config: SiteConfig, limits: Limits) -> SiteTerms:
    return SiteTerms(
        initial_tr=float(config.initial_tr),
        growth_factor=config.growth_factor,
        longest=max(1.0, limits.max_tr - float(config.pad)),
        last=min(float(config.grace_time), LAST_SECONDS),
    )
