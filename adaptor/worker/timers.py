"""The times at which a worker has something to do, in one heap. All are monotonic seconds."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

NEVER = float("inf")


class Timer:
    """Calls a function once when its time has come. It can be set again, to an earlier or a later time."""

    def __init__(self, timers: Timers, act: Callable[[float], None]) -> None:
        self.due = NEVER
        self.act = act
        self.queued = NEVER
        """The time of its entry in the heap that comes first: its own time, or an earlier one."""
        self._timers = timers

    def set(self, due: float) -> None:
        """Set the timer to this time instead of any other; NEVER: it is not due at all."""
        self.due = due
        if due < self.queued:
            self._timers.push(self)

    def advance(self, due: float) -> None:
        """Set the timer to this time unless it is due before."""
        self.set(min(due, self.due))


class Timers:
    """A timer that is set to a later time keeps its entry until it comes up: most are set repeatedly."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._numbers = count()
        self._timers = 0

    def new(self, act: Callable[[float], None]) -> Timer:
        """A timer that is not set. `act` gets the present time."""
        self._timers += 1
        return Timer(self, act)

    def push(self, timer: Timer) -> None:
        """Have `timer` come up when it is due."""
        if len(self._heap) > 4 * self._timers:  # entries that an earlier one has replaced
            self._heap = [entry for entry in self._heap if entry[0] == entry[2].queued]
            heapq.heapify(self._heap)
        timer.queued = timer.due
        heapq.heappush(self._heap, (timer.due, next(self._numbers), timer))

    def next_due(self) -> float:
        """Time at which `run` has something to do; NEVER: no timer is set."""
        while self._heap:
            at, _, timer = self._heap[0]
            if at == timer.queued == timer.due:
                return at
            self._drop_first()
        return NEVER

    def run(self, now: float) -> None:
        """Have everything done that is due, in the order of the times."""
        while (due := self.next_due()) <= now and due < NEVER:
            timer = self._heap[0][2]
            timer.due = NEVER
            self._drop_first()
            timer.act(now)

    def _drop_first(self) -> None:
        """Take out the first entry; if its timer is due later, it gets another."""
        at, _, timer = heapq.heappop(self._heap)
        if at == timer.queued:
            timer.queued = NEVER
            if timer.due < NEVER:
                self.push(timer)
