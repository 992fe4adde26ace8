"""The words of PBS on why a job waits: which mean that it waits in vain, which that nothing is kept for it.

They stand in a job's comment (OpenPBS, src/scheduler/config.h and job_info.cpp). Torque's schedulers say
what they like there; of what is not known here, a place is taken to be kept.
"""

from __future__ import annotations

import re

from backends.pbs.rows import PbsJob

_NEVER = re.compile(r"Can Never Run:?\s*(.*)", re.DOTALL)
_HELD = "too many failed attempts to run"
_NOTHING_IS_KEPT = re.compile(
    r"limit|would exceed|Queue not started|not an execution queue|[Dd]edicated time|primetime"
    r"|zero shares|does not exist|Job held|PBS Error|Not in queued state"
)
"""Waits for the end of other jobs of the same user, for a person, or for the clock."""


_RAN = re.compile(r"(?<=^Job run at )([^(]*?) on (?:\+?\([^()]*(?:\)|$))+")
"""When a job ran, and all chunks that it got, which may be hundreds."""


def sentence(comment: str) -> str:
    """The comment of a job without the list of its chunks."""
    return _RAN.sub(r"\1", comment)


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
