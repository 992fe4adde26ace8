"""The schedule of a queue as arrays: that of `availability`, by compiled loops. Pure."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from adaptor.crafting.availability import Availability, fixed
from adaptor.crafting.profile import Profile
from adaptor.crafting.rollout import kernel
from adaptor.crafting.rollout.kernel import Floats
from adaptor.model import QueueState
from adaptor.resources import Need


class Plan(msgspec.Struct, frozen=True):
    """What is free for one kind of tasks, and when the jobs that wait start; seconds from `now` on."""

    now: float
    """Epoch seconds."""
    profile: Floats
    """In the rows of `kernel`."""
    starts: dict[str, float]
    """By id; `kernel.NEVER`: it never does."""
    slots: Profile | None = None
    """The same profile with the nodes that it is the sum of; None: they are not known."""

    def free(self) -> Profile:
        """The profile for what needs more than the loops do, in epoch seconds; it may be changed."""
        if self.slots is not None:
            return self.slots.copy()
        return Profile.of_steps([(self.now + time, int(free)) for time, free in self.profile.T.tolist()])


def planned(queue: QueueState, unit: Need | None = None, free: Availability | None = None) -> Plan:
    """Plan a queue by conservative backfilling; on its nodes, where they are known.

    Args:
        unit: what a request is made of (`unit.on_nodes`); None: of single processors.
        free: what the queue leaves free, where it was planned before; only that of nodes is used.
    """
    if queue.nodes:
        return _on_nodes(free or Availability(queue), unit, queue.now)
    profile, starts, later = fixed(queue)
    array = _as_array(profile, queue.now)
    shapes: dict[tuple[int, float], int] = {}
    rows = [
        (job.processors, job.tr, shapes.setdefault((job.processors, job.tr), len(shapes))) for job in later
    ]
    found = np.empty(len(rows))
    array = kernel.backfill(array, np.array(rows, np.float64).reshape(-1, 3), found)
    told = _from_now(starts, queue.now)
    told.update(zip((job.id for job in later), found.tolist(), strict=True))
    return Plan(queue.now, array, told)


def _on_nodes(free: Availability, unit: Need | None, now: float) -> Plan:
    assert free.nodes is not None
    slots = free.profile(unit)
    return Plan(now, _as_array(slots, now), _from_now(free.nodes.starts, now), slots)


def _as_array(profile: Profile, now: float) -> Floats:
    array = np.array(list(zip(*profile.steps(), strict=True)), np.float64)
    array[kernel.TIME] -= now
    array[kernel.TIME, 0] = 0.0
    return array


def _from_now(starts: dict[str, float], now: float) -> dict[str, float]:
    return {id: start - now if start < math.inf else kernel.NEVER for id, start in starts.items()}


def without(queue: QueueState, jobs: set[str]) -> QueueState:
    """The queue when these jobs are gone; all that wait are to be planned anew, in their order."""
    left = tuple(
        msgspec.structs.replace(job, planned_start=None) for job in queue.pending if job.id not in jobs
    )
    running = tuple(job for job in queue.running if job.id not in jobs)
    return msgspec.structs.replace(queue, running=running, pending=left)
