"""What is run: bags, wishes, tariffs, what is known of the runtimes; and what is written down of each run."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.model import Limits, Preference
from adaptor_experiments.forecasts.site_run import CheckedSite

BAGS = ("constant", "normal", "image", "exponential", "two-kinds", "rare-long", "many-kinds", "levy")
"""Keys of `a2ha.bags.KINDS`, by how heavy their tails are."""
QUICK = ("image", "levy")
"""Those that are drawn, too."""
UNITS = (1, 60, 3600)
"""Charging units, seconds."""
Knowledge = Literal["unknown", "earlier", "time"]
KNOWLEDGE: tuple[Knowledge, ...] = ("unknown", "earlier", "time")
"""Of the runtimes: nothing, an earlier bag of the same kind, the mean of this bag by `--time`."""
BUDGETS = (1.1, 1.2, 1.35, 1.5, 2.0, 4.0)
"""Multiples of the work of the bag."""
DEADLINES = (1.5, 2.0, 4.0, 8.0, 16.0)
"""Multiples of the time of the same bag without a wish."""
SLACK = 1.05
"""Factors up to here are no difference."""
NEAR = 1.2
"""The goal: the mean factor to the best."""


class Wish(msgspec.Struct, frozen=True):
    """What the user of a bag asks for."""

    prefer: Preference | None = None
    budget: float | None = None
    """As a multiple of the work."""
    deadline: float | None = None
    """As a multiple of the time without a wish."""

    @property
    def kind(self) -> str:
        """`cheap`, `budget`, `budget, fast`, or `none`."""
        parts = ("budget" if self.budget else "", "deadline" if self.deadline else "", self.prefer or "")
        return ", ".join(filter(None, parts)) or "none"

    def __str__(self) -> str:
        """`budget 1.5, fast`."""
        found = self.kind.replace("budget", f"budget {self.budget:g}" if self.budget else "")
        return found.replace("deadline", f"deadline {self.deadline:g}" if self.deadline else "")


SINGLE = (
    Wish(),
    *(Wish(prefer=prefer) for prefer in ("cheap", "balanced", "fast")),
    *(Wish(budget=budget) for budget in BUDGETS),
    *(Wish(deadline=deadline) for deadline in DEADLINES),
    Wish("fast", budget=1.5),
    Wish("cheap", budget=1.5),
)
"""Without both a budget and a deadline. The first is no wish: the others are measured by it."""
WISHES = (*SINGLE, Wish(budget=1.5, deadline=4.0))


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    seed: int = 1
    orders: int = 3
    bags: tuple[str, ...] = BAGS


def site_of(unit: int) -> CheckedSite:
    """An empty site of 64 processors, where a processor-hour costs one credit."""
    return CheckedSite(
        tariff=Tariff(price_explicit=1.0, price_donated=1.0, charging_unit=unit),
        processors=64,
        limits=Limits(max_pending_requests=4, max_proc=16, max_tr=24 * 3600),
        heuristic="completion",
        initial_tr=60.0,
    )


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A run. Times in hours from the submission, costs in credits, which are processor-hours."""

    bag: str
    order: int
    unit: int
    known: Knowledge
    wish: Wish
    tasks: int
    work: float
    done: int
    """Tasks."""
    ended: bool
    """False: the bag was paused, or took too long."""
    cost: float
    end: float
    sure: list[bool] = []
    """Of a deadline, by forecast: whether 95 % of the possible ends are before it. The first is made when 30
    tasks are done, or a quarter of a small bag, the next one when half of them are."""
    plain_cost: float
    """Of the same bag without a wish, as `plain_end`."""
    plain_end: float
    best: float
    """The factor to the best that a search finds; NaN: it finds none that meets the wish."""

    @property
    def kind(self) -> str:
        return self.wish.kind

    @property
    def budget(self) -> float:
        """Credits."""
        return math.inf if self.wish.budget is None else self.wish.budget * self.work

    @property
    def deadline(self) -> float:
        """Hours."""
        return math.inf if self.wish.deadline is None else self.wish.deadline * self.plain_end

    @property
    def possible(self) -> bool:
        return not math.isnan(self.best)

    @property
    def kept(self) -> bool:
        """Whether the bag is done by its deadline."""
        return self.ended and self.end <= self.deadline

    @property
    def slowdown(self) -> float:
        """Its time over that of the same bag without a wish."""
        return self.end / self.plain_end

    @property
    def price(self) -> float:
        """Its cost over its work."""
        return self.cost / self.work

    @property
    def roomy(self) -> bool:
        """Whether the bag without a wish would keep within the budget."""
        return self.kind == "budget" and self.budget >= self.plain_cost
