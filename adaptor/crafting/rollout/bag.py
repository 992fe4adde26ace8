"""What the rollout heuristic decides about: a bag, its pilots, and where requests for it may go. Pure."""

from __future__ import annotations

import msgspec

from adaptor.crafting.availability import Availability
from adaptor.crafting.coverage import slots_in
from adaptor.crafting.rollout.times import Times, times_for
from adaptor.crafting.shape import RequestShape
from adaptor.crafting.situation import Demand, PilotView, SiteRules
from adaptor.model import QueueState


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """A queue in which requests may go: that of the site, or of one of its partitions."""

    name: str = ""
    """The partition; empty: the site has only one."""
    queue: QueueState
    """With all requests, those of the bag's pilots too."""
    rules: SiteRules
    """With the demand's own bounds on the time."""
    shape: RequestShape
    allowed: int
    """Requests that may be made there now."""
    usable: bool = True
    """False: none goes there now, but for those that are there."""
    free: Availability | None = None
    """What the queue leaves free, where it was planned before."""

    def shares_with(self, other: Home) -> bool:
        """Whether what runs here may take processors there."""
        if not self.queue.nodes or not other.queue.nodes:
            return True  # they are not known
        ours = {node.name for node in self.queue.nodes if node.ours}
        return any(node.name in ours for node in other.queue.nodes if node.ours)


class Bag(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of one demand, the pilots that serve it, and what may be asked for them."""

    now: float
    demand: Demand
    rules: SiteRules
    """Of the site: its limits are those of all homes together."""
    homes: tuple[Home, ...]
    """One at least is usable."""
    pilots: tuple[PilotView, ...]
    allowed: int
    """Requests that may be made now, in all homes together."""

    @property
    def tasks(self) -> int:
        return self.demand.waiting + self.demand.running

    @property
    def one_at_a_time(self) -> bool:
        """Whether only one request may be in the system."""
        return self.rules.limits.max_pending_requests == 1

    @property
    def max_tr(self) -> int:
        """Seconds, of the longest request that may be made."""
        return max(home.rules.limits.max_tr for home in self.homes if home.usable)

    @property
    def longest_task(self) -> float:
        """Seconds, of the longest task that a request can hold."""
        return max(home.rules.longest_task for home in self.homes if home.usable)

    @property
    def times(self) -> Times:
        return times_for(self.max_tr)

    def slots(self, pilot: PilotView, processors: int) -> int:
        """Tasks that run at the same time on so many processors of a pilot."""
        return slots_in(pilot, processors, self.demand, self.home_of(pilot).shape.unit)

    def home_of(self, pilot: PilotView) -> Home:
        """Where its request is; the first one where its partition gets no request now."""
        return self.homes[self.place_of(pilot.partition)]

    def place_of(self, partition: str) -> int:
        """Of the home with this name, the first one where there is none."""
        names = [home.name for home in self.homes]
        return names.index(partition) if partition in names else 0
