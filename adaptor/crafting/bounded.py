"""The part of the queue's free processors that is free for us, if jobs share a bound on processors. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable

from adaptor.crafting.profile import Profile
from adaptor.model import PendingJob, RunningJob, SharedBound

Span = tuple[RunningJob | PendingJob, float, float]
"""A job with its begin and its end."""


class BoundedProfile(Profile):
    """A profile of which no more is free than a bound leaves, at any instant."""

    __slots__ = ("_bound", "_inner")

    def __init__(self, inner: Profile, bound: Profile) -> None:
        """`bound`: what the jobs that it counts may still take."""
        self._inner, self._bound = inner, bound
        times = sorted({*(time for time, _ in inner.steps()), *(time for time, _ in bound.steps())})
        free = [min(inner.free_at(time), bound.free_at(time)) for time in times]
        kept = [step for step in range(len(times)) if not step or free[step] != free[step - 1]]
        self._times = [times[step] for step in kept]
        self._free = [free[step] for step in kept]

    def copy(self) -> BoundedProfile:
        return BoundedProfile(self._inner.copy(), self._bound.copy())

    def minimum(self, start: float, end: float) -> int:
        return min(self._inner.minimum(start, end), self._bound.minimum(start, end))

    def earliest_start(self, processors: int, duration: float, not_before: float = -math.inf) -> float:
        while (start := self._inner.earliest_start(processors, duration, not_before)) < math.inf:
            not_before = self._bound.earliest_start(processors, duration, start)
            if not_before == start:
                return start
        return math.inf

    def take(self, start: float, duration: float, processors: int) -> None:
        if self._bound.minimum(start, start + duration) < processors:
            raise ValueError(f"{processors} processors wanted for {duration:g} s, but fewer may be held")
        self._inner.take(start, duration, processors)
        self._bound.take(start, duration, processors)
        self._change(start, start + duration, -processors)

    def give(self, start: float, duration: float, processors: int) -> None:
        self._inner.give(start, duration, processors)
        self._bound.give(start, duration, processors)
        self._change(start, start + duration, processors)


_UNBOUNDED = 1 << 40  # processors


def where(free: Profile, least: int) -> Profile:
    """A bound that leaves nothing as long as fewer than `least` processors are free in a profile."""
    steps = [(time, _UNBOUNDED if there >= least else 0) for time, there in free.steps()]
    return Profile.of_steps(
        [step for place, step in enumerate(steps) if not place or step[1] != steps[place - 1][1]]
    )


def bounded(free: Profile, now: float, bounds: Iterable[SharedBound], jobs: Iterable[Span]) -> Profile:
    """The profile within each bound. `jobs`: those of the queue, running and planned ones."""
    planned = [
        (job, begin, end) for job, begin, end in jobs if isinstance(job, PendingJob) and begin < math.inf
    ]
    for bound in bounds:
        held = [(now, end, processors) for end, processors in bound.held]
        held += [
            (begin, end, job.processors) for job, begin, end in planned if job.new or job.id in bound.waiting
        ]
        free = BoundedProfile(free, Profile.holding(now, bound.most, held))
    return free
