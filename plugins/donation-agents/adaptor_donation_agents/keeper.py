"""Keeps one use of this node: `python -I -m adaptor_donation_agents.keeper ORDER`, run by the launcher.

It claims the node (one use at a time for each user, and none while a local job has it), detaches, and runs
the worker until its time is up, its work is done, or a local job needs the node. The command returns as soon
as the node is claimed (exit code 0, one line on stdout), or says on stderr why it is not: with exit code
REFUSED it has started nothing. The standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from adaptor.processes import supervisor
from adaptor.processes.environment import MARKER
from adaptor.processes.identity import own_identity
from adaptor.processes.notes import END, START, note_path, write_once, write_patiently
from adaptor.processes.trees import end_trees
from adaptor_donation_agents.folders import UnsafeError, UserFolder, own_folder
from adaptor_donation_agents.marks import taken_by
from adaptor_donation_agents.records import (
    REFUSED,
    Order,
    UseRecord,
    close,
    end,
    end_request_file,
    lock_file,
    marker,
    read_end_request,
    read_order,
    read_use,
    requested_end,
    use_file,
)

_CLAIMED = "claimed "
_NICENESS = 10
"""The node's own services come first. Not 19: a killed process needs a processor to die."""
_FIRST_TO_GO = b"1000"  # the OOM score: the kernel kills the worker and its tasks first if memory is short
_OF_SCHEDULERS = ("ADAPTOR_", "SLURM", "SRUN_", "PBS_", "PMI_", "PMIX_")
"""Prefixes of a job's variables: the launcher may run inside a job, and a donated node is part of none."""


class RefusedError(Exception):
    """The node cannot be used now; the message says why."""


class Claim(NamedTuple):
    """A node that this process may use until it ends or leaves `folder`."""

    folder: UserFolder
    use: UseRecord
    marker: str


def main(arguments: list[str]) -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, supervisor.SIGNALS)
    try:
        path = Path(arguments[0])
        order = read_order(path)
    except (IndexError, OSError, ValueError) as error:
        sys.stderr.write(f"the order cannot be read: {error} (do the nodes share its folder?)\n")
        return REFUSED
    answer = supervisor.in_background(lambda answer: _use_node(order, path.parent, answer))
    if answer.startswith(_CLAIMED):
        print(answer)
        return 0
    sys.stderr.write(f"{answer or 'the agent died before it claimed the node'}\n")
    return REFUSED if answer else 1


def _use_node(order: Order, notes: Path, answer: supervisor.SayToParent) -> None:
    started = time.time()
    try:
        claimed = claim(order, notes, started)
    except (RefusedError, OSError) as error:
        answer(str(error))
        return
    answer(f"{_CLAIMED}{order['node']} {order['tag']} {claimed.use['keeper']['pid']}")
    write_patiently(note_path(notes, order["tag"], END), _run_worker(order, claimed, started))
    claimed.folder.remove(use_file(order["node"]))


def _run_worker(order: Order, claimed: Claim, started: float) -> dict[str, Any]:
    """Run the worker to its end. Returns the end note; no process of the use lives then.

    `started`: epoch seconds.
    """
    deadline = time.monotonic() + order["tr"]
    output = Path(order["directory"], f"agent-{order['node']}.out")
    try:
        supervisor.redirect_output(output)
    except OSError as error:
        return end("failed", f"its folder cannot be written: {error}")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OF_SCHEDULERS)}
    environment = {
        **inherited,
        **order["environment"],
        "ADAPTOR_PILOT_END": repr(started + order["tr"]),
        "ADAPTOR_PROCESSORS": str(order["p"]),
        "ADAPTOR_NODE": order["node"],
        MARKER: claimed.marker,
    }
    code, cause = supervisor.run(
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
    if cause == supervisor.WALLTIME:
        return end("walltime", f"its time limit of {order['tr']} s", exit_code=code)
    if cause == supervisor.TOLD:
        return end("preempted", "its agent got SIGTERM", exit_code=code)
    if code == 0:
        return end("completed", exit_code=code)
    how = f"exit code {code}" if code > 0 else f"signal {-code}"
    return end("failed", f"its worker ended with {how}; see {output}", exit_code=code)


def _lower_priority() -> None:
    """In the worker's process: lower the priority of the worker and its tasks."""
    os.nice(_NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(_FIRST_TO_GO)


def claim(order: Order, notes: Path, started: float) -> Claim:
    """Record the use, on the node and in the shared folder `notes`.

    Raises:
        RefusedError: the node is in use already, a local job has it, or its runtime folder is not safe.
        OSError: a record cannot be written; the node is not claimed then.
    """
    node = order["node"]
    try:
        runtime, folder = own_folder(order["runtime"])
    except UnsafeError as error:
        raise RefusedError(str(error)) from error
    with runtime:
        if folder.lock(lock_file(node)) is None:
            raise RefusedError(f"{node} is in use already")
        sign = marker(order["runtime"], os.geteuid(), node)
        _clean_up(folder, node, sign)
        use = UseRecord(tag=order["tag"], keeper=own_identity(), notes=str(notes), since=started)
        # First write the record, then look at the marks. A prolog marks first and then looks for records,
        # so one of the two sees the other.
        folder.write(use_file(node), dict(use))
        try:
            job = taken_by(runtime, folder, node)
            if job:
                raise RefusedError(
                    f"{node} is taken by local job {job}; if that job ended without its epilog, run: "
                    f"adaptor reclaim {node} --offer --job {job}"
                )
            _write_start(notes, order["tag"], use)
        except (RefusedError, OSError):
            folder.remove(use_file(node))
            raise
    return Claim(folder, use, sign)


def _write_start(notes: Path, tag: str, use: UseRecord) -> None:
    if note_path(notes, tag, END).exists():
        raise RefusedError(f"{tag} was withdrawn before it began")
    try:
        write_once(note_path(notes, tag, START), {"started": use["since"], "keeper": use["keeper"]})
    except FileExistsError as error:
        raise RefusedError(f"{tag} was started already") from error


def _clean_up(folder: UserFolder, node: str, sign: str) -> None:
    """Remove what an earlier keeper left that was killed."""
    folder.remove(end_request_file(node))
    try:
        use = read_use(folder, node)
    except ValueError:
        use = None
    if use is None and not folder.has(use_file(node)):
        return
    end_trees(sign)
    if use is not None:
        close(folder, node, use, end("node_failed", "its agent was killed"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
