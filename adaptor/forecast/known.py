"""Facts about a bag and the sites where it may run, when its forecast is made. Frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.provisioning.hosts import HostTerms
from adaptor.budget.provisioning.pacing import Pace
from adaptor.crafting.situation import SiteState
from adaptor.forecast.bag_facts import BagFacts
from adaptor.forecast.calibration import Kind
from adaptor.model import Estimate, PriceKind
from adaptor.runtimes.learner import RuntimeLearner
from adaptor.runtimes.possible import RuntimeKnowledge

_SAYS_LITTLE = 1.0  # deviation of the logarithm of a guess beyond which it says little: by a factor of 2.7


class KnownPilot(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot in the system in which tasks of the bag may run. Epoch seconds."""

    job: str
    """The scheduler's id; empty: not known."""
    p: int
    tr: float
    slots: int
    started: float | None
    predicted: float | None
    """The predicted start of a queued one when it was made; None: not predicted."""
    elapsed: tuple[float, ...] = ()
    """Seconds for which tasks have run in it."""
    bounds: tuple[float, ...] = ()
    """Seconds for which each of these ran before, when it was cut; 0: it was not."""
    tariff: Tariff | None = None
    """The prices at which it was bought; None: it is not charged to the bag."""
    kind: PriceKind = "explicit"


class KnownSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site at which the bag may run."""

    view: SiteState
    """The site as it was last observed, with no larger requests than those that failed allow."""
    learner: RuntimeLearner
    """Learner of the bag's tasks there: what it knows, and how it goes on."""
    pilots: tuple[KnownPilot, ...] = ()
    beside: Mapping[str, Estimate] = {}
    """Our other pilots by job: when no bag needs them any more, epoch seconds. Those for which that is not
    known are not named."""
    open: bool = True
    """Whether requests may be made there."""
    share: float | None = None
    """Part of the tasks that it gets by cost and time; None: as much as any other site."""
    run_shares: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    """Shares of their time limits that local jobs run, in order; equally likely."""
    run_shares_by_job: Mapping[str, tuple[float, ...]] = {}
    """Shares of their limits by job of the queue whose user has a history."""
    seen_since: Mapping[str, float] = {}
    """First sight of each running job, epoch seconds."""
    tariff: Tariff | None = None
    """Tariff of pilots for such tasks; None: the bag does not pay."""
    terms: HostTerms | None = None
    """Terms on which time is charged there for a bag with aims; None: it has none."""
    whole_units: bool = False
    """Whether time is charged in units that are long compared with the start-up of a pilot."""
    end_takes: float | None = None
    """Lead before a charging unit ends at which a pilot may end with it, seconds; None: none does."""

    @property
    def own(self) -> set[str]:
        """Jobs in the queue that are ours and whose ends are known by what they run."""
        return {pilot.job for pilot in self.pilots} | self.beside.keys()


class KnownBag(msgspec.Struct, frozen=True, kw_only=True):
    """All that a forecast is made from."""

    now: float
    bag: BagFacts
    runtimes: RuntimeKnowledge
    sites: Sequence[KnownSite]
    used: int = 0
    """Millionths of a credit that its ended pilots were charged."""
    pace: Pace | None = None
    """Decisions of the estimator so far; None: it has not decided."""
    scores: Mapping[Kind, Sequence[float]] = {}
    """Errors of earlier forecasts by kind (`calibration.score`), the oldest first."""

    @property
    def blind(self) -> bool:
        """Whether the runtime of its tasks is only assumed: none has finished, and there is no hint."""
        return not self.bag.finished and self.runtimes.surety > _SAYS_LITTLE
