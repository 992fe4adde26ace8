"""Where the tasks of a bag shall run, as somebody decided who knows of costs and deadlines. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from adaptor.crafting.multisite.capacity import Capacity
from adaptor.crafting.multisite.levelling import Level


class TargetShares(msgspec.Struct, frozen=True, kw_only=True):
    """The uncovered tasks of one bag, by site."""

    shares: dict[str, int]
    seconds: float
    """From now until all of them are expected to be done; may be `math.inf`."""
    reason: str
    """In one sentence with the numbers."""


def granted(wish: TargetShares, capacities: Mapping[str, Capacity], tasks: int, now: float) -> Level:
    """The wish as far as the sites can do it, and no more than these tasks.

    What a site cannot do goes to no other: the next wish will say where it shall go.
    """
    shares = {}
    for name, capacity in capacities.items():
        shares[name] = int(min(tasks, wish.shares.get(name, 0), capacity.total))
        tasks -= shares[name]
    return Level(shares, now + wish.seconds)
