"""Divide tasks among sites so that all sites are expected to finish at the same time."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from adaptor.crafting.multisite.capacity import Capacity

_PRECISE = 1e-3
"""Seconds within which two sites count as equally fast."""


class Level(msgspec.Struct, frozen=True):
    """Tasks by site, and the expected end of the last of them (epoch seconds)."""

    shares: dict[str, int]
    finish: float

    @property
    def assigned(self) -> int:
        return sum(self.shares.values())


def level(capacities: Mapping[str, Capacity], tasks: int, now: float) -> Level:
    """Divide the tasks so that the last one ends as early as possible.

    The result equals assigning one task after another to the site that could finish it first (the tasks
    of a site are alike). Bisection over time finds the common finish. Tasks that end at that very instant
    go to the sites in proportion to the tasks that each could finish then. The shares sum up to `tasks`,
    or to all that the sites can ever finish if that is less. A site never gets fewer tasks because its
    capacity grew.
    """
    target = int(min(tasks, sum(each.total for each in capacities.values())))
    if target <= 0:
        return Level(dict.fromkeys(capacities, 0), now)
    early, late = now, now + 60.0
    while _sum(capacities, late) < target:
        early, late = late, now + 2 * (late - now)
    while late - early > _PRECISE:
        middle = (early + late) / 2
        if _sum(capacities, middle) < target:
            early = middle
        else:
            late = middle
    shares = {name: each.by(early) for name, each in capacities.items()}
    more = {name: each.by(late) - shares[name] for name, each in capacities.items()}
    for name, tasks in _in_proportion(more, target - sum(shares.values())).items():
        shares[name] += tasks
    return Level(shares, late)


def _in_proportion(weights: Mapping[str, int], number: int) -> dict[str, int]:
    """Divide `number` (at most the sum of weights) by D'Hondt's method: monotone in each weight."""
    total = max(1, sum(weights.values()))
    parts = {name: number * weight // total for name, weight in weights.items()}
    for _ in range(number - sum(parts.values())):
        parts[min(parts, key=lambda name: (-weights[name] / (parts[name] + 1), name))] += 1
    return parts


def _sum(capacities: Mapping[str, Capacity], time: float) -> int:
    return sum(each.by(time) for each in capacities.values())
