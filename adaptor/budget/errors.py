"""What can be wrong with a budget."""

from __future__ import annotations

from adaptor.errors import UsageError


class BudgetError(UsageError, ValueError):
    """A price, a unit, a period or an amount that cannot be; the message names it and the way out."""


class OverBudgetError(BudgetError):
    """A reservation that a budget does not hold."""

    def __init__(self, message: str, *, needed: int, left: int) -> None:
        """`needed` and `left` are millionths of a credit."""
        super().__init__(message)
        self.needed, self.left = needed, left
