"""Slurm's settings of its queue: the order of jobs, how many it looks at, and when. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from backends.findings import Finding, check_age, check_shrinking, ok, warning

MIN_JOB_AGE = 300.0  # Slurm's default
_TESTED = 500  # jobs that backfill looks at where bf_max_job_test is not set (slurm.conf(5))

TIME_RESOLUTION = 60  # seconds to which Slurm rounds a time limit up
_RESOLUTION = 60
_INTERVAL = 30
SHRINK_MARGIN = 0
_GIVES_SLOTS = (26, 5)  # the first release on which `--time-min` was seen to give the whole slot
_DELAY = 10  # seconds that may pass between our look at the queue and the arrival of the request


class Ordering(msgspec.Struct, frozen=True, kw_only=True):
    loses_age: bool = True
    """Whether a request that is withdrawn and made again loses what it has gained by waiting."""
    how: str = ""
    """The order in words, with the settings."""
    tested: int | None = None
    """Waiting jobs that backfill looks at; None: no backfill, or not known."""
    tested_of_user: int | None = None
    """Jobs of one user; None: all."""

    @property
    def backfilled(self) -> int | None:
        """Waiting jobs of one user that backfill looks at, at most; None: all, or not known."""
        return min((each for each in (self.tested, self.tested_of_user) if each is not None), default=None)


def ordering(settings: Mapping[str, str]) -> Ordering:
    """The order of jobs, from `scontrol show config`."""
    backfills = "backfill" in settings.get("SchedulerType", "")
    parameters = settings.get("SchedulerParameters", "")
    loses, how = _age(settings)
    return Ordering(
        loses_age=loses,
        how=how,
        tested=_number(parameters, "bf_max_job_test") or _TESTED if backfills else None,
        tested_of_user=_number(parameters, "bf_max_job_user") or None if backfills else None,
    )


def _age(settings: Mapping[str, str]) -> tuple[bool, str]:
    """Whether waiting gains a job its place, and how."""
    if "multifactor" not in settings.get("PriorityType", ""):
        return True, "jobs wait in the order of their submission (PriorityType)"
    weight = settings.get("PriorityWeightAge", "0")
    if not weight.isdigit() or not int(weight):
        return False, "waiting gains a job nothing (PriorityWeightAge is 0)"
    most = settings.get("PriorityMaxAge", "")
    longest = f", for {most} at most" if most else ""
    return True, f"waiting raises the priority of a job (PriorityWeightAge {weight}{longest})"


def slot_margin(settings: Mapping[str, str]) -> int:
    """Seconds by which a request must be shorter than a free slot: SchedulerParameters of slurm.conf(5).

    The backfill scheduler rounds the start of a planned job down to a multiple of bf_resolution, so a
    hole ends up to that much earlier for it than its start says; and it may only look at the request
    after bf_interval, while the hole gets shorter. Measured on Slurm 22.05.8: before a job planned for
    08:58:34 requests started whose limit left at least 36 s, not those that left 35 s or less.
    """
    parameters = settings.get("SchedulerParameters", "")
    return (
        _number(parameters, "bf_resolution", _RESOLUTION)
        + _number(parameters, "bf_interval", _INTERVAL)
        + _DELAY
    )


def shrink_margin(settings: Mapping[str, str]) -> int | None:
    """Seconds of a free slot that a request with --time-min does not get; None: Slurm gives it far less.

    Measured on 26.05.5: the job gets the slot in whole minutes. 22.05.8 and 24.11.5 give the least time
    alone, however long the slot is. With `time_min_as_soft_limit` a job keeps its whole limit, and delays
    others.
    """
    release = re.match(r"(\d+)\.(\d+)", settings.get("SLURM_VERSION", ""))
    if release is None or (int(release[1]), int(release[2])) < _GIVES_SLOTS:
        return None
    if "backfill" not in settings.get("SchedulerType", ""):
        return None
    return None if "time_min_as_soft_limit" in settings.get("SchedulerParameters", "") else SHRINK_MARGIN


def most_in_array(settings: Mapping[str, str]) -> int:
    """Jobs of one array: MaxArraySize, above which no index may be; 1: there are no arrays."""
    most = settings.get("MaxArraySize", "")
    return max(1, int(most)) if most.isascii() and most.isdigit() else 1


def min_job_age(settings: Mapping[str, str]) -> float:
    """Seconds for which squeue shows jobs that have ended."""
    told = re.match(r"[0-9]{1,9}", settings.get("MinJobAge", ""))
    return float(told[0]) if told else MIN_JOB_AGE


def _number(parameters: str, name: str, default: int = 0) -> int:
    found = re.search(rf"(?:^|,){name}=([0-9]{{1,9}})(?![0-9])", parameters)
    return int(found[1]) if found else default


def check_ordering(settings: Mapping[str, str], requests: int | None) -> Iterator[Finding]:
    """Report the cost of withdrawing, the part of a free slot that a request gets, and the jobs that backfill
    tests.

    Args:
        requests: max_pending_requests, as configured.
    """
    known = ordering(settings)
    yield check_age(known.how, loses_age=known.loses_age)
    yield check_shrinking(slot_margin(settings), shrink_margin(settings))
    if known.tested is not None:
        yield ok(
            f"backfill looks at the first {known.tested} waiting jobs (bf_max_job_test): a request behind "
            "them starts in no hole"
        )
    if known.tested_of_user is not None and known.tested_of_user < (requests or 0):
        yield warning(
            f"backfill starts {known.tested_of_user} jobs of one user at a time (bf_max_job_user): more "
            f"requests wait for the next round; limits.max_pending_requests is {requests}"
        )
