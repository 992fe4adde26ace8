"""What past waits say of a new one: those of the jobs that were most like it, of whatever user. Pure.

No plan of the queue foresees what fair share, priorities and limits of users do to a job; what they did to
others shows it. Near is who asks for as much and as long, is of the same user, has as many jobs in front and
has waited as long (nearest neighbours, as Smith, Taylor and Foster 1999 have templates). How much such
waits count beside the plan is decided by how near both came (`weight_of`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence

import msgspec

from adaptor.forecast.estimate import estimate
from adaptor.model import Estimate

KEPT = 2000  # waits that count, the newest
FEWEST = 30  # waits below which nothing is said
NEAREST = 100
"""Waits from which one is foreseen. On snapshots of Graham (6 to 12 May 2021) 30 to 300 came as near."""
_SIZE, _LIMIT, _GPUS, _WAITED, _AHEAD, _OWNER = 1.0, 1.0, 3.0, 0.5, 0.5, 1.0
"""Distances: by doubling of processors, limit, time waited and own jobs in front; GPUs or not; another user.
On the same days, halves and doubles of them changed the share within a factor of 2 by at most 4 points."""
LEAST = 60.0  # seconds: shorter waits do not differ
WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of past waits beside the plan."""


class Waiting(msgspec.Struct, frozen=True):
    """What is known of a job that waits, or of a request."""

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


class PastWaits:
    """The newest waits, asked for those that are nearest to a job."""

    def __init__(self, waits: Sequence[PastWait] = ()) -> None:
        """`waits`: the oldest first."""
        self._known = [(*_place(past.job), past.wait) for past in waits[-KEPT:]]

    def __len__(self) -> int:
        return len(self._known)

    def like(self, job: Waiting) -> Estimate | None:
        """The wait of such a job from now, seconds, with the middle 90 % of those near it.

        None: too few are known.
        """
        if len(self._known) < FEWEST:
            return None
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


def weight_of(errors: Iterable[tuple[float, float]]) -> float:
    """How much past waits count beside the plan: as would have come nearest so far.

    Args:
        errors: `ratio` of the plan's forecast and of that by past waits, of the same starts.
    """
    some = list(errors)
    if len(some) < FEWEST:
        return 0.0
    return min(
        WEIGHTS, key=lambda weight: sum(abs(weight * past + (1 - weight) * plan) for plan, past in some)
    )


def mixed(plan: Estimate, past: Estimate | None, weight: float) -> Estimate:
    """Both forecasts of a wait, seconds, by the geometric means of their ends."""
    if past is None or not weight:
        return plan
    ends = zip((plan.low, plan.value, plan.high), (past.low, past.value, past.high), strict=True)
    low, value, high = (_mean(of_plan, of_past, weight) for of_plan, of_past in ends)
    return Estimate(low, value, high)


def _mean(of_plan: float, of_past: float, weight: float) -> float:
    if math.isinf(of_plan):
        return of_plan
    logs = (1 - weight) * math.log(of_plan + LEAST) + weight * math.log(of_past + LEAST)
    return max(0.0, math.exp(logs) - LEAST)
