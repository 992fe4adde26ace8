"""Hosts: processor-slots that a request has bought."""

from __future__ import annotations

import msgspec

from adaptor.budget.accounting.tariffs import begun_units
from adaptor.budget.errors import BudgetError


class HostTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Terms on which time is charged; seconds."""

    unit: float
    """The charging unit."""
    startup: float = 0.0
    """The part of the first unit of each host that no task can use (A²HA §4: 5 of 60 minutes)."""

    def __post_init__(self) -> None:
        """Raises BudgetError: no time is left for tasks."""
        if not 0 <= self.startup < self.unit:
            raise BudgetError(
                f"the start-up, {self.startup:g} s, leaves nothing of a charging unit of {self.unit:g} s: "
                "buy longer units, several charging units at a time"
            )

    @property
    def usable(self) -> float:
        """Seconds of a first unit in which tasks run: hostProcessingTime (A²HA Fig. 3)."""
        return self.unit - self.startup

    def paid_until(self, start: float, granted: float, now: float) -> float:
        """End of the unit that is under way, or of the first one, of a pilot from `start` on; epoch seconds.

        Args:
            granted: seconds from its start to its end at the latest.
        """
        begun = max(1, begun_units(now - start, self.unit))
        return start + min(begun * self.unit, granted)


class Hosts(msgspec.Struct, frozen=True):
    """Hosts that become ready together and are paid until the same instant."""

    count: int
    ready: float
    ends: float

    def time_left(self, now: float) -> float:
        """Seconds in which each of them can run tasks."""
        return max(0.0, self.ends - max(now, self.ready))


class Advice(msgspec.Struct, frozen=True):
    """Purchase for now: the cap on the processor-slots that the site's heuristic may request."""

    hosts: int
    reason: str
    units: int = 1
    """Charging units that the bag pays for each of them."""
