"""The three limits of De Rose §4.3 with where they come from, as every batch scheduler sets them."""

from __future__ import annotations

import math

import msgspec

from adaptor.config.policy import Policy
from adaptor.model import FROM_NOTHING, UNLIMITED, Allowed, Bound, Limits, SharedBound

POLITE = 4
"""Requests in the system where nothing else is configured: sites allow far more than is neighbourly."""
SHARE = 0.5
"""Share of a site's processors that all its requests together hold by default: a request that starts in a
free slot delays no job that is planned, but it can delay one that comes later."""
PILOTS = 500
"""Pilots in the system where the scheduler sets no limit on jobs: a twentieth of the 10,000 jobs that Slurm
holds by default (MaxJobCount), and few enough for one daemon."""
SHARE_OF_JOBS = 0.5  # of the jobs that a user may submit: the rest is left for jobs by hand
FEWEST = 16  # processors of a request at least, where the scheduler allows it: smaller ones are of little use
LONGEST = 86_400
"""Seconds of a request where there is no limit: schedulers plan no further ahead than a day or so."""


class Ceilings(msgspec.Struct, frozen=True, kw_only=True):
    """The tightest of all limits that hold for a site's requests."""

    requests: Bound  # `math.inf` where the scheduler sets none
    processors: Bound
    seconds: Bound
    whole: int  # processors of the nodes on which the site's requests run
    node: int  # of the largest of them
    least: Bound = Bound(1, UNLIMITED.source)
    """Processors of a request at least."""
    parts: int = 1
    """Nodes of a request at least."""
    work: Bound = UNLIMITED
    """Processors times seconds of a request."""
    work_left: Bound = UNLIMITED
    """Processor-seconds of all requests that start now."""
    memory: Bound = UNLIMITED
    """Bytes of a request."""
    gpus: Bound = UNLIMITED
    """GPUs of a request."""
    least_memory: Bound = FROM_NOTHING
    least_gpus: Bound = FROM_NOTHING

    def allowed(self, together: tuple[SharedBound, ...] = ()) -> Allowed:
        """The ceilings in the form of a queue state."""
        return Allowed(
            max_proc=self.processors.value,
            max_tr=self.seconds.value,
            in_system=self.requests.value,
            max_work=self.work.value,
            work_left=self.work_left,
            max_memory=self.memory,
            max_gpus=self.gpus,
            min_memory=self.least_memory,
            min_gpus=self.least_gpus,
            min_proc=int(self.least.value),
            min_parts=self.parts,
            together=together,
        )


_CEILINGS = {"max_pending_requests": "requests", "max_proc": "processors", "max_tr": "seconds"}


def within_policy(known: Ceilings, policy: Policy) -> Ceilings:
    """The ceilings with the operator's bounds, where these are less than would be chosen."""
    for key, ceiling in _CEILINGS.items():
        most = getattr(policy.keys.limits, key)
        if most is not None and most < getattr(limits_of(known), key):
            bound = Bound(float(most), policy.at(f"limits.{key}"))
            known = msgspec.structs.replace(known, **{ceiling: bound})
    return known


def limits_of(known: Ceilings, requests: int | None = None) -> Limits:
    """Limits that keep within the ceilings, and are polite where there are none.

    `requests`: `max_pending_requests`, where it is configured.
    """
    pending = int(min(known.requests.value, requests or POLITE))
    return Limits(
        max_pending_requests=pending,
        max_pilots=int(polite_pilots(known).value),
        max_proc=int(polite_processors(known, pending).value),
        max_tr=int(min(known.seconds.value, LONGEST)),
    )


def polite_pilots(known: Ceilings) -> Bound:
    """Pilots in the system for a heuristic that makes many narrow ones."""
    jobs = known.requests.value
    if jobs * SHARE_OF_JOBS >= PILOTS:
        return Bound(PILOTS, "few enough for one daemon")
    share = f"{SHARE_OF_JOBS:.0%} of the {jobs:g} jobs that it lets a user submit"
    return Bound(max(1, math.floor(jobs * SHARE_OF_JOBS)), share)


def polite_processors(known: Ceilings, requests: int) -> Bound:
    """Processors that each of `requests` may hold: they share half of the site, in whole nodes.

    Never less than the largest node, so that a task that fits a node fits a request, nor than 16
    processors; never more than the scheduler allows.
    """
    node = max(1, known.node)
    share = math.ceil(SHARE * known.whole / max(1, requests) / node) * node
    polite = max(share, node, FEWEST)
    if polite >= known.processors.value:
        return known.processors
    why = f"{requests} such requests hold half of {known.whole} processors"
    if polite > share:
        why = f"{FEWEST} processors at least" if polite == FEWEST else "one node"
    elif known.whole < polite * requests / SHARE:
        why += ", in whole nodes"
    return Bound(polite, why)
