"""Dividing tasks among sites so that all of them are expected to be finished at the same time."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from adaptor.crafting.multisite.capacity import Capacity

_PRECISE = 1e-3
"""Seconds within which two sites count as equally fast."""


class Level(msgspec.Struct, frozen=True):
    """Tasks by site, and the instant at which the last of them is expected to be finished."""

    shares: dict[str, int]
    finish: float

    @property
    def assigned(self) -> int:
        return sum(self.shares.values())


def level(capacities: Mapping[str, Capacity], tasks: int, now: float) -> Level:
    """Pour the tasks over the capacities, as water finds its level.

    That is the same as giving one task after the other to whichever site could finish it first, which
    minimises the time of the last one (each site's tasks are alike). Found by bisection over the time;
    of what is finished at that very instant each site gets a part in proportion to what it could do then.
    The shares sum up to `tasks`, or to what the sites can finish at all where that is less. A site whose
    capacity grows at any instant never gets less for it.
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
    """So many, at most their sum, divided by D'Hondt's method: a larger weight never gets less for it."""
    total = max(1, sum(weights.values()))
    parts = {name: number * weight // total for name, weight in weights.items()}
    for _ in range(number - sum(parts.values())):
        parts[min(parts, key=lambda name: (-weights[name] / (parts[name] + 1), name))] += 1
    return parts


def _sum(capacities: Mapping[str, Capacity], time: float) -> int:
    return sum(each.by(time) for each in capacities.values())
