"""`sbatch` itself waits for jobs of the scheduler that a task waits for: a bag knows its tasks alone."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from adaptor.shims.real import asked, tell
from adaptor.shims.rules import DependencyError

PAUSE = 5.0
"""Seconds between two looks."""
_STATE = re.compile(r"\bJobState=(\w+)")


def wait_for_real(ok: Sequence[str], any: Sequence[str]) -> None:
    """Return when these jobs have ended.

    Raises DependencyError: one of `ok` has not completed, or the scheduler has forgotten how it ended.
    """
    jobs = [*ok, *any]
    if not jobs:
        return
    words = ["--noheader", "--format=%i", f"--jobs={','.join(jobs)}"]
    waits = False
    while asked("squeue", words)[0].strip():
        if not waits:
            tell(f"waits until jobs {', '.join(jobs)} of the scheduler have ended: tasks wait for tasks only")
        waits = True
        time.sleep(PAUSE)
    for job in ok:
        state = _ended_as(job)
        if state != "COMPLETED":
            how = f"is {state}" if state else "has ended, and the scheduler does not say how"
            raise DependencyError(f"job {job} {how}: what waits for it by afterok never starts")


def _ended_as(job: str) -> str:
    """The state of a job, or of the first element of an array that has not completed; empty: not known."""
    text, _ = asked(
        "sacct", ["--noheader", "--allocations", "--parsable2", "--format=State", f"--jobs={job}"]
    )
    states = [line.split()[0] for line in text.splitlines() if line.strip()]
    if not states:
        states = _STATE.findall(asked("scontrol", ["show", "job", job])[0])
    return next((state for state in states if state != "COMPLETED"), "COMPLETED" if states else "")
