"""Budgets that cannot be, or that nothing keeps, and the number that would do."""

from __future__ import annotations

from adaptor.errors import UsageError
from adaptor.units import format_duration


class BudgetError(UsageError, ValueError):
    """A price, a unit, a period or an amount that cannot be; the message names it and the way out."""


class OverBudgetError(BudgetError):
    """A reservation that a budget does not hold."""

    def __init__(self, message: str, *, needed: int, left: int) -> None:
        """`needed` and `left` are millionths of a credit."""
        super().__init__(message)
        self.needed, self.left = needed, left


class TooManyProcessorsError(OverBudgetError):
    """The pilots of a key's bags would hold more processors than its limit; no credits are missing."""

    def __init__(self, message: str) -> None:
        super().__init__(message, needed=0, left=0)


class InfeasibleError(BudgetError):
    """A deadline or a budget that no allocation keeps."""

    def __init__(self, message: str, *, needed_seconds: float | None, needed_credits: float | None) -> None:
        """`needed_seconds`, `needed_credits`: enough for the tasks; None: this is not what is missing."""
        super().__init__(message)
        self.needed_seconds, self.needed_credits = needed_seconds, needed_credits


def too_late(tasks: int, deadline: float, needed: float) -> InfeasibleError:
    return InfeasibleError(
        f"{tasks:,} tasks cannot be done in {format_duration(deadline)}: "
        f"they need {format_duration(needed)} on all processors",
        needed_seconds=needed,
        needed_credits=None,
    )


def too_dear(tasks: int, budget: float, needed: float, when: str) -> InfeasibleError:
    return InfeasibleError(
        f"{tasks:,} tasks{when} cost {needed:,.6g} credits at the least, and the budget is {budget:,.6g}",
        needed_seconds=None,
        needed_credits=needed,
    )
