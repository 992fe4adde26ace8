"""Which bags are run at which sites, and what is written down of each forecast."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec

from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.estimation.estimate import Estimate
from adaptor.experiments.a2ha.bags import DEMO, IMAGE, KINDS, NORMAL, OTHERS, TESTING, runtimes
from adaptor.experiments.forecasts.site_run import PaidSite
from adaptor.model import Preference

BAGS = (IMAGE, NORMAL, TESTING, DEMO, *OTHERS)
"""The forecast was adjusted with these bags at seed 1 in sight; other seeds draw other runtimes."""
PREFERENCES: tuple[Preference | None, ...] = ("cheap", None)
"""None: a budget alone, which caps no request until it is nearly used up."""
UNITS = (60, 3600)
"""Charging units, seconds."""
MOMENTS = ("30", "100", "half")
"""Finished tasks after which the forecast is made."""
_STRETCHED = 200.0
"""The measured bag has tasks of less than a second, beside which pilots would only start and end."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    seed: int = 1
    orders: int = 40
    demo: Path | None = None
    """Measured runtimes; None: those of the package."""


class Cell(msgspec.Struct, frozen=True):
    """One kind of bag, bought for in one way."""

    bag: str
    prefer: Preference | None
    unit: int


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One forecast and what came of it."""

    bag: str
    prefer: str
    unit: int
    order: int
    moment: str
    cost: float
    """Credits in the end."""
    cost_low: float
    cost_value: float
    cost_high: float
    end: float
    """Seconds from the submission to the last result."""
    end_low: float
    """As the other ends; `nan` where no end was forecast."""
    end_value: float
    end_high: float

    @property
    def cost_holds(self) -> bool:
        return Estimate(self.cost_low, self.cost_value, self.cost_high).holds(self.cost)

    @property
    def end_holds(self) -> bool:
        return Estimate(self.end_low, self.end_value, self.end_high).holds(self.end)


def cells() -> list[Cell]:
    found = itertools.product(BAGS, PREFERENCES, UNITS)
    return [Cell(kind.key, prefer, unit) for kind, prefer, unit in found]


def site(unit: int) -> PaidSite:
    return PaidSite(tariff=Tariff(price_explicit=1.0, price_donated=1.0, charging_unit=unit))


def bag_of(cell: Cell, settings: Settings, order: int) -> list[float]:
    """Seconds of each task, in the order in which they are taken.

    Raises:
        ReplayError: the measured list cannot be read.
    """
    stretch = _STRETCHED if cell.bag == DEMO.key else 1.0
    drawn = runtimes(KINDS[cell.bag], settings.seed, order, settings.demo)
    return [float(each) * stretch for each in drawn]


def moments(tasks: int) -> dict[int, str]:
    """By finished tasks, in a bag of so many."""
    return dict(zip((30, 100, tasks // 2), MOMENTS, strict=True))
