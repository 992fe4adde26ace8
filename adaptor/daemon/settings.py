"""From the configuration of a site to what its decisions go by."""

from __future__ import annotations

from adaptor.config.schema import SiteConfig
from adaptor.decisions.site_memory import DonationSettings, SiteSettings
from adaptor.model import Limits
from backends.base import Backend
from backends.rules import site_rules


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
