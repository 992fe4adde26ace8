"""The part of a site's configuration that says what its time costs, and how much may be spent there."""

from __future__ import annotations

from typing import Literal

import msgspec

from adaptor.config.ranges import Credits
from adaptor.config.yaml_lines import Fail


class PriceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Credits per hour."""

    explicit: Credits = 1.0
    """Of a processor in formal requests."""
    donated: Credits | None = None
    """Of a processor on donated nodes; None: the same."""
    gpu: Credits | None = None
    """Of a GPU in formal requests, on top of its processors; on donated nodes it is cheaper as these are.
    None: nothing."""


class BudgetConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all bags together may spend at the site."""

    credits: Credits
    """How many may be spent."""
    period: Literal["day", "week", "month", "quarter", "year"] | None = None
    """The budget is for each such period of the calendar; None: once and for all."""
    zone: str = "UTC"
    """The time zone in which periods begin, for instance `Europe/Lisbon`."""


def check_costs(price: PriceConfig, budget: BudgetConfig | None, at: str, fail: Fail) -> None:
    """Check that donated time costs no more than explicit time, and that the time zone exists."""
    from adaptor.budget.accounting.periods import Calendar
    from adaptor.budget.errors import BudgetError

    if price.donated is not None and price.donated > price.explicit:
        fail(f"{at}.price.donated", f"{price.donated:g} is more than explicit, {price.explicit:g}")
    if budget is None:
        return
    try:
        Calendar("day", budget.zone)
    except BudgetError as error:
        fail(f"{at}.budget.zone", str(error))
