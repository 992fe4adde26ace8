"""Claims, times and ends one job of a local site: `python -m backends.local.supervisor NOTE LOCK [DEVICES]`.

It is a process of its own in a session of its own, so that `(p, tr)` is enforced whatever becomes of
the daemon. The standard library only, so that it starts quickly. `NOTE` is the job's note. `LOCK` is
the file descriptor of the site's lock, which so stays held until the job is claimed, even if the process that
starts it is killed meanwhile. `DEVICES` are the ids of the GPUs that the job holds, with commas; it is left
out where the site has none. The command returns when the job is claimed (0) or could not be (1).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from adaptor.processes import supervisor as execution
from adaptor.processes.devices import of_worker
from adaptor.processes.environment import MARKER
from adaptor.processes.identity import own_identity
from adaptor.processes.notes import END, START, note_path, read_note, write_once, write_patiently
from adaptor.processes.supervisor import SIGNALS, TOLD, WALLTIME, SayToParent, in_background


def run(job: dict[str, Any], started: float, devices: list[str] | None) -> dict[str, Any]:
    """Run the worker of a job note to its end or its time limit; returns the content of its end note.

    `devices`: the GPUs that it holds; None: the site has none.
    """
    began = time.monotonic()
    output = Path(job["directory"], f"local-{job['id']}.out")
    try:
        execution.redirect_output(output)
    except OSError as error:
        return _end(started, "failed", None, f"its folder cannot be written: {error}")
    code, cause = execution.run(
        job["worker"],
        _environment(job, started, devices),
        job["directory"],
        deadline=began + job["tr"],
        grace=job["grace"],
    )
    ended = started + time.monotonic() - began  # whatever became of the time of day
    if cause == WALLTIME:
        return _end(ended, "walltime", code, f"its time limit of {job['tr']} s")
    if cause == TOLD:
        return _end(ended, "cancelled", code, "")
    if code == 0:
        return _end(ended, "completed", code, "")
    how = f"exit code {code}" if code > 0 else f"signal {-code}"
    return _end(ended, "failed", code, f"its worker ended with {how}; see {output}")


def _end(ended: float, state: str, exit_code: int | None, reason: str) -> dict[str, Any]:
    return {"ended": ended, "state": state, "exit_code": exit_code, "reason": reason}


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


_CLAIMED = "claimed"


def main(note: Path, lock: int, devices: list[str] | None) -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    answer = in_background(lambda answer: _supervise(note, lock, devices, answer))
    if answer == _CLAIMED:
        return 0
    sys.stderr.write(answer or "the supervisor died before it claimed the job")
    return 1


def _supervise(note: Path, lock: int, devices: list[str] | None, answer: SayToParent) -> None:
    started = time.time()
    try:
        job = read_note(note)
        claim = {"started": started, "supervisor": own_identity(), "devices": devices}
        write_once(note_path(note.parent, job["id"], START), claim)
    except (OSError, ValueError) as error:
        answer(str(error))
        return
    answer(_CLAIMED)
    os.close(lock)
    write_patiently(note_path(note.parent, job["id"], END), run(job, started, devices))


if __name__ == "__main__":
    given = [[word for word in ids.split(",") if word] for ids in sys.argv[3:]]
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), given[0] if given else None))
