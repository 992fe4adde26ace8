"""A bag that pays for its pilots at one simulated site, by the decisions of the daemon.

The machine is free but for the bag's own pilots. Nothing fails; replicas are made in time that is paid, as in
the daemon.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.estimation.bag_knowledge import BagKnowledge
from adaptor.crafting.situation import SiteRules
from adaptor.decisions.forecasts import knowledge_of
from adaptor.decisions.site_memory import SiteSettings
from adaptor.model import Limits, Preference, TaskState
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.facts import facts_of
from adaptor.scheduling.state import SiteTerms
from adaptor.simulation.driver import SimulatedDriver
from adaptor.simulation.jobs import Jobs
from adaptor.simulation.scene.site import ScenePlace, SimulatedSite
from adaptor.simulation.scene.world import World
from adaptor.simulation.worker import Attempt

SITE = "site"
_LONGEST = 10**9
"""Seconds; no bag takes so long."""


class PaidSite(msgspec.Struct, frozen=True, kw_only=True):
    """The simulated site; times in seconds."""

    tariff: Tariff
    processors: int = 32
    limits: Limits = Limits(max_pending_requests=6, max_proc=16, max_tr=4 * 3600)
    pad: float = 30.0
    startup: int = 15
    """From the start of a pilot to the Hello of its worker."""
    idle_timeout: float = 60.0
    initial_tr: float = 600.0
    poll: float = 30.0

    @property
    def place(self) -> ScenePlace:
        settings = SiteSettings(
            name=SITE,
            rules=SiteRules(limits=self.limits, pad=self.pad),
            heuristic="adaptive",
            poll=self.poll,
            idle_timeout=self.idle_timeout,
        )
        return ScenePlace(
            settings=settings, jobs=Jobs.none(), processors=self.processors, startup=self.startup
        )

    @property
    def terms(self) -> SiteTerms:
        longest = self.place.settings.rules.longest_task
        return SiteTerms(initial_tr=self.initial_tr, growth_factor=2, longest=longest)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a bag went. Seconds from its submission."""

    cost: float
    """Credits."""
    end: float
    """Of the last result."""
    told: tuple[BagKnowledge, ...]
    """What was known at the moments that were asked for, as far as the bag got there."""


def run_bag(
    runtimes: Sequence[float],
    site: PaidSite,
    prefer: Preference | None,
    moments: Sequence[int],
    *,
    number: int = 1,
    order: Literal["random", "file"] | None = "file",
) -> Outcome:
    """Run a bag to its end.

    Args:
        runtimes: seconds, by the places of the tasks in the file.
        moments: numbers of finished tasks at which to keep what is known then.
        number: of the bag, which its random order follows from.
        order: the option of the bag; None: its user has not named one.
    """
    driver, world, bag = submitted(runtimes, site, prefer=prefer, number=number, order=order)
    left, told = sorted(moments), []
    while not bag.ended or driver.ledger.open_pilots:
        world.go_on(_LONGEST)
        while left and bag.count(TaskState.DONE) >= left[0] and not bag.ended:
            left.pop(0)
            told.append(_knowledge(driver, bag, float(world.now)))
    cost = driver.ledger.of_bag(number).used / 1e6
    return Outcome(cost=cost, end=max(each.at for each in world.ended), told=tuple(told))


def submitted(
    runtimes: Sequence[float],
    site: PaidSite,
    *,
    prefer: Preference | None = None,
    deadline: float | None = None,
    number: int = 1,
    order: Literal["random", "file"] | None = "file",
) -> tuple[SimulatedDriver, World, Bag]:
    """A bag that was submitted at the site just now, who decides for it, and the world; see `run_bag`."""
    cluster = SimulatedSite(site.place)
    driver = SimulatedDriver({SITE: cluster}, Broker({SITE: site.terms}), {SITE: site.tariff})
    world = World({SITE: cluster}, driver)
    spec = BagSpec(
        name="", cwd="", output="", environment={}, prefer=prefer, deadline=deadline, order=order
    ).with_order(budget=True)
    bag = Bag(number, spec, len(runtimes))
    bag.fill()
    driver.broker.keep_apart(number)
    world.add_bag(bag, lambda key, _site: Attempt(runtimes[key.task]))
    return driver, world, bag


def _knowledge(driver: SimulatedDriver, bag: Bag, now: float) -> BagKnowledge:
    """What `adaptor status` makes its forecast from."""
    known = knowledge_of(facts_of(driver.broker.state, bag), driver.facts(now), driver.ledger, now)
    assert known is not None, "enough tasks have finished"
    return known
