"""The pause between two looks at a spool: short while messages pass, longer while none does."""

from __future__ import annotations

QUICKEST = 0.1
"""Seconds between two looks, and between two files of one writer."""
SLOWEST = 2.0
_GROWTH = 1.5


class Pace:
    """Seconds. Pure."""

    def __init__(self, slowest: float = SLOWEST) -> None:
        self.slowest = slowest
        self.pause = QUICKEST

    def speed_up(self) -> None:
        """The last look found something, or an answer is expected."""
        self.pause = QUICKEST

    def slow_down(self) -> None:
        """The last look found nothing."""
        self.pause = min(self.slowest, self.pause * _GROWTH)
