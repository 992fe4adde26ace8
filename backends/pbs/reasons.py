"""PBS's comments on why a job waits: which mean that it will never start, which that nothing is kept for it.

The comments are those of pbs_sched (OpenPBS, src/scheduler/constant.h and limits); other schedulers of the
family write sentences of their own, which are shown as they stand.
"""

from __future__ import annotations

import re

from adaptor.reports import TURN, Hold, Remedy, Wait
from backends.pbs.rows import PbsJob
from backends.scripts import remedy_in_words

_NEVER = re.compile(r"Can Never Run:?\s*(.*)", re.DOTALL)
_HELD = "too many failed attempts to run"
_NOTHING_IS_KEPT = re.compile(
    r"limit|would exceed|Queue not started|not an execution queue|[Dd]edicated time|primetime"
    r"|zero shares|does not exist|Job held|PBS Error|Not in queued state"
)
"""Waits for the end of other jobs of the same user, for a person, or for the clock."""

_LIMIT = re.compile(r"limit|would exceed")
_USUAL = re.compile(
    r"Insufficient amount|Not enough|[Nn]o available resources|too few free resources"
    r"|conflict with reservation|draining|[Ff]airshare|[Ss]trict ordering|exclusive|top job|Job run at"
    r"|Job Array Began|starving"
)
_SIZES = re.compile(r"resource:? ?(ncpus|nodect|mem|ngpus|mpiprocs)|limit on resource|nodes|[Pp]laced? ")
_TIMES = re.compile(r"walltime|end before|before dedicated")


def never(job: PbsJob) -> str:
    """Why a waiting job can never start as it stands, one sentence; empty when it can."""
    impossible = _NEVER.match(job.comment)
    if impossible:
        return f"PBS says that it can never run: {impossible[1].strip() or 'no reason given'}"
    if job.state == "H" and _HELD in job.comment:
        return "PBS could not start it and holds it until a person releases it"
    return ""


def is_considered(job: PbsJob) -> bool:
    """Whether the scheduler looks for a place for this job at the moment."""
    if job.state not in ("Q", "B") or never(job):
        return False
    return not _NOTHING_IS_KEPT.search(job.comment)


def wait_of(job: PbsJob) -> Wait:
    """Why a waiting job waits; what the scheduler says in words that are not known is shown as it stands."""
    said = job.comment.strip()
    if never(job):
        return Wait(remedy=Remedy.OTHER if job.state == "H" else remedy_of(said))
    if job.state in "HW" or "Job held" in said:
        how = "it begins later" if job.state == "W" else "it is held: qrls lets it go on"
        return Wait(f"{how} ({said or f'state {job.state}'})", Hold.ITS_OWN)
    if _LIMIT.search(said):
        remedy = Remedy.NARROWER if _SIZES.search(said) else Remedy.OTHER
        return Wait(f"PBS lets it start when other jobs have ended ({said})", Hold.LIMIT, remedy)
    if not said or _USUAL.search(said):
        return TURN
    return Wait(f"PBS says of it: {said}")


def remedy_of(said: str) -> Remedy:
    """The change by which PBS might start a request, from its message on one that never starts."""
    if _TIMES.search(said):
        return Remedy.SHORTER
    return Remedy.NARROWER if _SIZES.search(said) else Remedy.SMALLER


_REFUSED: tuple[tuple[Remedy, tuple[str, ...]], ...] = (
    (Remedy.NARROWER, ("limit on resource",)),
    (
        Remedy.OTHER,
        (
            *("would exceed", "Maximum number of jobs", "nauthorized", "nknown queue", "not enabled"),
            *("not started", "Access", "ermission", "nvalid credential", "server busy", "shutting down"),
            *("Bad UID", "Illegal attribute", "Unknown resource", "No default queue"),
        ),
    ),
)
"""pbs_error.c; what a hook says in its own words: see `remedy_in_words`."""


def refused_remedy(said: str) -> Remedy:
    """The change by which PBS might take a request that qsub says is refused."""
    found = (remedy for remedy, words in _REFUSED if any(each in said for each in words))
    return next(found, None) or remedy_in_words(said)
