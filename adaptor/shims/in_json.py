"""Answers of squeue and sacct in JSON, in the shape of each release of Slurm. Pure."""

from __future__ import annotations

import math
import re
from typing import Any

from adaptor.shims.fields import PARTITION
from adaptor.shims.jobs import Job

Release = tuple[int, int]
"""Release of Slurm: `(22, 5)`, `(24, 11)`."""
NEWEST: Release = (24, 11)  # whose shape the answers have where there is no Slurm
_AS_OBJECTS: Release = (23, 2)  # from here on, numbers that may be missing are objects
_AS_LISTS: Release = (23, 11)  # from here on, states are lists, and times and exit codes have objects, too


def release_of(text: str) -> Release:
    """Release in the output of `squeue --version`: `slurm 24.11.5`, `slurm-wlm 22.05.8`."""
    found = re.search(r"(\d+)\.(\d+)", text)
    return NEWEST if found is None else (int(found[1]), int(found[2]))


def meta_of(release: Release) -> dict[str, Any]:
    """The head of an answer in JSON."""
    major, minor = release
    name = f"{major}.{minor:02}.0"
    if release < _AS_LISTS:
        return {"Slurm": {"version": {"major": major, "micro": 0, "minor": minor}, "release": name}}
    version = {"major": str(major), "micro": "0", "minor": f"{minor:02}"}
    return {"slurm": {"version": version, "release": name}}


def as_json(job: Job, *, user: str, uid: int, release: Release, accounting: bool) -> dict[str, Any]:
    """An entry of `jobs` in `squeue --json` or `sacct --json`: what programs look at.

    The shape is that of the real entries of this release.
    """

    def number(value: float | None, since: Release = _AS_OBJECTS, *, infinite: bool = False) -> Any:
        if release < since:
            return 0 if value is None else int(value)
        return {"set": value is not None, "infinite": infinite, "number": 0 if value is None else int(value)}

    def index() -> Any:
        value = None if job.index is None else int(job.index)
        return value if release < _AS_OBJECTS else number(value)

    lists = release >= _AS_LISTS
    state: Any = [job.state] if lists else job.state
    limit = None if job.limit is None else math.ceil(job.limit / 60)
    ended = "SUCCESS" if job.code == job.signal == 0 else "SIGNALED" if job.signal else "ERROR"
    code: Any = {"status": [ended] if lists else ended, "return_code": number(job.code, _AS_LISTS)}
    code["signal"] = {"id": number(job.signal or None, _AS_LISTS), "name": "" if lists else None}
    common = {"job_id": job.number, "name": job.name, "partition": PARTITION, "nodes": job.node}
    if accounting:
        return {
            **common,
            "array": {"job_id": job.array or 0, "task_id": index()},
            "exit_code": code,
            "required": {"CPUs": job.cpus},
            "state": {"current": state, "reason": job.reason},
            "time": {
                "elapsed": int(job.wall or 0),
                "eligible": int(job.submitted),
                "end": int(job.ended or 0),
                "limit": number(limit, infinite=limit is None),
                "start": int(job.started or 0),
                "submission": int(job.submitted),
            },
            "user": user,
            "working_directory": job.cwd,
        }
    return {
        **common,
        "array_job_id": number(job.array or 0),
        "array_task_id": index(),
        "cpus": number(job.cpus),
        "current_working_directory": job.cwd,
        "end_time": number(job.ended or 0, _AS_LISTS),
        "exit_code": code if release >= _AS_OBJECTS else job.code,
        "job_state": state,
        "node_count": number(job.node.count(",") + 1),
        "standard_error": job.stderr,
        "standard_output": job.stdout,
        "start_time": number(job.started or 0, _AS_LISTS),
        "state_reason": job.reason,
        "submit_time": number(job.submitted, _AS_LISTS),
        "tasks": number(1),
        "time_limit": number(limit, infinite=limit is None),
        "user_id": uid,
        "user_name": user,
    }
