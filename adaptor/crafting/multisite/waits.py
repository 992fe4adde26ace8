"""Learns how much later, or earlier, than predicted a site starts requests. Pure."""

from __future__ import annotations

import math

WEIGHT = 0.5  # of the newest request in the average
SHARES = 50  # waits that are kept as shares of the predicted ones, the newest
LEAST_WAIT = 60.0  # seconds: shares of shorter predicted waits say little
LARGEST_SHARE = 20.0
HALF_LIFE = 3600.0
"""Seconds after which learned lateness counts half, so that a site gets requests again after a bad hour."""

Class = tuple[int, int]  # powers of two of the processors, and of the minutes of tr; 0: tr is not known


class WaitLearner:
    """An exponential average of the lateness of a site's requests by class, and the shares of their waits.

    Widths and times are grouped by powers of two, because wide and long requests wait differently from narrow
    and short ones. An unknown class uses what is known of the nearest width. All times are seconds.
    """

    def __init__(self) -> None:
        self._late: dict[Class, tuple[float, float]] = {}
        """Average, and time of its last update, by class, and by width with tr 0."""
        self.shares: tuple[float, ...] = ()
        """The newest real waits as shares of the predicted ones, the oldest first; never changed in place."""

    def started(self, processors: int, lateness: float, at: float, tr: float | None = None) -> None:
        """Learn that a request started `lateness` seconds later than predicted (earlier, if negative)."""
        for kind in _classes(processors, tr):
            late = max(0.0, lateness)
            if kind in self._late:
                late = WEIGHT * late + (1 - WEIGHT) * self._faded(kind, at)
            self._late[kind] = (late, at)

    def gave_up(self, processors: int, lateness: float, at: float, tr: float | None = None) -> None:
        """Learn that a request had not started `lateness` seconds after its prediction: a lower bound."""
        for kind in _classes(processors, tr):
            known = self._faded(kind, at) if kind in self._late else 0.0
            self._late[kind] = (max(known, lateness), at)

    def waited(
        self,
        processors: int,
        predicted: float,
        started: float | None,
        ended: float | None,
        submitted: float | None = None,
        tr: float | None = None,
    ) -> bool:
        """Learn from a request with a predicted start; True if its wait is over."""
        if started is not None and submitted is not None and predicted - submitted >= LEAST_WAIT:
            share = max(0.0, started - submitted) / (predicted - submitted)
            self.shares = (*self.shares, min(LARGEST_SHARE, share))[-SHARES:]
        if started is not None:
            self.started(processors, started - predicted, started, tr)
        elif ended is not None and ended > predicted:
            self.gave_up(processors, ended - predicted, ended, tr)
        return started is not None or ended is not None

    def copy(self) -> WaitLearner:
        """A copy for a snapshot."""
        twin = WaitLearner()
        twin._late = self._late.copy()
        twin.shares = self.shares
        return twin

    def lateness(self, processors: int, now: float, tr: float | None = None) -> float:
        """Expected lateness of a request of this width, and of this time where that is known; 0 before the
        first observation."""
        if not self._late:
            return 0.0
        wanted = _width(processors), _length(tr)
        if wanted not in self._late:
            widths = [width for width, length in self._late if not length]
            wanted = min(widths, key=lambda width: (abs(width - wanted[0]), width)), 0
        return self._faded(wanted, now)

    def worst(self, now: float) -> float | None:
        """The largest lateness of any width; None before the first observation."""
        return max((self._faded(kind, now) for kind in self._late if not kind[1]), default=None)

    def _faded(self, kind: Class, now: float) -> float:
        late, told = self._late[kind]
        return late * math.pow(0.5, max(0.0, now - told) / HALF_LIFE)


def _classes(processors: int, tr: float | None) -> list[Class]:
    """Classes from which a request is learned: its width, and its class if its time is known."""
    width, length = _width(processors), _length(tr)
    return [(width, 0), (width, length)] if length else [(width, 0)]


def _width(processors: int) -> int:
    return max(1, processors).bit_length()


def _length(tr: float | None) -> int:
    return 0 if tr is None else max(1, math.ceil(tr / 60)).bit_length()
