"""Calendar periods of an allocation, in a named time zone."""

from __future__ import annotations

import functools
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from adaptor.budget.errors import BudgetError

Span = Literal["day", "week", "month", "quarter", "year"]


class Calendar(msgspec.Struct, frozen=True):
    """Consecutive periods; each begins at midnight of its first day, weeks on Monday."""

    span: Span
    zone: str = "UTC"
    """A name of the IANA data base, for instance `Europe/Lisbon`."""

    def __post_init__(self) -> None:
        """Raises BudgetError: there is no such time zone."""
        _zone(self.zone)

    def label(self, at: float) -> str:
        """Names the period of an instant: `2026-11-21`, `2026-W47`, `2026-11`, `2026-Q4` or `2026`."""
        there = datetime.fromtimestamp(at, _zone(self.zone))
        if self.span == "quarter":
            return f"{there.year}-Q{(there.month - 1) // 3 + 1}"
        formats = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m", "year": "%Y"}
        return there.strftime(formats[self.span])


@functools.lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BudgetError(
            f"time zone {name!r} is not known here; write a name such as Europe/Lisbon or UTC"
        ) from error
