"""The clock of the daemon: the one place where it reads the time of day."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]  # epoch seconds
SKEW = 5.0  # seconds by which the clocks of two machines may differ
FOLLOWED = 2.0
"""Seconds by which the time of day may be set at once without a new start of the daemon's service."""


class SteadyClock:
    """Epoch seconds that pass evenly: if the time of day is set, they go on as if it had not been.

    So silences, pauses and idle times are measured by the monotonic clock.
    """

    def __init__(self, wall: Clock = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._offset = 0.0  # from monotonic seconds to epoch seconds
        self.adopt()

    def adopt(self) -> None:
        """Go by the time of day as it is now."""
        monotonic, wall = self._read()
        self._offset = wall - monotonic

    def __call__(self) -> float:
        monotonic, wall = self._read()
        if abs(wall - monotonic - self._offset) <= FOLLOWED:
            self._offset = wall - monotonic
        return monotonic + self._offset

    @property
    def step(self) -> float:
        """Seconds by which the time of day was set forward since `adopt`, negative: back; 0: it was not."""
        monotonic, wall = self._read()
        step = wall - monotonic - self._offset
        return step if abs(step) > FOLLOWED else 0.0

    def _read(self) -> tuple[float, float]:
        """Both clocks at one instant: a process that is stopped between two looks reads them again."""
        while True:
            monotonic, wall = self._monotonic(), self._wall()
            if self._monotonic() - monotonic < FOLLOWED / 2:
                return monotonic, wall


system_clock = SteadyClock()
"""Clock of this process; each service of the daemon adopts the time of day when it begins."""


def midnight(now: float) -> float:
    """The last local midnight, epoch seconds."""
    local = time.localtime(now)
    return time.mktime((local.tm_year, local.tm_mon, local.tm_mday, 0, 0, 0, 0, 0, -1))
