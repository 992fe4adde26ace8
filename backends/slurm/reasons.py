"""Slurm's reasons why a job waits: which mean that it will never start, which that nothing is kept for it.

The words are those of `squeue -o %r` (squeue(1), "JOB REASON CODES", and Slurm's page on resource
limits). Limits of one job are never met by waiting; limits of a user, an account or a group are, once
other jobs have ended.
"""

from __future__ import annotations

import re
from functools import lru_cache

from adaptor.reports import TURN, Hold, JobState, Remedy, Wait
from backends.scripts import remedy_in_words

JOB_STATES: dict[str, JobState] = {
    "BOOT_FAIL": JobState.NODE_FAILED,
    "CANCELLED": JobState.CANCELLED,
    "COMPLETED": JobState.COMPLETED,
    "COMPLETING": JobState.RUNNING,
    "CONFIGURING": JobState.RUNNING,
    "DEADLINE": JobState.CANCELLED,
    # Since 26.05: requeued after its node failed, and considered before all others.
    "EXPEDITING": JobState.QUEUED,
    "FAILED": JobState.FAILED,
    "NODE_FAIL": JobState.NODE_FAILED,
    "OUT_OF_MEMORY": JobState.FAILED,
    "PENDING": JobState.QUEUED,
    "PREEMPTED": JobState.PREEMPTED,
    "REQUEUED": JobState.QUEUED,
    "REQUEUE_FED": JobState.QUEUED,
    "REQUEUE_HOLD": JobState.QUEUED,
    "RESIZING": JobState.RUNNING,
    "RESV_DEL_HOLD": JobState.QUEUED,
    # A federation started it on a sister cluster and took it out of this one.
    "REVOKED": JobState.CANCELLED,
    "RUNNING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "SPECIAL_EXIT": JobState.QUEUED,
    "STAGE_OUT": JobState.RUNNING,
    "STOPPED": JobState.RUNNING,
    "SUSPENDED": JobState.RUNNING,
    "TIMEOUT": JobState.WALLTIME,
}

HELD_STATES = frozenset({"REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
"""Queued, but only a person lets them go on."""


@lru_cache(maxsize=1000)
def job_state(text: str) -> JobState:
    """State of a job by a word of squeue and sacct; sacct adds to some: `CANCELLED by 1001`, `CANCELLED+`."""
    words = text.split()
    return JOB_STATES.get(words[0].rstrip("+"), JobState.UNKNOWN) if words else JobState.UNKNOWN


_NEVER: dict[str, tuple[str, Remedy]] = {
    "PartitionTimeLimit": ("it asks for more time than the partition allows", Remedy.SHORTER),
    "PartitionNodeLimit": ("it asks for more nodes, or fewer, than the partition allows", Remedy.NARROWER),
    "PartitionMaxNodes": ("it asks for more nodes than the partition allows", Remedy.NARROWER),
    "PartitionMinNodes": ("it asks for fewer nodes than the partition allows", Remedy.OTHER),
    "PartitionConfig": ("the partition does not allow a request of this shape", Remedy.SMALLER),
    "MaxCPUsPerNode": ("it asks for more processors of a node than the partition allows", Remedy.NARROWER),
    "MaxMemPerLimit": ("it asks for more memory than the partition allows", Remedy.NARROWER),
    "BadConstraints": ("no node is as it asks for", Remedy.NARROWER),
    "InvalidAccount": ("its account is not valid", Remedy.OTHER),
    "InvalidQOS": ("its QOS is not valid", Remedy.OTHER),
    "AccountNotAllowed": ("its account may not use the partition", Remedy.OTHER),
    "QOSNotAllowed": ("its QOS may not use the partition", Remedy.OTHER),
    "AssociationTimeLimit": ("it asks for more time than the account allows", Remedy.SHORTER),
    "QOSTimeLimit": ("it asks for more time than its QOS allows", Remedy.SHORTER),
    "DependencyNeverSatisfied": ("it depends on a job that did not end as it should", Remedy.OTHER),
    "ReservationDeleted": ("its reservation was deleted", Remedy.OTHER),
    "ReservationInvalid": ("its reservation is not valid", Remedy.OTHER),
    "DeadLine": ("it cannot end before its deadline", Remedy.SHORTER),
    "JobHoldMaxRequeue": ("it was put back too often and is held", Remedy.OTHER),
    "launch failed requeued held": ("it could not be launched and is held", Remedy.OTHER),
    "user env retrieval failed requeued held": (
        "the environment of its user could not be read, and it is held",
        Remedy.OTHER,
    ),
    "Job's QOS not permitted to use this partition": ("its QOS may not use the partition", Remedy.OTHER),
    "Job's account not permitted to use this partition": (
        "its account may not use the partition",
        Remedy.OTHER,
    ),
}
"""The words of squeue, and sentences that slurmctld writes in their place (`state_desc` of a job)."""
_LIMIT_OF_ONE_JOB = re.compile(
    r"(?P<who>QOS|Assoc)(Max\w*(PerJob|PerNode)\w*|Min\w+)",
)
_WHO = {"QOS": "its QOS", "Assoc": "the account"}
_REQUEUED = "requeued held"  # ends whatever Slurm says of a job that it could not start

_GENERAL_LIMITS = (
    *("AssociationJobLimit", "AssociationResourceLimit", "QOSJobLimit", "QOSResourceLimit"),
    *("QOSUsageThreshold", "AccountingPolicy"),
)
_NOTHING_IS_KEPT = frozenset(
    {
        "BeginTime",
        "Dependency",
        "JobArrayTaskLimit",
        "JobHeldAdmin",
        "JobHeldUser",
        *_GENERAL_LIMITS,
        "PartitionDown",
        "PartitionInactive",
        "Reservation",
    }
)
_LIMIT_OF_MANY_JOBS = re.compile(r"(?P<who>QOS|Assoc)(Grp|Max)\w*|Max\w+Per(Account|User)")
_OF_SUBMISSIONS = re.compile(r"\w*Submit\w*")
_USED_UP = re.compile(r"(QOS|Assoc)Grp(?!\w*Run)\w*(Minutes|Wall)\w*")
"""Limits of what was used since the last reset: no end of a job lifts them."""
_BY_HAND = {
    "JobHeldUser": "it is held: scontrol release lets it go on",
    "JobHeldAdmin": "an administrator holds it: ask why",
    "BeginTime": "it begins later",
    "Dependency": "it waits for the jobs that it depends on",
    "JobArrayTaskLimit": "as many of its array run as may",
}
_SITE = {
    "PartitionDown": "the partition starts no jobs now",
    "PartitionInactive": "the partition takes no jobs now",
    "Reservation": "its reservation has not begun",
    "Licenses": "licenses that it needs are in use",
}
_USUAL = frozenset({"", "None", "Priority", "Resources", "Cleaning", "Prolog", "Nodes"})
_NODES = ("ReqNodeNotAvail", "Nodes required for job are ", "UnavailableNodes", "Reserved for maintenance")
"""Reasons of a job that takes its turn once nodes are back; the names of nodes stand behind them."""


def never(state: str, reason: str) -> str:
    """Why a queued job can never start as it stands, one sentence; empty when it can."""
    word = _words(reason)[0]
    problem, limit = _NEVER.get(word, ("", Remedy.OTHER))[0], _LIMIT_OF_ONE_JOB.fullmatch(word)
    if not problem and limit:
        problem = f"it goes beyond a limit that {_WHO[limit['who']]} sets for one job"
    if not problem and word.endswith(_REQUEUED):
        problem = "it could not be started and is held"
    if not problem and state in HELD_STATES:
        problem = "Slurm holds it until a person releases it"
    said = state if word in ("", "None") else f"{word}{_details(reason)}"
    return f"{problem} ({said})" if problem else ""


@lru_cache(maxsize=1000)
def wait_of(state: str, reason: str) -> Wait:
    """Why a queued job waits; of a word that is not known, the word."""
    first, *_ = words = _words(reason)
    if never(state, reason):
        return Wait(remedy=_NEVER[first][1] if first in _NEVER else _remedy(first))
    for word in words:
        if limit := _LIMIT_OF_MANY_JOBS.fullmatch(word):
            return _limited(word, _WHO[limit["who"] or "QOS"])
        if word in _GENERAL_LIMITS:
            return _limited(word, "its account or QOS")
        for known, hold in ((_BY_HAND, Hold.ITS_OWN), (_SITE, Hold.NONE)):
            if word in known:
                return Wait(f"{known[word]} ({word})", hold)
    if first in _USUAL:
        return TURN
    if first.startswith(_NODES):
        return Wait(f"nodes that it could use are out of service or reserved ({first})")
    return Wait(f"Slurm gives the reason {reason.strip('()')}")


def _limited(word: str, who: str) -> Wait:
    """Wait for a limit of all jobs of one user, account or QOS together."""
    if _USED_UP.fullmatch(word):
        said = (
            f"the time that {who} may use is used up, or less is left than it asks for ({word}): "
            "ask for more, or name another account or QOS for the site"
        )
        return Wait(said, Hold.SPENT, Remedy.SMALLER)
    said = f"{who} may hold no more until other jobs end ({word}); `adaptor site check` shows the limits"
    return Wait(said, Hold.LIMIT, _remedy(word))


def _remedy(word: str) -> Remedy:
    """The change that helps against a limit, by the limit's name."""
    if word.startswith(("QOSMin", "AssocMin")) or "Job" in word.replace("PerJob", ""):
        return Remedy.OTHER  # it asks for too little; or jobs are counted
    if "Minutes" in word:
        return Remedy.SMALLER
    return Remedy.SHORTER if "Wall" in word else Remedy.NARROWER


@lru_cache(maxsize=1000)
def is_considered(state: str, reason: str) -> bool:
    """Whether the scheduler looks for a place for this queued job at the moment."""
    if never(state, reason):
        return False
    return not any(word in _NOTHING_IS_KEPT or _LIMIT_OF_MANY_JOBS.fullmatch(word) for word in _words(reason))


_REFUSED: tuple[tuple[Remedy, tuple[str, ...]], ...] = (
    (
        Remedy.OTHER,
        (
            *("Invalid account", "Invalid qos", "Invalid partition", "not permitted", "ermission denied"),
            *("Invalid user", "Invalid group", "Invalid host", "Invalid node name"),
            *("Access", "temporarily", "Required node not available", "Invalid license"),
            *(
                "Invalid wckey",
                "Invalid feature",
                "Requested reservation",
                "currently disabled",
                "Job dependency",
            ),
        ),
    ),
    (Remedy.SHORTER, ("Requested time limit is invalid",)),
    (
        Remedy.NARROWER,
        (
            *("Requested node configuration is not available", "Node count specification invalid"),
            *("More processors requested than permitted", "CPU count", "Memory specification"),
        ),
    ),
)
"""slurm_errno.c. What a submit plugin says in its own words, to which Slurm adds "Unspecified error": see
`remedy_in_words`."""


def refused_remedy(said: str) -> Remedy:
    """The change by which Slurm might take a request that sbatch says is refused."""
    for word in re.findall(r"\b(?:QOS|Assoc|Max)\w+", said):
        if _OF_SUBMISSIONS.fullmatch(word):
            return Remedy.OTHER
        if _LIMIT_OF_ONE_JOB.fullmatch(word) or _LIMIT_OF_MANY_JOBS.fullmatch(word):
            return _remedy(word)
    found = (remedy for remedy, words in _REFUSED if any(each in said for each in words))
    return next(found, None) or remedy_in_words(said)


def _words(reason: str) -> list[str]:
    plain = reason.strip("()").partition(" (")[0]
    return [word.strip() for word in plain.split(",")]


def _details(reason: str) -> str:
    """The bracketed part of sentences like `… to use this partition (batch allows a,b not c)`."""
    _, bracket, details = reason.strip("()").partition(" (")
    return f"{bracket}{details})" if bracket else ""
