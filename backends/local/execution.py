"""One job of the local site: its worker, from its start to the end of its last process."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from adaptor.processes import supervisor as execution
from adaptor.processes.environment import MARKER
from adaptor.processes.supervisor import TOLD, WALLTIME
from backends.local.devices import of_worker


def run(job: dict[str, Any], started: float, devices: list[str] | None) -> dict[str, Any]:
    """Run the worker of a job note to its end or its time limit; returns the content of its end note.

    Args:
        devices: the GPUs that it holds; None: the site has none.
    """
    deadline = time.monotonic() + job["tr"]
    output = Path(job["directory"], f"local-{job['id']}.out")
    try:
        execution.redirect_output(output)
    except OSError as error:
        return _end("failed", None, f"its folder cannot be written: {error}")
    code, cause = execution.run(
        job["worker"],
        _environment(job, started, devices),
        job["directory"],
        deadline=deadline,
        grace=job["grace"],
    )
    if cause == WALLTIME:
        return _end("walltime", code, f"its time limit of {job['tr']} s")
    if cause == TOLD:
        return _end("cancelled", code, "")
    if code == 0:
        return _end("completed", code, "")
    how = f"exit code {code}" if code > 0 else f"signal {-code}"
    return _end("failed", code, f"its worker ended with {how}; see {output}")


def _end(state: str, exit_code: int | None, reason: str) -> dict[str, Any]:
    return {"ended": time.time(), "state": state, "exit_code": exit_code, "reason": reason}


def _environment(job: dict[str, Any], started: float, devices: list[str] | None) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ADAPTOR_")}
    return {
        **of_worker(devices, inherited),
        **job["environment"],
        "ADAPTOR_PILOT_END": repr(started + job["tr"]),
        "ADAPTOR_PROCESSORS": str(job["p"]),
        "ADAPTOR_MEMORY": str(job["memory"]),
        "ADAPTOR_NODE": os.uname().nodename,
        "ADAPTOR_AFFINITY": "ignored",  # the site's `processors` may be more than this machine has
        MARKER: job["marker"],
    }
