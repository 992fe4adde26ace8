"""How long to pause between two looks at a mailbox: short while things move, longer while nothing does."""

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

    def hurry(self) -> None:
        """Something was found, or an answer is expected."""
        self.pause = QUICKEST

    def tire(self) -> None:
        """Nothing was found."""
        self.pause = min(self.slowest, self.pause * _GROWTH)
