"""The facts about a bag that decisions and forecasts use. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.forecast.other_bags import OtherBags
from adaptor.runtimes.known import EarlierTasks, KnownRuntimes
from adaptor.runtimes.learner import RuntimeLearner


def idle_costs(
    spec: BagSpec, told: float | None, earlier: Mapping[str, EarlierTasks], *, alone: bool
) -> bool:
    """True if a bag has a budget alone and unknown runtimes: its slots cost the same when idle, so a task
    may start at even odds even if few wait. `alone`: whether it has pilots of its own."""
    return alone and not spec.aims and told is None and not earlier


class BagFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A bag at one instant. Times are epoch seconds, durations seconds."""

    id: int
    spec: BagSpec
    tasks: int
    """Tasks that have a result or may still get one, except those that wait for others."""
    waiting: int
    known: KnownRuntimes
    """Runtimes of its tasks at all sites; of a running one the first attempt counts."""
    attempts: dict[str, tuple[float, ...]]
    """Start of each running attempt by site, replicas included."""
    by_pilot: dict[int, tuple[float, ...]]
    """Starts of the running attempts of each pilot."""
    learned: dict[str, RuntimeLearner]
    """Learned runtimes by site at which the bag may run."""
    runtimes: tuple[float, ...]
    """A sample of the finished tasks: one runtime in `every`."""
    every: int
    growing: bool = False
    """Whether tasks may be appended or wait for others; nothing is forecast then."""
    bounds: dict[int, tuple[float, ...]] = {}
    """Seconds that each task of `by_pilot` ran before it was cut, by pilot; 0: it was not cut."""
    again: tuple[float, ...] = ()
    """Seconds for which waiting tasks ran before they were cut."""
    places: tuple[int, ...] = ()
    """The places in the file of those tasks."""
    earlier: Mapping[str, EarlierTasks] = {}
    """Runtimes of earlier bags of the same kinds, by site."""
    alone: bool = False
    """Whether it has pilots of its own, because it pays for itself."""
    others: OtherBags = OtherBags()
    """Bags that take turns with it."""

    @property
    def finished(self) -> int:
        return self.known.finished

    @property
    def not_started(self) -> int:
        """Number of tasks without a result that do not run."""
        return self.known.not_started(self.tasks)

    @property
    def paced(self) -> bool:
        """Whether its aims say how many processors it gets, and for how long."""
        return self.alone and self.spec.paced

    @property
    def idle_costs(self) -> bool:
        return idle_costs(self.spec, self.known.told, self.earlier, alone=self.alone)

    def known_at(self, site: str) -> KnownRuntimes:
        """Runtimes of its tasks at all sites, and what earlier bags say of a site."""
        return msgspec.structs.replace(self.known, earlier=self.earlier.get(site))

    def known_there(self, site: str) -> KnownRuntimes:
        """Runtimes of its tasks at a site; of a running one each attempt counts."""
        return self.learned[site].seen.running_since(self.attempts.get(site, ()))
