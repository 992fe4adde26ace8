"""Tasks that an open bag may still get: its program refills it as its tasks end, or it does not. Pure."""

from __future__ import annotations

import msgspec

REFILLED = 1 / 8
"""A program refills its bag once it has appended so large a part of the most tasks at a time beyond these."""
KEEPS_UP = 1 / 2  # it does so on while so large a part of the most tasks at a time is unfinished


class Refilling(msgspec.Struct):
    """Counts of the tasks that an open bag got since it last had no unfinished task."""

    most: int
    """The most unfinished tasks at a time."""
    brought: int = 0
    """Tasks that were appended."""

    def append(self, count: int, unfinished: int) -> None:
        """Count more tasks. `unfinished`: of the bag, before them."""
        if not unfinished:
            self.most = self.brought = 0
        self.brought += count
        self.most = max(self.most, unfinished + count)

    def expected(self, unfinished: int) -> int:
        """The tasks to come: as many as came so far, where the program refills its bag; else none.

        Of how long something will go on, how long it has gone on is all that is known.
        """
        refills = self.brought >= (1 + REFILLED) * self.most > 0
        return self.brought if refills and unfinished >= KEEPS_UP * self.most else 0
