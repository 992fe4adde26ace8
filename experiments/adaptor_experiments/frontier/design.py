"""Runs of the experiment: bags, wishes, tariffs, knowledge of the runtimes; and the record of each run."""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.heuristics import HeuristicName
from adaptor.donation.idleness import IdleLearner
from adaptor.donation.situation import DonationRules
from adaptor.model import Limits, Preference
from adaptor_experiments.forecasts.site_run import CheckedSite
from adaptor_simulation.jobs import Jobs

BAGS = ("constant", "normal", "image", "exponential", "two-kinds", "rare-long", "many-kinds", "levy")
"""Keys of `a2ha.bags.KINDS`, by how heavy their tails are."""
QUICK = ("image", "levy")  # those that are drawn, too
BAGS_AT = {"one": BAGS, "two": QUICK, "donated": QUICK[:1]}  # by `Sites`: what is run there
UNITS = (1, 60, 3600)  # charging units, seconds
Sites = Literal["one", "two", "donated"]
SITES: tuple[Sites, ...] = ("one", "two", "donated")
"""One site; one of half the processors, and another one at half the price; one, and cheap donated nodes that
local users take back from time to time."""
Knowledge = Literal["unknown", "earlier", "time"]
KNOWLEDGE: tuple[Knowledge, ...] = ("unknown", "earlier", "time")
"""Knowledge of the runtimes: nothing, an earlier bag of the same kind, the mean of this bag by `--time`."""
BUDGETS = (1.1, 1.2, 1.35, 1.5, 2.0, 4.0)
"""Multiples of the work of the bag; where prices differ, of the least cost that a search finds."""
DEADLINES = (1.5, 2.0, 4.0, 8.0, 16.0)  # multiples of the time of the same bag without a wish
_PILOTS = 500  # in the system, of `elastic`
_NODES = 16  # donated ones
_PERIOD, _TAKEN = 2400, 600  # seconds from one job of their local users to the next, and that it takes
_WATCHED = 10 * 24 * 3600  # seconds in which the daemon has learned of that before
SLACK = 1.05  # factors up to here are no difference
NEAR = 1.2  # the goal: the mean factor to the best


class Wish(msgspec.Struct, frozen=True):
    """Wish of the user of a bag."""

    prefer: Preference | None = None
    budget: float | None = None
    """Budget as a multiple of the cost in `BUDGETS`."""
    deadline: float | None = None
    """Deadline as a multiple of the time without a wish."""

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
FEW = (Wish(), Wish("cheap"), Wish("fast"), Wish(budget=1.5), Wish(budget=4.0), Wish(deadline=4.0))
"""Wishes if there is more than one place: dividing the tasks takes most of the time of these runs."""


def wishes_of(sites: Sites, known: Knowledge, unit: int, order: int) -> tuple[Wish, ...]:
    """Wishes with which a bag is run; empty: none.

    By the minute it goes nearly as by the second, so little is run. A budget with a deadline needs forecasts,
    which take minutes.
    """
    if sites == "one":
        if known == "unknown":
            return SINGLE if order else WISHES
        return () if unit == UNITS[1] else SINGLE
    return () if known == "earlier" or unit == UNITS[1] else FEW


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Shape of a site, and the number of tasks of a bag."""

    heuristic: HeuristicName = "completion"
    initial_tr: float = 60.0
    """First guess of the runtime of a task, seconds."""
    processors: int = 64
    requests: int = 4
    """Requests that the site takes; together they may have all processors. With `elastic` of wide pilots."""
    tasks: int | None = None
    """Tasks of a bag; None: as many as its kind has."""

    @property
    def widest(self) -> int:
        """Processors of the largest request."""
        return max(1, self.processors // self.requests)


SHAPE = Shape()


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    seed: int = 1
    orders: int = 3
    bags: tuple[str, ...] = BAGS
    shape: Shape = SHAPE


def site_of(unit: int, shape: Shape = SHAPE) -> CheckedSite:
    """An empty site, where a processor-hour costs one credit."""
    narrow = shape.heuristic == "elastic"
    return CheckedSite(
        tariff=Tariff(price_explicit=1.0, price_donated=1.0, charging_unit=unit),
        processors=shape.processors,
        limits=Limits(
            max_pending_requests=shape.requests,
            max_pilots=_PILOTS if narrow else 0,
            max_proc=shape.widest,
            max_tr=24 * 3600,
        ),
        heuristic=shape.heuristic,
        initial_tr=shape.initial_tr,
    )


def sites_of(sites: Sites, unit: int, shape: Shape = SHAPE) -> tuple[CheckedSite, ...]:
    """The first is that of `site_of`, or a smaller one."""
    site = site_of(unit, shape)
    if sites == "one":
        return (site,)
    part = shape.widest // 2 if sites == "two" else 3 * shape.widest // 4
    limits = msgspec.structs.replace(site.limits, max_proc=max(1, part))
    most = limits.max_pending_requests * limits.max_proc
    first = msgspec.structs.replace(site, limits=limits, processors=most)
    if sites == "two":
        cheap = msgspec.structs.replace(site.tariff, price_explicit=0.5, price_donated=0.5)
        return first, msgspec.structs.replace(first, name="cheap", tariff=cheap)
    return first, _donating(site)


def _donating(site: CheckedSite) -> CheckedSite:
    """16 donated nodes for 0.3 credits an hour, which a local job takes for the last 10 of each 40 minutes.

    Requests for formal use get one more processor, which the search does not count.
    """
    starts = np.arange(_PERIOD - _TAKEN, 200 * 3600, _PERIOD)
    held = np.full(len(starts), _TAKEN)
    learner = IdleLearner()
    for _ in range(_WATCHED // _PERIOD):
        learner.saw(0.0, _PERIOD - _TAKEN, taken=True, nodes=_NODES)
        learner.watched(_PERIOD, _NODES)
    return msgspec.structs.replace(
        site,
        name="donated",
        tariff=msgspec.structs.replace(site.tariff, price_donated=0.3),
        processors=_NODES + 1,
        limits=Limits(max_pending_requests=1, max_proc=1, max_tr=site.limits.max_tr),
        donation=DonationRules(max_nodes=_NODES, useful_time=60.0),
        idleness=learner.idleness,
        jobs=Jobs(
            number=np.arange(len(starts)),
            submit=starts,
            run=held,
            estimate=held,
            processors=np.full(len(starts), _NODES),
        ),
    )


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A run. Times in hours from the submission, costs in credits, which are processor-hours."""

    bag: str
    order: int
    unit: int
    known: Knowledge
    sites: Sites
    wish: Wish
    tasks: int
    work: float
    least: float
    """Credits, of which budgets are multiples."""
    done: int
    """Tasks."""
    ended: bool
    """False: the bag was paused, or took too long."""
    cost: float
    end: float
    sure: list[bool] = []
    """Whether 95 % of the possible ends are before a deadline, by forecast. The first is made when 30 tasks
    are done, or a quarter of a small bag, the next one when half of them are."""
    plain_cost: float
    """Cost of the same bag without a wish, as `plain_end` is its end."""
    plain_end: float
    best: float | None
    """The factor to the best that a search finds; None: it finds none that meets the wish."""

    @property
    def kind(self) -> str:
        return self.wish.kind

    @property
    def budget(self) -> float:
        """Credits."""
        return math.inf if self.wish.budget is None else self.wish.budget * self.least

    @property
    def deadline(self) -> float:
        """Hours."""
        return math.inf if self.wish.deadline is None else self.wish.deadline * self.plain_end

    @property
    def possible(self) -> bool:
        return self.best is not None

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
        """Its cost over that of which budgets are multiples."""
        return self.cost / self.least

    @property
    def roomy(self) -> bool:
        """Whether the bag without a wish would keep within the budget."""
        return self.kind == "budget" and self.budget >= self.plain_cost
