"""A sample of the runtimes of a bag's finished tasks, for forecasts: small, and the same after a restart."""

from __future__ import annotations

MOST = 1000
"""Runtimes that are kept, at most."""


class RuntimeSample:
    """The runtimes of every task whose number is a multiple of `every`, which doubles as the bag grows.

    The sample follows from the numbers of the tasks alone, so a daemon that is restarted draws the same.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._runtimes: dict[int, float] = {}
        self.every = 1
        """One task in so many is looked at."""

    def add(self, task: int, runtime: float) -> None:
        """A task finished after `runtime` seconds."""
        if task % self.every:
            return
        self._runtimes[task] = runtime
        while len(self._runtimes) > self._most:
            self.every *= 2
            self._runtimes = {
                number: each for number, each in self._runtimes.items() if not number % self.every
            }

    @property
    def runtimes(self) -> tuple[float, ...]:
        """Seconds, in the order in which the tasks finished."""
        return tuple(self._runtimes.values())

    @property
    def places(self) -> tuple[int, ...]:
        """The numbers of those tasks, in the same order."""
        return tuple(self._runtimes)
