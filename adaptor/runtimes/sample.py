"""A bounded sample of the runtimes of a bag's finished tasks: the same after a restart.

Of what has a heavy tail, mean and deviation say too little.
"""

from __future__ import annotations

from collections.abc import Sequence

MOST = 1000  # runtimes in a sample, at most


class RuntimeSample:
    """The runtimes of every task whose number is a multiple of `every`, which doubles as the bag grows.

    The sample follows from the numbers of the tasks alone, so a daemon that is restarted draws the same.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._runtimes: dict[int, float] = {}
        self._sorted: list[float] | None = None
        self.every = 1

    def add(self, task: int, runtime: float) -> None:
        """A task finished after `runtime` seconds."""
        if task % self.every:
            return
        self._sorted = None
        self._runtimes[task] = runtime
        while len(self._runtimes) > self._most:
            self.every *= 2
            self._runtimes = {
                number: seconds for number, seconds in self._runtimes.items() if not number % self.every
            }

    def __len__(self) -> int:
        return len(self._runtimes)

    @property
    def runtimes(self) -> tuple[float, ...]:
        """Seconds, in the order in which the tasks finished."""
        return tuple(self._runtimes.values())

    @property
    def places(self) -> tuple[int, ...]:
        """The numbers of those tasks, in the same order."""
        return tuple(self._runtimes)

    @property
    def longest(self) -> float:
        """Seconds; 0: none is known."""
        return self.ordered[-1] if self._runtimes else 0.0

    @property
    def ordered(self) -> Sequence[float]:
        """Seconds, the shortest first."""
        if self._sorted is None:
            self._sorted = sorted(self._runtimes.values())
        return self._sorted
