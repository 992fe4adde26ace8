"""Forecasts as they were made last: one takes up to 25 ms, and every step and every `status` asks for it."""

from __future__ import annotations

import math
from collections.abc import Callable

from adaptor.budget.estimation.forecast import Forecast

INTERVAL = 10.0
"""Seconds after which the forecast of a bag is made anew."""
SPACING = 0.2
"""Seconds between two of them, where there is an old one to go on with: many bags are looked at in turn."""
OLD = 60.0
"""Seconds after which one is nothing to go on with."""


class Outlooks:
    """Nothing of it is written down: forecasts follow from what the journal knows."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[float, Forecast]] = {}
        self._last = -math.inf

    def of(self, bag: int, now: float, make: Callable[[], Forecast | None]) -> Forecast | None:
        """The forecast of a bag, by `make` where that is due; None: too little is known yet."""
        known = self._made.get(bag)
        if known is not None and not self._is_due(now, known[0]):
            return known[1]
        found = make()
        if found is not None:
            self._made[bag], self._last = (now, found), now
        return found

    def _is_due(self, now: float, made: float) -> bool:
        if 0 <= now - self._last < SPACING:
            return not 0 <= now - made < OLD
        return not 0 <= now - made < INTERVAL
