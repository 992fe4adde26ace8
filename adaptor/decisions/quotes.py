"""Slots of bags that were bought from a quote, as chosen or as planned anew (BaTS)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from adaptor.decisions.memory import Memory
from adaptor.scheduling.facts import BagFacts

INTERVAL = 10.0
"""Seconds between two checks of the slots."""


def slots_by_quote(memory: Memory, bag: BagFacts) -> Mapping[str, int]:
    """By site: tasks that may run there at the same time; empty: nothing was chosen."""
    return memory.slots.get(bag.id, bag.spec.slots)


def is_due(memory: Memory, bag: int, now: float) -> bool:
    """Whether it is time for another look."""
    last = memory.looked.get(bag)
    return last is None or not 0 <= now - last < INTERVAL


def looked_at(memory: Memory, bag: int, now: float) -> Memory:
    return msgspec.structs.replace(memory, looked={**memory.looked, bag: now})


def with_slots(memory: Memory, bag: int, slots: Mapping[str, int]) -> Memory:
    return msgspec.structs.replace(memory, slots={**memory.slots, bag: dict(slots)})
