"""Credits are counted in whole millionths, so that sums are exact and nothing is lost in splitting."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal

from adaptor.budget.errors import BudgetError

MILLION = 1_000_000
"""Millionths of a credit in one credit. Amounts in this room are whole millionths."""


def millionths(credits: float, what: str) -> int:
    """An amount as people write it, `what` names it in the error.

    Raises:
        BudgetError: it is not a finite number of at least one millionth.
    """
    number = isinstance(credits, int | float) and not isinstance(credits, bool) and math.isfinite(credits)
    if not number or round(credits * MILLION) < 1:
        raise BudgetError(f"{what} must be a number above 0 (at least 0.000001), not {credits!r}")
    return round(credits * MILLION)


def in_credits(amount: int) -> float:
    """Credits as a float, for calculations that need no exactness."""
    return amount / MILLION


def rounded_up(amount: int) -> str:
    """A number of credits to be typed in: three digits that count, never less than the amount."""
    exact = Decimal(amount) / MILLION
    step = Decimal(1).scaleb(max(-6, exact.adjusted() - 2))
    return f"{(exact / step).to_integral_value(ROUND_CEILING) * step:f}"


def format_credits(amount: int) -> str:
    """A short text for people: `12.5`, `1,200`, `0.000001`."""
    digits = 6 if abs(amount) < MILLION else 2
    return f"{Decimal(amount) / MILLION:,.{digits}f}".rstrip("0").rstrip(".")
