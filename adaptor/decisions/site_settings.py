"""Settings of a site from the configuration and its kind of scheduler. Frozen types."""

from __future__ import annotations

import msgspec

from adaptor.crafting.situation import SiteRules
from adaptor.donation.situation import DonationRules


class DonationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings by which a site donates idle nodes."""

    rules: DonationRules
    preemptible: bool
    """Whether the scheduler itself preempts our pilots there; else agents keep them outside of it."""
    max_tr: float | None = None
    """Seconds that a node may be used at most; None: the site's max_tr."""


class SiteSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a site from the configuration and its kind of scheduler."""

    name: str
    rules: SiteRules
    """Rules with the configured pad, and the limits as far as they are known at the start."""
    heuristic: str
    command_timeout: float = 60.0
    poll: float = 15.0
    """Seconds between two looks at the queue."""
    idle_timeout: float = 60.0
    """Seconds after which a worker without a task leaves."""
    donation: DonationSettings | None = None
