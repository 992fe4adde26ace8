"""What the completion heuristic decides about: a bag, its pilots, and where requests for it may go. Pure."""

from __future__ import annotations

import msgspec

from adaptor.crafting.coverage import slots_in
from adaptor.crafting.places import Place
from adaptor.crafting.shape import RequestShape
from adaptor.crafting.situation import Demand, PilotView, SiteRules
from adaptor.model import PilotState

USUAL = 64_800.0
"""Seconds, the max_tr of De Rose et al. (2008, §4.4), with which the times below were found."""
FIRST, SETTLED = 60.0, 300.0
LEAST_SETTLED = 30.0
"""Slurm's default bf_interval: before that a request may have no planned start."""


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """A queue in which requests may go, with the possible requests there."""

    place: Place
    """With all requests, those of the bag's pilots too."""
    shape: RequestShape

    def shares_with(self, other: Home) -> bool:
        """Whether what runs here may take processors there."""
        ours, theirs = self.place.queue.nodes, other.place.queue.nodes
        if self is other or not ours or not theirs:
            return True  # the nodes are not known
        names = {node.name for node in ours if node.ours}
        return any(node.name in names for node in theirs if node.ours)


class Bag(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of one demand, the pilots that serve it, and what may be asked for them. Times in seconds."""

    now: float
    demand: Demand
    tasks: int
    """That wait or run, as far as they are this site's."""
    rules: SiteRules
    """Of the site: its limits are those of all homes together."""
    homes: tuple[Home, ...]
    """One at least is usable."""
    pilots: tuple[PilotView, ...]
    allowed: int
    """Requests that may be made now, in all homes together."""
    may_withdraw: bool
    """Whether a request may be withdrawn, or ended, for better ones."""

    @property
    def one_at_a_time(self) -> bool:
        """Whether only one request may be in the system."""
        return self.rules.limits.max_pending_requests == 1

    @property
    def max_tr(self) -> int:
        """The longest request that may be made."""
        return max(home.place.rules.limits.max_tr for home in self.homes if home.place.usable)

    @property
    def longest_task(self) -> float:
        """The longest task that a request can hold."""
        return max(home.place.rules.longest_task for home in self.homes if home.place.usable)

    def home_of(self, partition: str) -> int:
        """The number of the home with this name; the first one where it gets no request now."""
        names = [home.place.name for home in self.homes]
        return names.index(partition) if partition in names else 0

    def slots(self, pilot: PilotView) -> int:
        """Tasks that run at the same time in a pilot; where each must run alone, one in each that waits."""
        running = pilot.state is PilotState.RUNNING and pilot.processors is not None
        processors = pilot.processors if running and pilot.processors is not None else pilot.request.p
        slots = slots_in(pilot, processors, self.demand, self.homes[self.home_of(pilot.partition)].shape.unit)
        return min(slots, 1) if self.demand.alone and not running else slots

    def may_give_up(self, pilot: PilotView) -> bool:
        """Whether a pilot may make room for a better request: it has shown what it brings, or local jobs have
        taken the place of what was queued."""
        since = pilot.started if pilot.state is PilotState.RUNNING else pilot.submitted
        settled = self.now - since >= settled_after(self.max_tr) if since is not None else _waits(pilot)
        return self.may_withdraw and pilot.job is not None and settled


def _waits(pilot: PilotView) -> bool:
    return pilot.state is PilotState.QUEUED


def first_runtime(max_tr: float) -> float:
    """The shortest runtime that is thought of before anything is known, seconds: shorter where requests are."""
    return min(1.0, max_tr / USUAL) * FIRST


def settled_after(max_tr: float) -> float:
    """Seconds after which a request may make room: the queue of a site that allows an hour moves in minutes."""
    return max(LEAST_SETTLED, min(1.0, max_tr / USUAL) * SETTLED)
