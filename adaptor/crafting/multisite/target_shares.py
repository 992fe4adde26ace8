"""Target task shares per site, computed elsewhere from cost and deadline. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from adaptor.crafting.multisite.capacity import Capacity
from adaptor.crafting.multisite.levelling import Level


class TargetShares(msgspec.Struct, frozen=True, kw_only=True):
    """The uncovered tasks of one bag, by site."""

    shares: dict[str, int]
    seconds: float
    """Seconds from now until the last task is expected to end; may be `math.inf`."""
    reason: str
    """Why these shares, in one sentence with the numbers."""


def granted(target: TargetShares, capacities: Mapping[str, Capacity], tasks: int, now: float) -> Level:
    """The target shares, limited to `tasks` and to the capacity of each site.

    Tasks beyond a site's capacity go to no other site: the next target shares will assign them.
    """
    shares = {}
    for name, capacity in capacities.items():
        shares[name] = int(min(tasks, target.shares.get(name, 0), capacity.total))
        tasks -= shares[name]
    return Level(shares, now + target.seconds)
