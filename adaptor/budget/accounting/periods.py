"""Calendar periods of an allocation, in a named time zone."""

from __future__ import annotations

import functools
from datetime import datetime, timedelta
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
        first = self._first(at)
        if self.span == "week":
            year, week, _ = first.isocalendar()
            return f"{year}-W{week:02}"
        if self.span == "quarter":
            return f"{first.year}-Q{first.month // 3 + 1}"
        return first.strftime({"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}[self.span])

    def ends(self, at: float) -> float:
        """Epoch seconds at which the next period begins; days are as long as the zone makes them."""
        first = self._first(at)
        if self.span in ("day", "week"):
            return (first + timedelta(days=1 if self.span == "day" else 7)).timestamp()
        months = {"month": 1, "quarter": 3, "year": 12}[self.span]
        year, month = divmod(first.month - 1 + months, 12)
        return first.replace(year=first.year + year, month=month + 1).timestamp()

    def _first(self, at: float) -> datetime:
        """Midnight of the first day of the instant's period."""
        day = datetime.fromtimestamp(at, _zone(self.zone)).replace(hour=0, minute=0, second=0, microsecond=0)
        if self.span == "week":
            return day - timedelta(days=day.weekday())
        if self.span == "day":
            return day
        month = {"month": day.month, "quarter": (day.month - 1) // 3 * 3 + 1, "year": 1}[self.span]
        return day.replace(month=month, day=1)


@functools.lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BudgetError(
            f"time zone {name!r} is not known here; write a name such as Europe/Lisbon or UTC"
        ) from error
