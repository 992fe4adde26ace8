"""Mapping what a task took on one site to what it takes on another (BaTS, slide "Compact Sampling")."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.budget.errors import BudgetError
from adaptor.runtimes.task_time import TaskTime


class Line(msgspec.Struct, frozen=True):
    """The runtime on one site as a linear function of that on another, g(x) = a f(x) + b."""

    slope: float
    offset: float

    def __call__(self, runtime: float) -> float:
        return max(0.0, self.slope * runtime + self.offset)


def regression(known: Sequence[float], wanted: Sequence[float]) -> Line:
    """The line through the runtimes of the same tasks on two sites, by least squares.

    Where the tasks are all equally long, or longer there means shorter here, the ratio of the means
    stands in: so few points then say no more.

    Raises:
        BudgetError: there is no task that ran on both.
    """
    if not known or len(known) != len(wanted):
        raise BudgetError("two sites can be compared only by tasks that ran on both")
    x, y = sum(known) / len(known), sum(wanted) / len(wanted)
    spread = sum((each - x) ** 2 for each in known)
    common = sum((one - x) * (other - y) for one, other in zip(known, wanted, strict=True))
    if spread <= 1e-12 * x * x or common <= 0:
        return Line(y / x, 0.0)
    slope = common / spread
    return Line(slope, y - slope * x)


Seen = Mapping[str, Mapping[int, float]]
"""Runtimes by site, then by the task's place in the bag."""


def learn(seen: Seen) -> dict[str, TaskTime]:
    """What a task takes on each site, from all samples: those of other sites are mapped by regression.

    A task that ran on the site itself counts as it ran there.

    Raises:
        BudgetError: a site has no finished task in common with another, or none at all.
    """
    found = {}
    for site, own in seen.items():
        runtimes = dict(own)
        for other, there in seen.items():
            missing = [task for task in there if task not in runtimes]
            if other == site or not missing:
                continue
            both = [task for task in there if task in own]
            if not both:
                raise BudgetError(f"no task has finished on both {site} and {other}: they cannot be compared")
            line = regression([there[task] for task in both], [own[task] for task in both])
            runtimes.update({task: line(there[task]) for task in missing})
        if not runtimes:
            raise BudgetError(f"no task has finished on {site}: nothing is known of its runtimes")
        found[site] = _moments(list(runtimes.values()))
    return found


def _moments(runtimes: Sequence[float]) -> TaskTime:
    mean = sum(runtimes) / len(runtimes)
    variance = sum((each - mean) ** 2 for each in runtimes) / max(1, len(runtimes) - 1)
    return TaskTime(mean, math.sqrt(variance))
