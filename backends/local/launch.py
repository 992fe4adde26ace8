"""Hands a job to a supervisor, a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import backends
from adaptor.processes.leftovers import MARKER
from backends.base import SchedulerError
from backends.local.records import Job

_CODE = Path(backends.__file__).parents[1]


def launch(job: Job, note: Path, lock: int, patience: float) -> None:
    """Return when the supervisor has claimed the job.

    `lock` is the file descriptor of the site's lock, `patience` the seconds this may take.

    Raises:
        SchedulerError: it has not been claimed; it stays in the queue.
    """
    command = [sys.executable, "-m", "backends.local.supervisor", str(note), str(lock)]
    try:
        done = subprocess.run(
            command,
            cwd=_CODE,  # so that it is the same code as ours, installed or not
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
