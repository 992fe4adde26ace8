"""Forecast of a wait by past ones: those of the jobs that were most like it, of any user. Pure.

No plan of the queue foresees what fair share, priorities and limits of users do to a job; what they did to
others shows it. The plainest are waits of the same shape (`past_by_shape`). Jobs are nearer if they ask for
as much and as long, are of the same user, have as many jobs in front and have waited as long (k nearest;
Smith, Taylor and Foster 1999 have templates). The weight of such waits next to the plan follows from the
errors of all (`weights_of`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence

import msgspec

from adaptor.forecast.estimate import estimate
from adaptor.forecast.past_by_shape import PastByShape
from adaptor.model import Estimate

KEPT = 2000  # waits that count, the newest
FEWEST = 30  # waits below which nothing is said
NEAREST = 100
"""Waits from which one is foreseen. On snapshots of Graham (6 to 12 May 2021) 30 to 300 came as near."""
_SIZE, _LIMIT, _GPUS, _WAITED, _AHEAD, _OWNER = 1.0, 1.0, 3.0, 0.25, 0.25, 0.5
"""Distances: by doubling of processors, limit, time waited and own jobs in front; GPUs or not; another user.
On the same days, doubles of the last three changed the share within a factor of 2 by a point."""
LEAST = 60.0  # seconds: shorter waits do not differ
Weights = tuple[float, float, float]
"""Weights of the plan, of like jobs, and of jobs of the same shape; together 1."""
_PARTS = 4
WEIGHTS: tuple[Weights, ...] = tuple(
    (plan / _PARTS, like / _PARTS, (_PARTS - plan - like) / _PARTS)
    for plan in range(_PARTS, -1, -1)
    for like in range(_PARTS - plan, -1, -1)
)
PLAN_ALONE = WEIGHTS[0]


class Waiting(msgspec.Struct, frozen=True):
    """Facts about a job that waits, or about a request."""

    processors: int
    limit: float
    """Seconds."""
    gpus: bool = False
    owner: str = ""
    """A salted hash of its user; empty: not known."""
    ahead: int = 0
    """Jobs of its user that waited before it."""
    waited: float = 0.0
    """Seconds by then."""


class PastWait(msgspec.Struct, frozen=True):
    """A job that has started."""

    job: Waiting
    wait: float
    """Seconds from then."""


class ByPast(msgspec.Struct, frozen=True):
    """The wait of a job as past ones were, seconds from now."""

    like: Estimate
    """Estimate by the jobs that are nearest to it."""
    shape: Estimate
    """Estimate by the jobs of its shape."""


class PastWaits:
    """The newest waits, asked for those that are nearest to a job."""

    def __init__(self, waits: Sequence[PastWait] = ()) -> None:
        """`waits`: the oldest first."""
        self._known = [(*_place(past.job), past.wait) for past in waits[-KEPT:]]
        self._shapes = PastByShape()
        for past in waits[-KEPT:]:
            self._shapes.started(past.job.processors, past.job.limit, past.job.gpus, wait=past.wait)

    def __len__(self) -> int:
        return len(self._known)

    def of(self, job: Waiting) -> ByPast | None:
        """Estimates of a job's wait by past ones; None: too few waits are known."""
        shape = self._shapes.like(job.processors, job.limit, job.gpus)
        if len(self._known) < FEWEST or shape is None:
            return None
        return ByPast(self._like(job), shape)

    def _like(self, job: Waiting) -> Estimate:
        size, limit, gpus, waited, ahead, owner = _place(job)
        distances = [
            (
                abs(a - size)
                + abs(b - limit)
                + (0.0 if c is gpus else _GPUS)
                + abs(d - waited)
                + abs(e - ahead)
                + (0.0 if f == owner else _OWNER),
                -place,  # of those equally near, the newest
                wait,
            )
            for place, (a, b, c, d, e, f, wait) in enumerate(self._known)
        ]
        return estimate(wait for _, _, wait in heapq.nsmallest(NEAREST, distances))


def _place(job: Waiting) -> tuple[float, float, bool, float, float, str]:
    return (
        _SIZE * math.log2(max(1, job.processors)),
        _LIMIT * math.log2(min(max(1.0, job.limit), 1e9)),
        job.gpus,
        _WAITED * math.log2(max(0.0, job.waited) + LEAST),
        _AHEAD * math.log2(job.ahead + 1),
        job.owner,
    )


def ratio(told: float, came: float) -> float:
    """Log10 of a forecast wait over the real one; seconds, of which few count as `LEAST`."""
    return math.log10(max(LEAST, told)) - math.log10(max(LEAST, came))


def weights_of(ratios: Iterable[Weights], among: Sequence[Weights] = WEIGHTS) -> Weights:
    """The weights that would have come nearest so far; the first of `among` where too little is known.

    Args:
        ratios: `ratio` of each of the three forecasts, of the same starts.
    """
    some = list(ratios)
    if len(some) < FEWEST:
        return among[0]
    return min(among, key=lambda weights: sum(abs(sumprod(weights, each)) for each in some))


def sumprod(weights: Weights, figures: Sequence[float]) -> float:
    return sum(weight * figure for weight, figure in zip(weights, figures, strict=True) if weight)


def mixed(plan: Estimate, past: ByPast | None, weights: Weights) -> Estimate:
    """The forecasts of a wait, seconds, as one: the geometric means of their ends."""
    if past is None or weights == PLAN_ALONE:
        return plan
    ends = zip(*(msgspec.structs.astuple(each) for each in (plan, past.like, past.shape)), strict=True)
    low, value, high = (
        max(0.0, math.exp(sumprod(weights, [math.log(each + LEAST) for each in end])) - LEAST) for end in ends
    )
    return Estimate(low, value, high)
