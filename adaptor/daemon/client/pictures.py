"""The last observed queue of each site, and the learned runtimes, as the live page draws them.

Nothing is asked here: the picture is as old as the last look of the site's own step. It holds no name of
a job or a user, only sums over time.
"""

from __future__ import annotations

import heapq
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from adaptor import api
from adaptor.api import AttemptSpan, LearnedRuntime, OwnStart, QueuePicture, QueueStep
from adaptor.crafting.availability import schedule
from adaptor.crafting.profile import Profile
from adaptor.daemon.client.running import RunningDaemon, answers
from adaptor.daemon.core import Core
from adaptor.daemon.site import Site
from adaptor.journal.activity_views import jobs_of_site
from adaptor.journal.database import guarded
from adaptor.model import QueueState

MOST_STEPS = 2000
MOST_RUNNING = 2000


@answers(api.GetPicture)
def picture(running: RunningDaemon, _: api.GetPicture) -> api.Picture:
    """The picture of all sites and bags for the live page. Raises JournalError."""
    core, sites = running.core, running.sites.values()
    with guarded(core.journal.path):
        queues = [queue for site in sites for queue in _site_pictures(site, core.journal.connection)]
    spans = (
        AttemptSpan(worker.pilot, key.bag, key.task, held.cpus, held.started, None, "running")
        for worker in core.broker.state.workers.values()
        for key, held in worker.held.items()
        if held.started is not None
    )
    return api.Picture(
        queues, list(_learned(core)), heapq.nsmallest(MOST_RUNNING, spans, key=lambda span: span.started)
    )


def _site_pictures(site: Site, db: sqlite3.Connection) -> Iterator[QueuePicture]:
    """One, or one of each partition; in it, own pilots of the other partitions count as others."""
    queue = site.memory.seen
    for name in site.config.partitions or [""]:
        there = queue and (queue.partitions.get(name) if name else queue)
        if there is None:
            yield QueuePicture(
                site=site.name, partition=name, observed=None, processors=0, steps=[], starts=[]
            )
            continue
        found = queue_picture(site.name, there, jobs_of_site(db, site.name, there.now, name))
        yield msgspec.structs.replace(found, partition=name)


def queue_picture(site: str, queue: QueueState, own: Mapping[str, int]) -> QueuePicture:
    """Processors that jobs of other users hold over time, and the planned starts of our queued pilots.

    `own`: our pilots by the scheduler's id of their job.
    """
    others = msgspec.structs.replace(
        queue,
        running=tuple(job for job in queue.running if job.id not in own),
        pending=tuple(job for job in queue.pending if job.id not in own),
    )
    starts = schedule(queue).starts
    return QueuePicture(
        site=site,
        observed=queue.now,
        processors=queue.processors,
        steps=_thinned(list(_steps(others)), MOST_STEPS),
        starts=[
            OwnStart(pilot, starts[job])
            for job, pilot in own.items()
            if starts.get(job, math.inf) < math.inf
        ],
    )  # fmt: skip


def _steps(others: QueueState) -> Iterator[QueueStep]:
    """Processors of running jobs, held until their time limits, and of planned jobs in addition."""
    whole = schedule(others).profile
    running = schedule(msgspec.structs.replace(others, pending=())).profile
    for time in sorted({at for profile in (whole, running) for at, _ in profile.steps()}):
        held = others.processors - _free(running, time)
        free = min(_free(whole, time), others.processors - held)
        yield QueueStep(time, held, others.processors - held - free)


def _free(profile: Profile, time: float) -> int:
    return max(0, profile.free_at(time))


def _thinned(steps: Sequence[QueueStep], most: int) -> list[QueueStep]:
    """At most `most` steps. Each has the maximum of the steps that it replaces, so a hole in it is real."""
    if len(steps) <= most:
        return list(steps)
    first, width = steps[0].time, (steps[-1].time - steps[0].time) / (most - 1)
    found, at = [], 0
    for number in range(most):
        held = steps[at]
        while at + 1 < len(steps) and (
            steps[at + 1].time < first + width * (number + 1) or number == most - 1
        ):
            at += 1
            held = _joined(held, steps[at])
        found.append(msgspec.structs.replace(held, time=first + width * number))
    return found


def _joined(one: QueueStep, other: QueueStep) -> QueueStep:
    running = max(one.running, other.running)
    held = max(one.running + one.planned, other.running + other.planned)
    return QueueStep(one.time, running, held - running)


def _learned(core: Core) -> Iterator[LearnedRuntime]:
    state = core.broker.state
    for bag in list(state.bags.values()):
        if not bag.active:
            continue
        for site in state.sites:
            if bag.spec.allows(site):
                estimate = state.learner(bag.id, site).estimate
                yield LearnedRuntime(bag=bag.id, site=site, estimate=estimate)
