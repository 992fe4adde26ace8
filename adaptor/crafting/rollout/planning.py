"""The schedule of a queue as arrays, by the compiled loops: that of `availability.schedule`. Pure."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from adaptor.crafting.availability import fixed
from adaptor.crafting.profile import Profile
from adaptor.crafting.rollout import kernel
from adaptor.crafting.rollout.kernel import Floats
from adaptor.model import QueueState


class Plan(msgspec.Struct, frozen=True):
    """What is free, and when the jobs that wait start; times are seconds from now on."""

    profile: Floats
    """In the rows of `kernel`."""
    starts: dict[str, float]
    """By id; `kernel.NEVER`: it never does."""

    @property
    def as_profile(self) -> Profile:
        """For what needs more than the loops do."""
        return Profile.of_steps([(time, int(free)) for time, free in self.profile.T.tolist()])


def planned(queue: QueueState) -> Plan:
    """Plan a queue by conservative backfilling, counted in processors."""
    profile, starts, later = fixed(queue)
    array = np.array(list(zip(*profile.steps(), strict=True)), np.float64)
    array[kernel.TIME] -= queue.now
    array[kernel.TIME, 0] = 0.0
    shapes: dict[tuple[int, float], int] = {}
    rows = [
        (job.processors, job.tr, shapes.setdefault((job.processors, job.tr), len(shapes))) for job in later
    ]
    found = np.empty(len(rows))
    array = kernel.backfill(array, np.array(rows, np.float64).reshape(-1, 3), found)
    told = {id: start - queue.now for id, start in starts.items() if not math.isinf(start)}
    told.update(zip((job.id for job in later), found.tolist(), strict=True))
    return Plan(array, told)


def without(queue: QueueState, jobs: set[str]) -> QueueState:
    """The queue when these jobs are gone; all that wait are to be planned anew, in their order."""
    left = tuple(
        msgspec.structs.replace(job, planned_start=None) for job in queue.pending if job.id not in jobs
    )
    running = tuple(job for job in queue.running if job.id not in jobs)
    return msgspec.structs.replace(queue, running=running, pending=left)
