"""Facts about a bag and the sites where it may run, when its forecast is made. Frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from adaptor.budget.accounting.tariffs import Allocation, Tariff
from adaptor.budget.provisioning.hosts import HostTerms
from adaptor.budget.provisioning.pacing import Pace
from adaptor.budget.provisioning.presets import Preset
from adaptor.crafting.situation import SiteRules
from adaptor.forecast.calibration import Kind
from adaptor.forecast.other_bags import OtherBags
from adaptor.model import QueueState
from adaptor.resources import TaskSize
from adaptor.runtimes.known import KnownRuntimes
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
    kind: Allocation = "explicit"


class KnownSite(msgspec.Struct, frozen=True, kw_only=True):
    """A site at which the bag may run."""

    name: str
    rules: SiteRules
    heuristic: str
    poll: float = 0.0
    """Seconds between two looks at its queue."""
    queue: QueueState | None
    """The queue as last read; None: it was never read."""
    task: TaskSize
    learner: RuntimeLearner
    """Learner of the bag's tasks there: what it knows, and how it goes on."""
    pilots: tuple[KnownPilot, ...] = ()
    open: bool = True
    """Whether requests may be made there."""
    next_request: float = 0.0
    """Epoch seconds from which the next request may be made there."""
    late: float = 0.0
    """Seconds by which requests were late lately."""
    wait_shares: tuple[float, ...] = ()
    """Real waits of the newest requests as shares of the predicted ones."""
    run_shares: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    """Shares of their time limits that local jobs run, in order; equally likely."""
    run_shares_by_job: Mapping[str, tuple[float, ...]] = {}
    """Shares of their limits by job of the queue whose user has a history."""
    seen_since: Mapping[str, float] = {}
    """First sight of each running job, epoch seconds."""
    tariff: Tariff | None = None
    """Tariff of pilots for such tasks; None: the bag does not pay."""
    kind: Allocation = "explicit"
    terms: HostTerms | None = None
    """Terms on which time is charged there for a bag with aims; None: it has none."""
    whole_units: bool = False
    """Whether time is charged in units that are long compared with the start-up of a pilot."""
    end_takes: float | None = None
    """Lead before a charging unit ends at which a pilot may end with it, seconds; None: none does."""


class KnownAims(msgspec.Struct, frozen=True, kw_only=True):
    """The terms by which a bag with aims requests hosts."""

    preset: Preset
    deadline: float | None = None
    """Epoch seconds."""
    pace: Pace | None = None
    """Decisions of the estimator so far."""
    slow: bool = False
    """Whether it has a deadline alone."""


class KnownBag(msgspec.Struct, frozen=True, kw_only=True):
    """All that a forecast is made from."""

    now: float
    waiting: int
    runtimes: RuntimeKnowledge
    seen: KnownRuntimes = msgspec.field(default_factory=KnownRuntimes)
    """Runtimes of its tasks at all sites."""
    sites: Sequence[KnownSite]
    others: OtherBags = OtherBags()
    """Bags that take turns with this one."""
    at_once: int | None = None
    """Tasks that may run at the same time; None: all."""
    again: Sequence[float] = ()
    """Seconds for which waiting tasks ran before they were cut."""
    pays: bool = False
    """Whether it has pilots of its own, whose cost is known."""
    idle_costs: bool = False
    """Whether its tasks may start at even odds even if few wait (`scheduling.bag.idle_costs`)."""
    used: int = 0
    """Millionths of a credit that its ended pilots were charged."""
    aims: KnownAims | None = None
    scores: Mapping[Kind, Sequence[float]] = {}
    """Errors of earlier forecasts by kind (`calibration.score`), the oldest first."""

    @property
    def blind(self) -> bool:
        """Whether the runtime of its tasks is only assumed: none has finished, and there is no hint."""
        return not self.seen.finished and self.runtimes.surety > _SAYS_LITTLE
