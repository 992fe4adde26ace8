"""What sites and bags have cost, and may cost."""

from __future__ import annotations

import msgspec

from adaptor.api.question import Question, Time


class CreditLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a bag, a site, or a site in a calendar period has cost, in credits."""

    bag: int | None = None
    site: str | None = None
    period: str = ""
    """`2026-11`, `2026-W47`, …; empty: since the journal began."""
    budget: float | None = None
    """None: it is only counted."""
    used: float
    """Charged for pilots that have ended."""
    wasted: float | None = None
    """Of what is used: idle slots, killed attempts, losing replicas. None: not told apart."""
    reserved: float
    """The most that pilots queued and running can cost."""
    left: float | None = None


class SitePrice(msgspec.Struct, frozen=True, kw_only=True):
    """What a site's time costs."""

    site: str
    explicit: float
    """Credits per processor-hour of formal requests."""
    donated: float
    """Of preemptible time on idle nodes."""
    charging_unit: int
    """Seconds; a begun one counts whole."""
    gpu: float = 0.0
    """Per GPU-hour of formal requests, besides the processors."""


class RemovedPilotView(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that is not settled, of a site that the configuration no longer has."""

    pilot: int
    site: str
    reserved: float
    """Credits."""
    submitted: Time
    started: Time | None
    """None: it is not known to have started."""
    due: Time
    """When it has certainly ended, and is settled."""


class CreditsView(msgspec.Struct, frozen=True, kw_only=True):
    """`adaptor credits`."""

    sites: list[CreditLine]
    bags: list[CreditLine]
    prices: list[SitePrice]
    """Known to the running daemon only."""
    removed: list[RemovedPilotView] = []
    """Known to the running daemon only."""
    in_use: bool = True
    """Whether a price or a budget is set; else credits only count processor-hours."""


class GetCredits(Question[CreditsView], frozen=True):
    """What sites and bags have cost. `bags` is a selector."""

    kept = True
    nothing = CreditsView(sites=[], bags=[], prices=[])

    bags: str = "all"


class SettleSite(Question[int], frozen=True):
    """Settle the pilots of a site that the configuration no longer has."""

    writes = True

    site: str
    ended: float | None = None
    """When they ended, epoch seconds; None: by what the daemon knows."""
