"""All that a decision may look at, at one instant. Frozen types that contain the time.

Times are epoch seconds (in the simulation: of the trace), durations seconds, amounts credits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from adaptor.backoff import Holdoff
from adaptor.budget.accounting.ledger import Ledger
from adaptor.crafting.situation import Demand, SiteState, SubmitRequest, TaskGroup
from adaptor.decisions.failures.shape_backoffs import Failures
from adaptor.decisions.failures.tried_sizes import SizeAt, TriedSizes
from adaptor.decisions.forecasting.needed import BagAtWork
from adaptor.decisions.memory import Memory
from adaptor.decisions.pilots import Pilot
from adaptor.donation.idleness import Hazard, Idleness
from adaptor.donation.situation import DonationState
from adaptor.forecast.bag_facts import BagFacts
from adaptor.forecast.calibration import Kind
from adaptor.model import QueueState
from adaptor.reports import NodeReport
from adaptor.scheduling.demand import BagDonationDemand


class DonationFacts(DonationState, frozen=True, kw_only=True):
    """The donation of a site as it was last observed."""

    preemptible: bool
    """Whether the scheduler itself preempts our pilots there; else agents keep them outside of it."""
    longest: float
    """Seconds that a node may be used at most."""
    hazard: Hazard
    idleness: Idleness
    """Idle periods from which the hazard was learned, and their frequency."""
    known: Sequence[NodeReport]
    """All nodes as last seen, those that local jobs have among them."""
    asked: bool
    """Whether anybody has asked for the nodes in this step."""
    fruitless: Holdoff
    """Donated nodes in a row on which no task ran."""
    failing: Holdoff
    """Donated nodes in a row that could not be used."""


class SiteFacts(SiteState, frozen=True, kw_only=True):
    """One site as it was last observed."""

    requests: tuple[Pilot, ...] = ()
    donated: tuple[Pilot, ...] = ()
    """The pilots on donated nodes."""
    unsettled: tuple[Pilot, ...] = ()
    """The requests that are not `settled`; no rule on single pilots concerns settled ones."""
    submitting: tuple[SubmitRequest, ...] = ()
    """Requests that are decided and not submitted yet."""
    failures: Failures = Failures()
    tried: Mapping[SizeAt, TriedSizes] = {}
    """The sizes of requests that the scheduler did not take, or would never start."""
    unusable: str = ""
    """Why no pilot could be of any use now; empty: it could."""
    unreachable_because: str = ""
    """A likely reason why its workers do not reach the daemon, as a question to the user; empty: none."""
    problem_since: float | None = None
    """Epoch seconds since which the scheduler has not answered; None: it does."""
    asked_since: float | None = None
    """Epoch seconds of the start of the pending scheduler question; None: none is pending."""
    command_timeout: float = 60.0
    donation: DonationFacts | None = None
    """Facts on donation; None: the site donates no nodes."""

    @property
    def pilots(self) -> tuple[Pilot, ...]:
        """The pilots in the system."""
        return (*self.requests, *self.donated)

    def silence(self, now: float) -> float:
        """Seconds for which the scheduler has owed an answer."""
        since = [moment for moment in (self.problem_since, self.asked_since) if moment is not None]
        return now - min(since) if since else 0.0

    def silent(self, now: float) -> bool:
        """Whether the scheduler does not answer."""
        return self.problem_since is not None or self.silence(now) > self.command_timeout


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All on which one step of one site decides."""

    site: str
    """Name of the site that decides."""
    sites: dict[str, SiteFacts]
    """All that serve the same bags, this one among them."""
    queue: QueueState | None = None
    """Queue of this site, as read for this step; None: the scheduler does not answer, or nothing waits."""
    demands: tuple[Demand, ...] = ()
    """Tasks for which this site's formal requests are made, by shape of task."""
    groups: tuple[TaskGroup, ...] = ()
    """The waiting tasks by shape and by the sites at which they may run."""
    donation_demands: tuple[BagDonationDemand, ...] = ()
    """Tasks that may be started on donated nodes of this site, by bag."""
    bags: dict[int, BagFacts] = {}
    """Bags that have pilots of their own."""
    ledger: Ledger
    """A copy that no decision and no other code changes."""
    memory: Memory
    forecast_kept: frozenset[int] = frozenset()
    """Bags whose first forecast is kept."""
    scores: Mapping[Kind, Sequence[float]] = {}
    """Errors of earlier forecasts by kind, the oldest first."""
    at_work: Mapping[int, BagAtWork] = {}
    """Bags of which a task runs, or may start, by number."""
    ahead: tuple[BagFacts, ...] = ()
    """Unfinished bags that are to be forecast in this step."""
    work: bool
    """Whether an unfinished task may run at this site."""

    def payer(self, bag: int | None) -> BagFacts | None:
        """The bag that pays for its own pilots, by number; None: bags share them."""
        return None if bag is None else self.bags.get(bag)

    @property
    def here(self) -> SiteFacts:
        return self.sites[self.site]

    @property
    def now(self) -> float:
        return self.here.now
