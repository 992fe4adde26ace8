"""The part of a site's configuration that says what its time costs, and how much may be spent there."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from adaptor.config.yaml_lines import Fail

LONGEST_UNIT = 3600


class PriceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Credits per processor-hour."""

    explicit: float = 1.0
    """Of formal requests."""
    donated: float | None = None
    """Of preemptible time on idle nodes; None: as explicit ones."""


class BudgetConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all bags together may spend at the site."""

    credits: float
    period: Literal["day", "week", "month", "quarter", "year"] | None = None
    """In each such period of the calendar; None: for ever."""
    zone: str = "UTC"
    """The time zone in which periods begin, for instance `Europe/Lisbon`."""


def check_costs(price: PriceConfig, unit: float, budget: BudgetConfig | None, at: str, fail: Fail) -> None:
    """Prices above 0, donated ones no higher than explicit ones, a unit of 1 s to 1 h."""
    for key, value in (("explicit", price.explicit), ("donated", price.donated)):
        if value is not None and not (math.isfinite(value) and value >= 1e-6):
            fail(f"{at}.price.{key}", f"must be more than 0 (at least 0.000001), not {value:g}")
    if price.donated is not None and price.donated > price.explicit:
        fail(f"{at}.price.donated", f"{price.donated:g} is more than explicit, {price.explicit:g}")
    if not 1 <= unit <= LONGEST_UNIT or unit != int(unit):
        fail(f"{at}.charging_unit", f"must be whole seconds from 1 s to 1 h, not {unit:g} s")
    if budget is not None:
        _check_budget(budget, f"{at}.budget", fail)


def _check_budget(budget: BudgetConfig, at: str, fail: Fail) -> None:
    from adaptor.budget.accounting.periods import Calendar
    from adaptor.budget.errors import BudgetError

    if not (math.isfinite(budget.credits) and budget.credits >= 1e-6):
        fail(f"{at}.credits", f"must be more than 0 (at least 0.000001), not {budget.credits:g}")
    try:
        Calendar("day", budget.zone)
    except BudgetError as error:
        fail(f"{at}.zone", str(error))
