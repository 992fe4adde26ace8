"""Learns how much later than predicted a site starts requests. Pure."""

from __future__ import annotations

import math

WEIGHT = 0.5
"""Of the newest request in the average."""
HALF_LIFE = 3600.0
"""Seconds after which learned lateness counts half, so that a site gets requests again after a bad hour."""


class WaitLearner:
    """An exponential average of the lateness of a site's requests, by their width.

    Widths are grouped by powers of two, because wide requests wait differently from narrow ones. An unknown
    width uses the nearest known one. All times are seconds.
    """

    def __init__(self) -> None:
        self._late: dict[int, tuple[float, float]] = {}
        """By power of two: the average, and the time of its last update."""

    def started(self, processors: int, lateness: float, at: float) -> None:
        """Learn that a request started `lateness` seconds later than predicted (earlier, if negative)."""
        width = _width(processors)
        late = max(0.0, lateness)
        if width in self._late:
            late = WEIGHT * late + (1 - WEIGHT) * self._faded(width, at)
        self._late[width] = (late, at)

    def gave_up(self, processors: int, lateness: float, at: float) -> None:
        """Learn that a request had not started `lateness` seconds after its prediction: a lower bound."""
        width = _width(processors)
        known = self._faded(width, at) if width in self._late else 0.0
        self._late[width] = (max(known, lateness), at)

    def waited(self, processors: int, predicted: float, started: float | None, ended: float | None) -> bool:
        """Learn from a request with a predicted start; True if its wait is over."""
        if started is not None:
            self.started(processors, started - predicted, started)
        elif ended is not None and ended > predicted:
            self.gave_up(processors, ended - predicted, ended)
        return started is not None or ended is not None

    def copy(self) -> WaitLearner:
        """A copy for a snapshot."""
        found = WaitLearner()
        found._late = self._late.copy()
        return found

    def lateness(self, processors: int, now: float) -> float:
        """Expected lateness of a request of this width; 0 before the first observation."""
        if not self._late:
            return 0.0
        wanted = _width(processors)
        return self._faded(min(self._late, key=lambda width: (abs(width - wanted), width)), now)

    def worst(self, now: float) -> float | None:
        """The largest lateness of any width; None before the first observation."""
        return max((self._faded(width, now) for width in self._late), default=None)

    def _faded(self, width: int, now: float) -> float:
        late, told = self._late[width]
        return late * math.pow(0.5, max(0.0, now - told) / HALF_LIFE)


def _width(processors: int) -> int:
    return max(1, processors).bit_length()
