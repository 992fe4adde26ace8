"""The tasks of other bags that a bag shares its slots with until it is done. Pure.

A free slot goes to the bag with the highest priority, then to the one that holds the fewest processors, then
to the oldest (`scheduling.placement.in_turn`). While there are as many slots as bags, all have one share.
Where bags are more than slots, the oldest hold one slot each, and the next begins where one of them ends.
"""

from __future__ import annotations

import heapq

import msgspec


class OtherBags(msgspec.Struct, frozen=True):
    """The waiting tasks of other bags that get the same slots; those with a lower priority wait."""

    first: int = 0
    """Tasks of all bags with a higher priority."""
    older: tuple[int, ...] = ()
    """Tasks of each older bag of the same priority, the oldest first."""
    younger: tuple[int, ...] = ()

    def served_before(self, waiting: int, slots: int) -> float:
        """Tasks of other bags that start before the last of `waiting` ones does.

        Args:
            slots: tasks of all bags that run at the same time.
        """
        held = [0] * slots  # by slot: tasks of older bags that start there while each bag holds one slot
        for tasks in self.older:
            heapq.heapreplace(held, held[0] + tasks)
        begins = held[0]
        left = [*(tasks - begins for tasks in held), *self.younger]
        together = min((slots - 1) * waiting, sum(min(tasks, waiting) for tasks in left))
        return float(self.first + slots * begins + together)
