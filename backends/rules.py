"""From a site's configuration and its scheduler to the rules by which requests are shaped."""

from __future__ import annotations

from adaptor.config.policy import policy_of
from adaptor.config.schema import SiteConfig
from adaptor.crafting.situation import SiteRules
from adaptor.model import Limits
from backends.registry import backend_type
from backends.traits import Traits


def site_rules(config: SiteConfig, traits: Traits, limits: Limits, pad: float) -> SiteRules:
    """How requests are shaped at a site, live or simulated.

    `traits`: of its backend, or of its type; `pad`: seconds, as configured or as learned.
    """
    allowed = policy_of(config).keys
    return SiteRules(
        limits=limits,
        time_resolution=traits.time_resolution,
        slot_margin=traits.slot_margin,
        shrink_margin=traits.shrink_margin,
        pad=pad,
        granularity=(config.processors_per_node or 1) if config.whole_nodes else 1,
        max_submissions=_least(
            config.max_submissions or backend_type(config.backend).max_submissions, allowed.max_submissions
        ),
        max_withdrawals=_least(config.max_withdrawals, allowed.max_withdrawals),
        may_withdraw=config.withdraw,
        may_reshape=config.withdraw and traits.can_reshape,
    )


def _least(*bounds: int | None) -> int | None:
    """None: none of them bounds anything."""
    return min((bound for bound in bounds if bound is not None), default=None)
