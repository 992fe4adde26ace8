"""The sites of a configuration, with their backends and limits, and what their decisions go by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from adaptor.config.policy import capped, policy_of
from adaptor.config.schema import Config, LimitsConfig, SiteConfig, sites_of
from adaptor.crafting.heuristics import HEURISTICS
from adaptor.crafting.situation import SiteRules
from adaptor.daemon.remote.machines import make_machine, python_of
from adaptor.daemon.spool import latency_of
from adaptor.decisions.site_settings import DonationSettings, SiteSettings
from adaptor.model import Limits
from adaptor.protocol.messages import LAST_SECONDS
from adaptor.scheduling.state import SiteTerms
from backends.base import Backend, SchedulerError
from backends.local.backend_type import LOCAL, folder_of
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.partitions import Partitions, most_of
from backends.registry import agents, backend_type, site_rules


def make_backend(name: str, config: SiteConfig, state: Path, machine: Machine | None = None) -> Backend:
    """The site's scheduler, with agents on its idle nodes if the configuration donates them so."""
    machine = machine or make_machine(config)
    kind = backend_type(config.backend)
    if config.partitions:
        scheduler: Backend = Partitions(kind.make_each(name, sites_of(config), state, machine))
    else:
        scheduler = kind.make(name, config, state, machine)
    if config.donation is None or config.donation.mode != "agent":
        return scheduler
    # Absolute here, below the home directory on a distant machine.
    folder = (state if config.ssh is None else Path(config.ssh.directory)) / "agents" / name
    return agents()(scheduler, config, config.donation, folder, python_of(config), machine)


def make_backends(config: Config, state: Path, machines: Mapping[str, Machine]) -> dict[str, Backend]:
    return {name: make_backend(name, site, state, machines[name]) for name, site in config.sites.items()}


def former_local_site(name: str, state: Path) -> Backend | None:
    """The local site that an earlier configuration had by this name; None: it had none."""
    if not folder_of(name, state).is_dir():
        return None
    return LOCAL.make(name, SiteConfig(backend="local"), state, HERE)


def stays_inside(config: SiteConfig) -> bool:
    """Whether no worker of the site comes to this machine from outside."""
    return config.ssh is not None or backend_type(config.backend).on_this_machine


def first_limits(config: Config, backends: Mapping[str, Backend]) -> dict[str, Limits]:
    """Limits of the sites whose limits are known at the start; the others are asked again (`late_limits`).

    Raises SchedulerError: no site's limits are known.
    """
    known: dict[str, Limits] = {}
    problems: list[str] = []
    for name, backend in backends.items():
        try:
            known[name] = limits_of(config.sites[name], backend)
        except SchedulerError as error:
            problems.append(f"{name}: {error}")
    if not known:
        raise SchedulerError("; ".join(problems))
    return known


def limits_of(config: SiteConfig, backend: Backend) -> Limits:
    """The configured limits; what is left out is asked of the scheduler, and kept within the policy.

    Raises SchedulerError: something has to be asked, and the scheduler does not answer.
    """
    given = {name: site.limits for name, site in sites_of(config).items()}
    advertised = Limits(max_pending_requests=0, max_proc=0, max_tr=0)
    if any(None in (each.max_pending_requests, each.max_proc, each.max_tr) for each in given.values()):
        try:
            advertised = backend.advertised_limits()
        except SchedulerError as error:
            raise SchedulerError(
                f"its limits are unknown: {error} (or set limits.max_pending_requests, max_proc and max_tr "
                "in the configuration)"
            ) from error
    each = {
        name: _filled(limits, advertised.partitions.get(name, advertised)) for name, limits in given.items()
    }
    found = each.get("") or msgspec.structs.replace(
        most_of(each),
        max_pending_requests=_all(config, each, "max_pending_requests"),
        max_pilots=_all(config, each, "max_pilots"),
    )
    return capped(
        found if HEURISTICS[config.heuristic].narrow else _wide(found), policy_of(config).keys.limits
    )


def _wide(limits: Limits) -> Limits:
    """The limits for a heuristic that makes few wide requests."""
    partitions = {name: _wide(each) for name, each in limits.partitions.items()}
    return msgspec.structs.replace(limits, max_pilots=0, partitions=partitions)


def _filled(given: LimitsConfig, advertised: Limits) -> Limits:
    pilots = given.max_pilots or (0 if given.max_pending_requests else advertised.max_pilots)
    return Limits(
        max_pending_requests=given.max_pending_requests or advertised.max_pending_requests,
        max_pilots=pilots,
        max_proc=given.max_proc or advertised.max_proc,
        max_tr=int(given.max_tr or advertised.max_tr),
    )


def _all(config: SiteConfig, limits: Mapping[str, Limits], key: str) -> int:
    """The limit that all partitions share; partitions with limits of their own add these where the site does
    not say."""
    if given := getattr(config.limits, key):
        return int(given)
    own: dict[str, int] = {name: getattr(each.limits, key) or 0 for name, each in config.partitions.items()}
    shared: list[int] = [getattr(each, key) for name, each in limits.items() if not own[name]]
    return sum(own.values()) + max(shared, default=0)


def terms_of(config: SiteConfig, limits: Limits) -> SiteTerms:
    return SiteTerms(
        initial_tr=config.assumed_runtime,
        growth_factor=config.growth_factor,
        longest=SiteRules(limits=limits, pad=float(config.pad)).longest_task,
        last=min(float(config.grace_time), LAST_SECONDS),
        latency=latency_of(config),
        donation=config.donation.rules() if config.donation else None,
        remember=config.remember,
        even_odds=HEURISTICS[config.heuristic].even_odds,
    )


def settings_of(name: str, config: SiteConfig, backend: Backend, limits: Limits, poll: float) -> SiteSettings:
    """`limits` as configured or asked, `poll` in seconds."""
    return SiteSettings(
        name=name,
        rules=site_rules(config, backend, limits, float(config.pad)),
        heuristic=config.heuristic,
        command_timeout=float(config.command_timeout),
        poll=poll,
        idle_timeout=float(config.idle_timeout),
        donation=_donation(config),
    )


def _donation(config: SiteConfig) -> DonationSettings | None:
    donation = config.donation
    if donation is None:
        return None
    return DonationSettings(
        rules=donation.rules(),
        preemptible=donation.mode == "preemptible",
        max_tr=float(donation.max_tr) if donation.max_tr else None,
    )


_UNBOUNDED = 10**9


def unknown_limits(config: SiteConfig) -> Limits:
    """Stand for limits that could not be asked yet."""
    given = config.limits
    return Limits(
        max_pending_requests=0, max_proc=given.max_proc or _UNBOUNDED, max_tr=int(given.max_tr or _UNBOUNDED)
    )
