"""One look at the scheduler that serves several questions of the same moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

FRESH = 2.0
"""Seconds for which a look also serves other questions."""


class SharedLook(Generic[T]):
    """`queue_state` and `nodes` need the same answers, often one right after the other; so do the partitions
    of a site."""

    def __init__(self, look: Callable[[], T]) -> None:
        self._look = look
        self._latest: tuple[float, T] | None = None
        self._served: set[str] = set()
        """Who has been told of it."""

    def take(self, asker: str) -> T:
        """What another asker saw just now; for an asker that asks again, a new look.

        Whatever the look raises passes.
        """
        latest, self._latest = self._latest, None
        now = time.monotonic()
        if latest is not None and asker not in self._served and now - latest[0] < FRESH:
            self._latest = latest
            self._served.add(asker)
            return latest[1]
        seen = self._look()
        self._latest, self._served = (now, seen), {asker}
        return seen

    def forget(self) -> None:
        """We have changed something."""
        self._latest = None
