"""The slots that bags run on by their quotes, as chosen or as planned anew."""

from __future__ import annotations

from collections.abc import Mapping

from adaptor.scheduling.bag import Bag

INTERVAL = 10.0
"""Seconds between two looks at whether they will do."""


class ChosenSlots:
    """Nothing of it is written down: after a restart the next look finds the same."""

    def __init__(self) -> None:
        self._planned: dict[int, Mapping[str, int]] = {}
        self._looked: dict[int, float] = {}

    def of(self, bag: Bag) -> Mapping[str, int]:
        """By site: tasks that may run there at the same time; empty: nothing was chosen."""
        return self._planned.get(bag.id, bag.spec.slots)

    def replace(self, bag: int, slots: Mapping[str, int]) -> None:
        self._planned[bag] = slots

    def is_due(self, bag: int, now: float) -> bool:
        """Whether it is time for another look, which is taken to be made then."""
        last = self._looked.get(bag)
        if last is not None and 0 <= now - last < INTERVAL:
            return False
        self._looked[bag] = now
        return True
