"""Keeps one use of this node: `python -I -m adaptor.node_agent.keeper ORDER`, run by the site's launcher.

It claims the node, detaches, and runs the worker until its time is up, its work is done, or a local job
needs the node. The command returns as soon as the node is claimed (exit code 0, one line on stdout), or
says on stderr why it is not: with exit code REFUSED it has started nothing. The standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from adaptor.node_agent.claim import Claim, RefusedError, claim
from adaptor.node_agent.order import REFUSED, Order, read_order
from adaptor.node_agent.use import end, read_end_request, requested_end, use_file
from adaptor.processes.detaching import Answer, in_background
from adaptor.processes.environment import MARKER
from adaptor.processes.notes import END, note_path, write_patiently
from adaptor.processes.supervisor import SIGNALS, TOLD, WALLTIME, redirect_output, run

_CLAIMED = "claimed "
_NICENESS = 10
"""The node's own services come first. Not 19: a killed process needs a processor to die."""
_FIRST_TO_GO = b"1000"
"""The OOM score: the kernel kills the worker and its tasks first if memory is short."""
_OF_SCHEDULERS = ("ADAPTOR_", "SLURM", "SRUN_", "PBS_", "PMI_", "PMIX_")
"""Prefixes of a job's variables: the launcher may run inside a job, and a donated node is part of none."""


def main(arguments: list[str]) -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        path = Path(arguments[0])
        order = read_order(path)
    except (IndexError, OSError, ValueError) as error:
        sys.stderr.write(f"the order cannot be read: {error} (do the nodes share its folder?)\n")
        return REFUSED
    answer = in_background(lambda answer: _use_node(order, path.parent, answer))
    if answer.startswith(_CLAIMED):
        print(answer)
        return 0
    sys.stderr.write(f"{answer or 'the keeper died before it claimed the node'}\n")
    return REFUSED if answer else 1


def _use_node(order: Order, notes: Path, answer: Answer) -> None:
    started = time.time()
    try:
        claimed = claim(order, notes, started)
    except (RefusedError, OSError) as error:
        answer(str(error))
        return
    answer(f"{_CLAIMED}{order['node']} {order['tag']} {claimed.use['keeper']['pid']}")
    _keep(order, claimed, notes, started)


def _keep(order: Order, claimed: Claim, notes: Path, started: float) -> None:
    write_patiently(note_path(notes, order["tag"], END), _run_worker(order, claimed, started))
    claimed.folder.remove(use_file(order["node"]))


def _run_worker(order: Order, claimed: Claim, started: float) -> dict[str, Any]:
    """Run the worker to its end. Returns the end note; no process of the use lives then.

    `started`: epoch seconds.
    """
    deadline = time.monotonic() + order["tr"]
    output = Path(order["directory"], f"agent-{order['node']}.out")
    try:
        redirect_output(output)
    except OSError as error:
        return end("failed", f"its folder cannot be written: {error}")
    environment = _environment(order, claimed.marker, started)
    code, cause = run(
        order["worker"],
        environment,
        order["directory"],
        deadline=deadline,
        grace=order["grace"],
        prepare=_lower_priority,
    )
    request = read_end_request(claimed.folder, order["node"], order["tag"])
    if request is not None:
        return requested_end(request)
    if cause == WALLTIME:
        return end("walltime", f"its time limit of {order['tr']} s", exit_code=code)
    if cause == TOLD:
        return end("preempted", "its keeper got SIGTERM", exit_code=code)
    if code == 0:
        return end("completed", exit_code=code)
    how = f"exit code {code}" if code > 0 else f"signal {-code}"
    return end("failed", f"its worker ended with {how}; see {output}", exit_code=code)


def _lower_priority() -> None:
    """In the worker's process: lower the priority of the worker and its tasks."""
    os.nice(_NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(_FIRST_TO_GO)


def _environment(order: Order, marker: str, started: float) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OF_SCHEDULERS)}
    return {
        **inherited,
        **order["environment"],
        "ADAPTOR_PILOT_END": repr(started + order["tr"]),
        "ADAPTOR_PROCESSORS": str(order["p"]),
        "ADAPTOR_NODE": order["node"],
        MARKER: marker,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
