"""The clock of the daemon: the one place where it reads the time of day."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Epoch seconds."""


def system_clock() -> float:
    """Epoch seconds, as this machine has them."""
    return time.time()


def midnight(now: float) -> float:
    """The last local midnight, epoch seconds."""
    local = time.localtime(now)
    return time.mktime((local.tm_year, local.tm_mon, local.tm_mday, 0, 0, 0, 0, 0, -1))
