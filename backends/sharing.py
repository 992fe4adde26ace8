"""One look at the scheduler that serves two questions of the same moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

FRESH = 2.0
"""Seconds for which a look also serves whoever asks something else."""


class SharedLook(Generic[T]):
    """`queue_state` and `nodes` need the same answers, often one right after the other."""

    def __init__(self, look: Callable[[], T]) -> None:
        self._look = look
        self._latest: tuple[float, str, T] | None = None

    def take(self, asker: str) -> T:
        """What another asker saw just now, once; else, as for an asker that asks again, a new look.

        Whatever the look raises passes.
        """
        latest, self._latest = self._latest, None
        now = time.monotonic()
        if latest is not None and latest[1] != asker and now - latest[0] < FRESH:
            return latest[2]
        seen = self._look()
        self._latest = (now, asker, seen)
        return seen

    def forget(self) -> None:
        """We have changed something."""
        self._latest = None
