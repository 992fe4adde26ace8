"""Offers of sites, in the form of the allocation of tasks to sites."""

from __future__ import annotations

import math

import msgspec

from adaptor.budget.accounting.tariffs import HOUR
from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.task_time import TaskTime

FINE = 8  # charging units in a task, beyond which they are as good as nothing


class HeldSlots(msgspec.Struct, frozen=True):
    """Processors of a site that we hold already."""

    processors: int
    paid: float = 0.0
    """Seconds from now that are charged already, whether they are used or not."""


class SiteOffer(msgspec.Struct, frozen=True, kw_only=True):
    """One site or one kind of its capacity, for tasks of one processor (Ricciardi & Hwang §2)."""

    name: str
    price: float
    """Credits per processor-hour."""
    processors: int
    """The most that we can hold at a time, those that we hold already among them."""
    task: TaskTime
    charging_unit: float = 1.0
    """Seconds; begun units are charged whole."""
    startup: float = 0.0
    """Seconds, charged, before the first task of a pilot can start."""
    spare: float = 0.0
    """Seconds that each request reserves beyond its work: pad and grace; most of it comes back."""
    wait: float = 0.0
    """Seconds, not charged, until a processor that is requested now is there: the queue of the site."""
    held: tuple[HeldSlots, ...] = ()
    together: bool = False
    """Whether its processors are held until the end of the bag, as those of one pilot; else each is held
    until it has no task left."""

    def __post_init__(self) -> None:
        """Raises BudgetError: what cannot be offered."""
        for what, value in (("price", self.price), ("charging unit", self.charging_unit)):
            if not (math.isfinite(value) and value > 0):
                raise BudgetError(f"site {self.name}: the {what} must be finite and above 0, not {value:g}")
        if self.processors < 0 or self.startup < 0 or not 0 <= self.wait < math.inf:
            raise BudgetError(f"site {self.name}: processors, start-up and wait must be 0 or more")
        if self.fresh < 0:
            raise BudgetError(
                f"site {self.name}: more processors are held ({self.processors - self.fresh}) than it "
                f"has for us ({self.processors})"
            )

    @property
    def fresh(self) -> int:
        """Processors that can still be bought."""
        return self.processors - sum(group.processors for group in self.held)

    @property
    def divisible(self) -> bool:
        """Whether a part of a processor may be held: its units are so short compared with a task that time is
        as good as charged by the second."""
        return not self.together and self.charging_unit * FINE < self.task.mean

    def cost(self, seconds: float) -> float:
        """Credits for one processor for `seconds`; begun units are charged whole."""
        # A billionth of a unit is rounding of the caller's arithmetic and begins none.
        units = math.ceil(seconds / self.charging_unit - 1e-9)
        return max(0, units) * self.charging_unit * self.price / HOUR

    @property
    def lost(self) -> float:
        """Seconds that a processor does no work, at its start-up and at the end of the bag."""
        ending = self.task.ending(self.processors) if self.processors else 0.0
        return self.wait + self.startup + ending

    @property
    def cost_per_task(self) -> float:
        """Credits; Ricciardi & Hwang, eq. 4."""
        return self.price * self.task.mean / HOUR

    @property
    def smallest(self) -> float:
        """Credits for the least that is of any use: one processor for one task."""
        return self.cost(self.startup + self.task.mean)
