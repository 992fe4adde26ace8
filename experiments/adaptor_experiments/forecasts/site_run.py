"""A bag at simulated sites, by the decisions of the daemon; forecasts on the way.

Nothing fails; replicas of a bag that pays are made in time that is paid, as in the daemon.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Literal

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.credits import in_credits, millionths
from adaptor.budget.accounting.entries import Budget
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.futures.run_shares import RunShares
from adaptor.crafting.situation import SiteRules
from adaptor.decisions.aims import why_paused
from adaptor.decisions.decide import Decision, decide
from adaptor.decisions.forecasting.told import forecast_of
from adaptor.decisions.seen_nodes import SeenNodes
from adaptor.decisions.site_settings import DonationSettings, SiteSettings
from adaptor.decisions.snapshot import Snapshot
from adaptor.donation.idleness import Idleness
from adaptor.donation.situation import DonationRules
from adaptor.forecast.forecast import Forecast
from adaptor.model import Limits, Preference, TaskState
from adaptor.runtimes.known import EarlierTasks
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.facts import facts_of
from adaptor_simulation.driver import SimulatedDriver
from adaptor_simulation.jobs import Jobs
from adaptor_simulation.scene.site import ScenePlace, SimulatedSite
from adaptor_simulation.scene.world import World
from adaptor_simulation.worker import Attempt

SITE = "site"
_LONGEST = 10**9  # seconds; no bag takes longer
_WINDOW = 30.0  # seconds over which the pace is measured


class CheckedSite(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A simulated site; times in seconds."""

    name: str = SITE
    tariff: Tariff
    processors: int = 32
    limits: Limits = Limits(max_pending_requests=6, max_proc=16, max_tr=4 * 3600)
    heuristic: str = "adaptive"
    pad: float = 30.0
    time_resolution: int = 1
    startup: int = 15
    """From the start of a pilot to the Hello of its worker."""
    idle_timeout: float = 60.0
    initial_tr: float = 600.0
    poll: float = 30.0
    jobs: Jobs = msgspec.field(default_factory=Jobs.none)
    """Jobs of others."""
    shares: RunShares | None = None
    """Knowledge of an observer of the queue about them; None: none."""
    donation: DonationRules | None = None
    """Rules by which its idle processors are used as donated nodes; None: they are not."""
    idleness: Idleness = Idleness()
    """Idle periods of its processors, as far as they are known."""

    @property
    def place(self) -> ScenePlace:
        settings = SiteSettings(
            name=self.name,
            rules=SiteRules(limits=self.limits, pad=self.pad, time_resolution=self.time_resolution),
            heuristic=self.heuristic,
            poll=self.poll,
            idle_timeout=self.idle_timeout,
            donation=None
            if self.donation is None
            else DonationSettings(rules=self.donation, preemptible=False),
        )
        return ScenePlace(settings=settings, jobs=self.jobs, processors=self.processors, startup=self.startup)


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A forecast on the way. Seconds since the submission."""

    at: float
    forecast: Forecast
    pace: float
    """The end by the rate of the last half minute; NaN: nothing finished."""
    planned: float
    """End of the last request in the system by its planned start and its limit; NaN: there is none."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a bag. Seconds from its submission."""

    cost: float
    """Credits that the sites charged for the pilots."""
    end: float
    """End of the last result."""
    done: int
    """Tasks."""
    ended: bool
    """False: the bag was paused, or took too long."""
    told: tuple[Told, ...]
    """The forecasts at the moments that were asked for, as far as the bag got there."""


class Submitted:
    """A bag that was submitted just now; its forecasts are made at the first site."""

    def __init__(
        self,
        sites: Sequence[CheckedSite],
        runtimes: Sequence[float],
        spec: BagSpec,
        number: int = 1,
        *,
        foresees: bool = True,
    ) -> None:
        """A bag whose spec has an aim, or that has an order by its budget, pays; see `submitted`."""
        simulated = {site.name: SimulatedSite(site.place) for site in sites}
        self.site = simulated[sites[0].name]
        self.driver = SimulatedDriver(
            simulated,
            Broker({site.name: site.place.terms(site.initial_tr) for site in sites}),
            {site.name: site.tariff for site in sites},
            watched={site.name: site.shares for site in sites if site.shares is not None},
            seen={site.name: SeenNodes(site.idleness) for site in sites if site.donation is not None},
            decider=decide if foresees else _without_forecasts,
        )
        self.world = World(simulated, self.driver)
        self.bag = Bag(number, spec, len(runtimes))
        self.bag.fill()
        self._runtimes = runtimes
        self._seen: deque[tuple[float, int]] = deque([(0.0, 0)])

    def submit(self, *, pays: bool) -> None:
        if pays:
            self.driver.broker.keep_apart(self.bag.id)
        self.world.add_bag(self.bag, lambda key, _site: Attempt(float(self._runtimes[key.task])))

    def run(self, moments: Sequence[int] = (), longest: int = _LONGEST) -> Outcome:
        """Run the bag to its end, or until it is paused for good; `longest` in seconds.

        Args:
            moments: numbers of finished tasks at which a forecast is made.
        """
        bag, world, left, told = self.bag, self.world, sorted(moments), list[Told]()
        while not self._over() and world.now < longest:
            world.go_on(min(world.now + 60, longest) if not bag.ended else longest)
            now, seen = float(self.world.now), self._seen
            seen.append((now, self.bag.count(TaskState.DONE) + self.bag.count(TaskState.FAILED)))
            while len(seen) > 2 and seen[1][0] <= now - _WINDOW:
                seen.popleft()
            while left and not bag.ended and bag.count(TaskState.DONE) >= left[0]:
                left.pop(0)
                told.append(self._told())
        return Outcome(
            cost=in_credits(sum(self.driver.ledger.at_site(name).used for name in self.driver.sites)),
            end=max((each.at for each in world.ended), default=0.0),
            done=bag.count(TaskState.DONE),
            ended=bag.ended,
            told=tuple(told),
        )

    def _over(self) -> bool:
        """Whether nothing of the bag is in the system, and nothing more will be."""
        if self.driver.ledger.open_pilots_of(self.bag.id):
            return False
        return self.bag.ended or bool(why_paused(self.driver.decided, self.bag.id, list(self.driver.sites)))

    def _told(self) -> Told:
        """By the very function that `adaptor status` shows the result of."""
        now, state = float(self.world.now), self.driver.broker.state
        (first, before), (last, after) = self._seen[0], self._seen[-1]
        rate = (after - before) / (last - first) if last > first else 0.0
        left = self.bag.count(TaskState.WAITING) + self.bag.count(TaskState.LEASED)
        queue, own = self.site.queue_state(), self.driver.sites[self.site.name].own_jobs
        ends = [job.end for job in queue.running if job.id in own]
        ends += [
            job.planned_start + job.tr
            for job in queue.pending
            if job.id in own and job.planned_start is not None
        ]
        return Told(
            at=now,
            forecast=forecast_of(self.driver.snapshot(self.site.name, now), facts_of(state, self.bag)),
            pace=now + left / rate if rate > 0 else math.nan,
            planned=max(ends, default=math.nan),
        )


def _without_forecasts(snapshot: Snapshot) -> Decision:
    """The daemon's decision, without forecasts."""
    return decide(msgspec.structs.replace(snapshot, ahead=()))


def submitted(
    runtimes: Sequence[float],
    *sites: CheckedSite,
    prefer: Preference | None = None,
    deadline: float | None = None,
    budget: float | None = None,
    time: float | None = None,
    earlier: EarlierTasks | None = None,
    number: int = 1,
    order: Literal["random", "file"] | None = "file",
    replicas: int = 1,
    pays: bool = True,
    foresees: bool = True,
) -> Submitted:
    """A bag at its submission.

    Args:
        deadline: seconds from now.
        budget: credits; None: no limit.
        time: seconds that a task takes, as its user says.
        earlier: what is known of bags of its kind.
        number: what a random order follows from.
        replicas: extra attempts of a running task at the end of the bag.
        pays: whether its pilots serve it alone, as those of a bag with a budget or an aim.
        foresees: whether forecasts are made. Decisions depend on them only if the bag has both a budget and a
            deadline; they take most of the time of a run.
    """
    spec = BagSpec(
        name="",
        cwd="",
        output="",
        environment={},
        prefer=prefer,
        deadline=deadline,
        time=time,
        order=order,
        replicas=replicas,
    ).with_order(budget=True)
    found = Submitted(sites, runtimes, spec, number, foresees=foresees)
    if budget is not None:
        found.driver.ledger.set_budget(Budget(amount=millionths(budget, "a budget"), bag=number), 0.0)
    found.submit(pays=pays)
    if earlier is not None:
        found.driver.broker.state.know_earlier(found.bag, {site.name: earlier for site in sites})
    return found
