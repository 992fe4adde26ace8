"""How fast a bag moves, from its snapshots."""

from __future__ import annotations

from collections import deque

WINDOW = 30.0
"""Seconds over which the rate is taken."""


class Pace:
    """The rate of one bag's tasks over the last half minute."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, now: float, ended: int) -> None:
        """`ended`: tasks that have ended by now."""
        self._seen.append((now, ended))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW:
            self._seen.popleft()

    @property
    def rate(self) -> float:
        """Tasks per second; 0 while nothing is known."""
        if not self._seen:
            return 0.0
        (first, before), (last, after) = self._seen[0], self._seen[-1]
        return max(0, after - before) / (last - first) if last > first else 0.0


def rate_text(rate: float) -> str:
    """`12 tasks/s`, `1.5 tasks/min`, `2 tasks/h`; empty for 0."""
    for unit, seconds in (("s", 1), ("min", 60), ("h", 3600)):
        if rate * seconds >= 1:
            value = rate * seconds
            return f"{value:,.0f} tasks/{unit}" if value >= 10 else f"{value:.1f} tasks/{unit}"
    return ""
