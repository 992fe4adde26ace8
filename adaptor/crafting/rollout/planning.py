"""The schedule of a queue as arrays: that of `availability`, by compiled loops. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

import msgspec
import numpy as np

from adaptor.crafting.availability import Availability, fixed
from adaptor.crafting.profile import Profile
from adaptor.crafting.rollout import kernel
from adaptor.crafting.rollout.kernel import Floats
from adaptor.model import PendingJob, QueueState
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
    return _with_others(queue.now, _as_array(profile, queue.now), _from_now(starts, queue.now), later)


def left_by(queue: QueueState, gone: Set[str], unit: Need | None = None) -> Plan:
    """Plan a queue that these jobs leave.

    Those with a planned start keep it or move to an earlier one, in their order: conservative backfilling
    breaks no promise. On nodes all that wait are planned anew, as Slurm does again and again.
    """
    running = tuple(job for job in queue.running if job.id not in gone)
    pending = tuple(job for job in queue.pending if job.id not in gone)
    if queue.nodes:
        anew = tuple(msgspec.structs.replace(job, planned_start=None) for job in pending)
        left = msgspec.structs.replace(queue, running=running, pending=anew)
        return _on_nodes(Availability(left), unit, queue.now)
    profile, starts, later = fixed(msgspec.structs.replace(queue, running=running, pending=pending))
    told = _from_now(starts, queue.now)
    promised = [job for job in pending if job.planned_start is not None]
    found = np.array([told[job.id] for job in promised], np.float64)
    array = kernel.compressed(_as_array(profile, queue.now), _rows(promised), found)
    told.update(zip((job.id for job in promised), found.tolist(), strict=True))
    return _with_others(queue.now, array, told, later)


def _with_others(now: float, array: Floats, told: dict[str, float], later: Sequence[PendingJob]) -> Plan:
    """The jobs of which no start is told are planned beside the others."""
    found = np.empty(len(later))
    array = kernel.backfill(array, _rows(later), found)
    told.update(zip((job.id for job in later), found.tolist(), strict=True))
    return Plan(now, array, told)


def _rows(jobs: Sequence[PendingJob]) -> Floats:
    """Jobs as `kernel` has them."""
    shapes: dict[tuple[int, float], int] = {}
    rows = [
        (job.processors, job.tr, shapes.setdefault((job.processors, job.tr), len(shapes))) for job in jobs
    ]
    return np.array(rows, np.float64).reshape(-1, 3)


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
