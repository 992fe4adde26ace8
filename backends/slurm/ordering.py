"""In which order Slurm's waiting jobs stand, and how many of them it looks at, by its settings. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from backends.findings import Finding, ok, warning

_TESTED = 500
"""Jobs that backfill looks at where bf_max_job_test is not set (slurm.conf(5))."""


class Ordering(msgspec.Struct, frozen=True, kw_only=True):
    loses_age: bool = True
    """Whether a request that is withdrawn and made anew loses what it has gained by waiting."""
    how: str = ""
    """In words, with the settings."""
    tested: int | None = None
    """Waiting jobs that backfill looks at; None: no backfill, or not known."""
    tested_of_user: int | None = None
    """Of one user; None: all."""


def ordering(settings: Mapping[str, str]) -> Ordering:
    """From `scontrol show config`."""
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


def _number(parameters: str, name: str) -> int:
    found = re.search(rf"(?:^|,){name}=([0-9]{{1,9}})(?![0-9])", parameters)
    return int(found[1]) if found else 0


def check_ordering(settings: Mapping[str, str], requests: int | None) -> Iterator[Finding]:
    """What withdrawing costs, and how deep in the queue requests are looked at.

    Args:
        requests: max_pending_requests, as configured.
    """
    known = ordering(settings)
    cost = "loses that" if known.loses_age else "loses no place"
    yield ok(f"{known.how}: a request that is withdrawn and made anew {cost}")
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
