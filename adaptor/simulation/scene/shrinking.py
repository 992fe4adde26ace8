"""A simulated scheduler starts requests with less than their tr, where a slot that is free now holds it."""

from __future__ import annotations

import math

from adaptor.crafting.availability import Availability
from adaptor.crafting.fits import chunk_of
from adaptor.crafting.profile import Profile
from adaptor.crafting.situation import SiteRules
from adaptor.model import QueueState, Request
from adaptor.resources import TaskSize
from adaptor.simulation.cluster import Cluster
from adaptor.simulation.pilot_requests import reshape


def start_cut(
    cluster: Cluster,
    queue: QueueState,
    job: int,
    request: Request,
    rules: SiteRules,
    task: TaskSize,
    nodes: frozenset[str] | None = None,
) -> Request | None:
    """Start a waiting job now with all that its slot holds; what it got.

    None: that is less than its least time, or it has started.

    As OpenPBS and Slurm 26.05 do. The other jobs keep their planned starts.

    Args:
        queue: as the scheduler sees it now, with all of its jobs.
        request: that the job asks for.
        nodes: those of its partition; None: all.
    """
    if request.least is None or cluster.outside_job(job).started is not None:
        return None
    chunk = chunk_of(rules, queue, task) if queue.nodes else None
    held = _held(Availability(queue).without(str(job)).profile(chunk), queue.now, request)
    if held < request.least:
        return None
    got = request.lasting(held)
    reshape(cluster, job, rules, task, got, nodes)
    if cluster.outside_job(job).started is not None:
        return got
    reshape(cluster, job, rules, task, request, nodes)
    return None


def _held(profile: Profile, now: float, request: Request) -> int:
    """Seconds from now for which the processors of a request are free, tr at most."""
    if profile.free_at(now) < request.p:
        return 0
    taken = (time for time, free in profile.steps() if time > now and free < request.p)
    return int(min(request.tr, next(taken, math.inf) - now))
