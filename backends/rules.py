"""From a site's configuration and its scheduler to the rules by which requests are shaped."""

from __future__ import annotations

from typing import Protocol

from adaptor.config.schema import SiteConfig
from adaptor.crafting.situation import SiteRules
from adaptor.model import Limits
from backends.registry import backend_type


class Margins(Protocol):
    """A `Backend`, which may have learned them from its scheduler, or a `BackendType`."""

    @property
    def time_resolution(self) -> int: ...
    @property
    def slot_margin(self) -> int: ...
    @property
    def shrink_margin(self) -> int | None: ...
    @property
    def can_reshape(self) -> bool: ...


def site_rules(config: SiteConfig, margins: Margins, limits: Limits, pad: float) -> SiteRules:
    """How requests are shaped at a site, live or simulated; `pad` in seconds, as configured or as learned."""
    return SiteRules(
        limits=limits,
        time_resolution=margins.time_resolution,
        slot_margin=margins.slot_margin,
        shrink_margin=margins.shrink_margin,
        pad=pad,
        granularity=(config.processors_per_node or 1) if config.whole_nodes else 1,
        max_submissions=config.max_submissions or backend_type(config.backend).max_submissions,
        may_withdraw=config.withdraw,
        may_reshape=config.withdraw and margins.can_reshape,
    )
