"""The three limits of De Rose §4.3 as PBS sets them: queue and server."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from adaptor.model import UNLIMITED, Bound, Request, SharedBound
from backends.ceilings import Ceilings
from backends.pbs.margins import SLOT_MARGIN
from backends.pbs.reading import PbsTerms
from backends.pbs.rows import WAITING, PbsJob, PbsQueue
from backends.pbs.state.nodes import execution_queues


def ceilings(terms: PbsTerms) -> Ceilings:
    """Bounds on the number and the size of the site's requests; for a routing queue, those of the roomiest of
    its queues."""
    site, server = terms.site, terms.server
    queue = roomiest(site.queue, terms.queues)
    size = site.usual_size
    # What is said by the server, the queue and the routing queue before it.
    givers = {f"queue {queue.name}": queue, f"queue {site.queue.name}": site.queue, "the server": server}

    def bounds(*names: str) -> list[Bound]:
        found = [
            Bound(getattr(giver, name), f"{_WORDS[name]} of {source}")
            for source, giver in givers.items()
            for name in names
        ]
        return [bound for bound in found if not math.isinf(bound.value)]

    nodes = [Bound(bound.value * size, bound.source) for bound in bounds("max_nodes")]
    everything = Bound(site.total, f"all processors of queue {site.queue.name}")
    return Ceilings(
        requests=min(bounds("max_queued", "max_run"), default=UNLIMITED),
        processors=min([everything, *bounds("max_processors"), *nodes]),
        seconds=min(bounds("max_seconds"), default=UNLIMITED),
        whole=site.total,
        node=max(site.sizes.values(), default=size),
        memory=min(bounds("max_memory"), default=UNLIMITED),
        least=Bound(max(1.0, queue.min_processors), f"resources_min.ncpus of queue {queue.name}"),
    )


def together(terms: PbsTerms, user: str) -> tuple[SharedBound, ...]:
    """Bounds by `max_run_res` on what jobs hold at the same time: ours, those of a group or project, or all.

    PBS names no groups of jobs, so of a group's or a project's jobs only our own are counted.
    """
    found = []
    queue = terms.site.queue
    for source, giver in ((f"queue {queue.name}", queue), ("the server", terms.server)):
        for kind, most in giver.together.items():
            jobs = [
                job
                for job in terms.jobs
                if (giver is terms.server or job.queue == queue.name) and (kind == "o" or job.owner == user)
            ]
            running = [job for job in jobs if job.nodes and job.state in _HOLDING]
            found.append(
                SharedBound(
                    most=int(most),
                    held=tuple((_end_of(job, terms.now), job.processors) for job in running),
                    waiting=frozenset(job.id for job in jobs if job.state in WAITING),
                    source=f"max_run_res.ncpus of {source}",
                )
            )
    return tuple(found)


_HOLDING = frozenset("RE")


def _end_of(job: PbsJob, now: float) -> float:
    return (now if job.start is None else job.start) + job.limit


def roomiest(queue: PbsQueue, queues: dict[str, PbsQueue]) -> PbsQueue:
    """The queue itself, or of those that a routing queue leads to the one that takes the largest requests."""
    found = [each for each in execution_queues(queue, queues) if not each.shuts_out]
    return max(found, key=lambda each: (each.max_seconds, each.max_processors), default=queue)


def refusal(queue: PbsQueue, request: Request) -> str:
    """Why a queue does not take a request, with the way out; empty where it does."""
    name, site = queue.name, "of this site"
    if queue.shuts_out:
        return f"{name} takes no jobs of ours ({queue.shuts_out}): name another queue as `partition`"
    if request.p > queue.max_processors:
        return f"{name} takes at most {queue.max_processors:g} processors: lower `limits.max_proc` {site}"
    if request.tr > queue.max_seconds:
        return f"{name} takes at most {queue.max_seconds:g} s: lower `limits.max_tr` {site}"
    if request.p < queue.min_processors:
        return f"{name} takes at least {queue.min_processors:g} processors: name another queue as `partition`"
    if request.tr < queue.min_seconds:
        return f"{name} takes at least {queue.min_seconds:g} s: raise `pad` {site} to that"
    return ""


def with_least(request: Request, queues: Iterable[PbsQueue]) -> Request:
    """The request with a least time that those of these queues take which take the request."""
    if request.least is None:
        return request
    bounds = [math.ceil(each.min_seconds) for each in queues if not refusal(each, request)]
    return msgspec.structs.replace(request, least=max([request.least, *bounds])).lasting(request.tr)


def of_array(request: Request) -> Request:
    """The request of each pilot of an array: PBS takes no array that shrinks to fit (PBSE_NOSTF_JOBARRAY).

    Its walltime ends before the slot that the request fills, as without shrinking, and is not below the least
    time.
    """
    if request.least is None:
        return request
    return Request(request.p, max(request.least, request.tr - SLOT_MARGIN))


_WORDS = {
    "max_queued": "max_queued",
    "max_run": "max_run",
    "max_processors": "resources_max.ncpus",
    "max_nodes": "resources_max.nodect",
    "max_memory": "resources_max.mem",
    "max_seconds": "resources_max.walltime",
}
