"""Credits that sites and bags have cost, and may cost."""

from __future__ import annotations

import msgspec

from adaptor.api.question import Question, Time


class CreditLine(msgspec.Struct, frozen=True, kw_only=True):
    """Cost of a bag, of a site, or of a site in a calendar period, in credits."""

    bag: int | None = None
    site: str | None = None
    period: str = ""  # `2026-11`, `2026-W47`, …; empty: since the journal began
    budget: float | None = None  # None: it is only counted
    used: float  # charged for pilots that have ended
    wasted: float | None = None
    """Part of the used credits: idle slots, killed attempts, losing replicas. None: not known apart."""
    reserved: float  # the most that pilots queued and running can cost
    left: float | None = None


class SitePrice(msgspec.Struct, frozen=True, kw_only=True):
    """Prices of a site's time."""

    site: str
    explicit: float  # credits per processor-hour of formal requests
    donated: float  # of preemptible time on idle nodes
    charging_unit: int  # seconds; a begun one counts whole
    gpu: float = 0.0  # per GPU-hour of formal requests, besides the processors
    grace: int = 0  # seconds that a pilot may run on beyond its request; they are reserved too


class RemovedPilotView(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that is not settled, of a site that the configuration no longer has."""

    pilot: int
    site: str
    reserved: float  # credits
    submitted: Time
    started: Time | None  # None: it is not known to have started
    due: Time  # time at which it has certainly ended, and is settled


class CreditsView(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `adaptor credits`."""

    sites: list[CreditLine]
    bags: list[CreditLine]
    prices: list[SitePrice]  # known to the running daemon only
    removed: list[RemovedPilotView] = []  # known to the running daemon only
    in_use: bool = True  # whether a price or a budget is set; else credits only count processor-hours


class GetCredits(Question[CreditsView], frozen=True):
    """Ask for the cost of sites and bags. `bags` is a selector."""

    kept = True
    nothing = CreditsView(sites=[], bags=[], prices=[])

    bags: str = "all"


class SettleSite(Question[int], frozen=True):
    """Settle the pilots of a site that the configuration no longer has."""

    writes = True

    site: str
    ended: float | None = None  # epoch seconds of their end; None: by what the daemon knows
