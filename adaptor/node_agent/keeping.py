"""Keep the worker of a lent node, from its start to the end of its last process."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import Any

from adaptor.node_agent.claiming import Claim
from adaptor.node_agent.lease import end, end_of_call, read_call
from adaptor.node_agent.order import Order
from adaptor.processes.supervisor import TOLD, WALLTIME, redirect_output, run
from adaptor.processes.trees import MARKER

_NICENESS = 10
"""The node's own services come first. Not 19: what is killed has to get a processor for dying, too."""
_FIRST_TO_GO = b"1000"
"""For the kernel where memory is short."""
_OF_SCHEDULERS = ("ADAPTOR_", "SLURM", "SRUN_", "PBS_", "PMI_", "PMIX_")
"""Variables of a job from within which the launcher may have been called; a lent node is in no job."""


def keep(order: Order, claimed: Claim, started: float) -> dict[str, Any]:
    """Returns the content of the end note; nothing of the lease lives then.

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
        prepare=_step_back,
    )
    call = read_call(claimed.place, order["node"], order["tag"])
    if call is not None:
        return end_of_call(call)
    if cause == WALLTIME:
        return end("walltime", f"its time limit of {order['tr']} s", exit_code=code)
    if cause == TOLD:
        return end("preempted", "its keeper was told to leave the node", exit_code=code)
    if code == 0:
        return end("completed", exit_code=code)
    how = f"exit code {code}" if code > 0 else f"signal {-code}"
    return end("failed", f"its worker ended with {how}; see {output}", exit_code=code)


def _step_back() -> None:
    """In the worker's process: it and all that it starts yield to everything else on the node."""
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
