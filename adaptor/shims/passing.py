"""Small jobs that the scheduler would start now: they go to it at once.

The rule: a free slot takes the job (all elements of an array) and no job of the user's of the same size waits
there, or only jobs of the user wait, and few; and the jobs of the user there are at most half of what the
scheduler allows: pilots get the others.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec

from adaptor import api
from adaptor.bagfile.scripts.values import slurm_time
from adaptor.client.asking import SCHEDULERS_TIMEOUT
from adaptor.client.bags import Client
from adaptor.errors import AdaptorError
from adaptor.private_files import write_private
from adaptor.shims.real import asked, found
from adaptor.shims.remembering import folder, locked, remembered
from adaptor.shims.small_jobs import SmallJob

AGAIN, LATER = 10.0, 60.0
"""Seconds for which a look at the queue serves if it found a free slot, or none: a thousand jobs in a row ask
the scheduler a few times."""
SETTLED = 5.0
"""Seconds after its submission until a job counts as one that waits: Slurm starts jobs some seconds later."""
SHARE = 0.5
"""Share of the jobs that the scheduler allows in the system which may be passed on at once."""
QUEUED = 100
"""Jobs of the user that may wait there if no other user's job waits: they wait for each other alone."""
_NOT_READY = ("BeginTime", "Dependency", "JobHeld")
"""Beginnings of reasons of jobs that are not in the queue yet."""
_PARTITIONS = ("sinfo", ("--noheader", "--format=%P"))
_OWN = ("squeue", "--me", "--noheader", "--array", "--format=%T|%V|%C|%l|%r")


class Free(msgspec.Struct, frozen=True):
    """A free slot that has begun."""

    end: float | None  # epoch seconds; None: it has no end
    tasks: int  # that run in it at the same time


class Look(msgspec.Struct, frozen=True):
    """Free slots for jobs of one size at a look at the queue, less the jobs that were passed on since."""

    until: float  # epoch seconds: it serves until then
    observed: float  # when the daemon read the queue
    slots: list[Free] = []
    jobs: int | None = None  # that may still be passed on; None: any number

    def takes(self, count: int, until: float) -> bool:
        fits = (slot.tasks >= count and (slot.end is None or slot.end >= until) for slot in self.slots)
        return (self.jobs is None or self.jobs >= count) and any(fits)

    def without(self, count: int) -> Look:
        slots = [Free(slot.end, slot.tasks - count) for slot in self.slots]
        jobs = None if self.jobs is None else self.jobs - count
        return msgspec.structs.replace(self, slots=slots, jobs=jobs)


class OwnJob(msgspec.Struct, frozen=True):
    """A job of the user's in the queue of the scheduler."""

    waits: bool
    submitted: float
    processors: int
    limit: float | None  # seconds
    reason: str = ""


def starts_at_once(client: Client, small: SmallJob) -> bool:
    """Whether the scheduler would start it now, and may have it; if so, its slot is taken.

    Raises:
        NoDaemonError, NoAnswerError: no daemon answers.
    """
    if small.rules.always or small.alone or found("sbatch") is None or found("squeue") is None:
        return False
    count = len(small.made.tasks)
    path = folder("slots") / f"{small.shape()}-{sha256(small.partition.encode()).hexdigest()[:8]}"
    with locked(path):
        now = time.time()
        look = remembered(path, Look)
        if look is None or not now <= look.until <= now + LATER:
            look = _new_look(client, small, now, look)
        takes = look.takes(count, now + small.limit)
        left = look.without(count) if takes else look
        write_private(path, msgspec.msgpack.encode(left), sync=False)
    return takes


def _new_look(client: Client, small: SmallJob, now: float, before: Look | None) -> Look:
    places, own = _places(small), _own_jobs()
    if not places or own is None:
        return Look(now + LATER, 0.0)
    sites = sorted({site for site, _ in places})
    views = client.ask(api.GetSlots(sites, small.spec.task), SCHEDULERS_TIMEOUT)
    return look_of([view for view in views if (view.site, view.partition) in places], own, small, now, before)


def _places(small: SmallJob) -> set[tuple[str, str]]:
    """Sites with the partitions to which sbatch gives the job, each with the name of the partition there."""
    from adaptor.config.loading import config_path, load_config
    from adaptor.config.schema import sites_of

    try:
        config = load_config(config_path(small.rules.config or None))
    except AdaptorError:  # a daemon may run anyway
        return set()
    usual = next((word[:-1] for word in asked(*_PARTITIONS)[0].split() if word.endswith("*")), "")
    wanted = (small.partition or usual).split(",")
    return {
        (name, place)
        for name, site in config.sites.items()
        if site.backend == "slurm" and site.ssh is None and name in (small.spec.sites or [name])
        for place, alone in sites_of(site).items()
        if (alone.partition or usual) in wanted
    }


def look_of(
    views: Iterable[api.SlotsView], own: Sequence[OwnJob], small: SmallJob, now: float, before: Look | None
) -> Look:
    """Pure. `before`: the last look, whose passed-on jobs count until the daemon reads the queue again."""
    read = [view for view in views if view.observed is not None]
    observed = min((view.observed or 0.0 for view in read), default=0.0)
    if before is not None and before.observed == observed:
        return msgspec.structs.replace(before, until=now + AGAIN)
    allowed = min((view.in_system for view in read if view.in_system is not None), default=None)
    waits = any(
        job.waits
        and now - job.submitted > SETTLED
        and (job.processors, job.limit) == (small.spec.cpus, small.limit)
        for job in own
    )
    slots = [
        Free(slot.end, slot.tasks)
        for view in read
        for slot in view.slots
        if slot.tasks and slot.start <= (view.observed or 0.0)
    ]
    jobs = None if allowed is None else max(0, math.floor(SHARE * allowed) - len(own))
    if waits:
        slots = []
    slots += [Free(None, QUEUED - _waiting(own))] if _alone(read, own) else []
    nothing = not slots or jobs == 0
    return Look(now + (LATER if nothing else AGAIN), observed, slots, jobs)


def _waiting(own: Sequence[OwnJob]) -> int:
    return sum(job.waits for job in own)


def _alone(read: Sequence[api.SlotsView], own: Sequence[OwnJob]) -> bool:
    """Whether jobs of the user's alone wait in these queues, and none of them for a limit."""
    waiting = sum(view.waiting for view in read if not view.no_room)
    limited = any(job.waits and "Limit" in job.reason for job in own)
    return bool(read) and not any(view.no_room for view in read) and not limited and waiting <= _waiting(own)


def _own_jobs() -> list[OwnJob] | None:
    """The user's jobs in the scheduler's queue; None: squeue does not answer."""
    from backends.slurm.questions import asking_environment

    text, code = asked(_OWN[0], _OWN[1:], asking_environment(os.environ))
    return None if code else own_jobs(text)


def own_jobs(text: str) -> list[OwnJob]:
    """Jobs of an answer of squeue; times are epoch seconds. Pure."""
    found = []
    for line in text.splitlines():
        state, submitted, processors, limit, reason = line.split("|", 4)
        waits = state == "PENDING" and not reason.startswith(_NOT_READY)
        found.append(OwnJob(waits, float(submitted), int(processors), _seconds(limit), reason))
    return found


def _seconds(text: str) -> float | None:
    try:
        return slurm_time(text)
    except ValueError:  # UNLIMITED, or a word of a site
        return None
