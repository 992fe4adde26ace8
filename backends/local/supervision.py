"""Gives a job to a supervisor, a process of its own, and ends jobs whose supervisor is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import backends
from adaptor.processes.descriptors import with_usual_limit
from adaptor.processes.environment import MARKER
from adaptor.processes.identity import host, is_alive, is_here
from adaptor.processes.notes import END
from adaptor.processes.trees import end_trees
from adaptor.reports import JobState
from backends.base import SchedulerError
from backends.local.store import Job, JobEnd, JobEntry, Store

_CODE = Path(backends.__file__).parents[1]


def launch(job: Job, note: Path, lock: int, patience: float, devices: Sequence[str] | None = None) -> None:
    """Return when the supervisor has claimed the job.

    Args:
        lock: the file descriptor of the site's lock.
        patience: the seconds that this may take.
        devices: the GPUs that the job holds; None: the site has none.

    Raises:
        SchedulerError: it has not been claimed; it stays in the queue.
    """
    held = [] if devices is None else [",".join(devices)]
    command = [sys.executable, "-m", "backends.local.supervisor", str(note), str(lock), *held]
    try:
        done = subprocess.run(
            with_usual_limit(command),
            cwd=_CODE,  # the same code as ours, installed or not, and no folder in which others put something
            env={**os.environ, MARKER: job.marker},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=(lock,),
            timeout=patience,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SchedulerError(f"local job {job.id} cannot be started: {error}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise SchedulerError(f"local job {job.id} cannot be started: its supervisor failed: {said[-1]}")


_SLACK = 60.0
"""Seconds after its limit and grace for which a job of another machine is given the benefit of the doubt."""


def end_lost(entries: list[JobEntry], store: Store, now: float) -> bool:
    """Write down the end of lost jobs and end what they left behind; whether there were any.

    Raises:
        SchedulerError: an end cannot be written down.
    """
    lost = [(entry, why) for entry in entries if (why := _why_lost(entry, now))]
    for entry, why in lost:
        # Its supervisor may have written the end after the notes were read and before it left.
        if not store.note(entry.job.id, END).exists():
            end_trees(entry.job.marker)
            end = JobEnd(ended=min(now, entry.limit), state=JobState.NODE_FAILED, reason=why)
            store.write(entry.job.id, END, end)
    return bool(lost)


def _why_lost(entry: JobEntry, now: float) -> str:
    supervisor = entry.start.supervisor if entry.start is not None else None
    if entry.state is not JobState.RUNNING or supervisor is None or is_alive(supervisor):
        return ""
    if is_here(supervisor):
        return f"its supervisor (process {supervisor['pid']}) was killed"
    if supervisor["host"] == host():
        return "the machine was restarted while it ran"
    # Nothing can be seen of another machine's processes, but none outlives its time limit there.
    over = now > entry.limit + entry.job.grace + _SLACK
    return f"its end on {supervisor['host']} was never written down" if over else ""
