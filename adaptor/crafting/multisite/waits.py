"""How much later than predicted a site starts requests: learned from those that have waited there. Pure."""

from __future__ import annotations

import math

WEIGHT = 0.5
"""Of the newest request in the average."""
HALF_LIFE = 3600.0
"""Seconds after which half of what was learned is forgotten: a site is tried again after a bad hour."""


class WaitLearner:
    """An exponential average of the lateness of a site's requests, by their width.

    The width counts in powers of two, since wide requests wait in other ways than narrow ones; for a
    width that nothing is known of, the nearest one speaks. All times are seconds.
    """

    def __init__(self) -> None:
        self._late: dict[int, tuple[float, float]] = {}
        """By power of two: the average, and when it was last told of a request."""

    def started(self, processors: int, lateness: float, at: float) -> None:
        """A request started so much later than predicted (earlier, where negative)."""
        width = _width(processors)
        late = max(0.0, lateness)
        if width in self._late:
            late = WEIGHT * late + (1 - WEIGHT) * self._faded(width, at)
        self._late[width] = (late, at)

    def gave_up(self, processors: int, lateness: float, at: float) -> None:
        """A request had not started so long after it should have: the site is at least that late."""
        width = _width(processors)
        known = self._faded(width, at) if width in self._late else 0.0
        self._late[width] = (max(known, lateness), at)

    def waited(self, processors: int, predicted: float, started: float | None, ended: float | None) -> bool:
        """Learn from a request that was predicted to start; whether its wait is over."""
        if started is not None:
            self.started(processors, started - predicted, started)
        elif ended is not None and ended > predicted:
            self.gave_up(processors, ended - predicted, ended)
        return started is not None or ended is not None

    def copy(self) -> WaitLearner:
        """What is known now, for a decision to look at."""
        found = WaitLearner()
        found._late = self._late.copy()
        return found

    def lateness(self, processors: int, now: float) -> float:
        """How much later than predicted a request of this width will start; 0 where nothing is known."""
        if not self._late:
            return 0.0
        wanted = _width(processors)
        return self._faded(min(self._late, key=lambda width: (abs(width - wanted), width)), now)

    def worst(self, now: float) -> float | None:
        """The largest lateness of any width; None before the first request has started."""
        return max((self._faded(width, now) for width in self._late), default=None)

    def _faded(self, width: int, now: float) -> float:
        late, told = self._late[width]
        return late * math.pow(0.5, max(0.0, now - told) / HALF_LIFE)


def _width(processors: int) -> int:
    return max(1, processors).bit_length()
