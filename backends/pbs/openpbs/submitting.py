"""The arguments of OpenPBS's qsub for an order, and what its answer means."""

from __future__ import annotations

import math
from pathlib import Path

from adaptor.config.schema import SiteConfig
from backends.arrays import job_name
from backends.base import ChangeRefused, PilotOrder, SchedulerError, SubmitRefused
from backends.commands import CommandAnswer
from backends.pbs.constraints import PbsShape
from backends.pbs.openpbs.jobs import GPU_TYPES, TAG
from backends.pbs.reasons import refused_remedy
from backends.pbs.rows import Preemption
from backends.scripts import Submitter, last_line_with

LONGEST_NAME = 230  # characters of a job's name (PBS_MAXJOBNAME)
_NEVER_ARRIVED = ("cannot connect to server", "Connection refused", "Unknown Host", "pbsconf error")
"""The request did not reach the server."""
_UNCERTAIN = frozenset({162, 163, 183, 208, 255})
"""PBSE_SYSTEM, INTERNAL, PROTOCOL and DISPROTO, modulo 256: the server may have taken the request before."""


def must_be_rerunnable(preemption: Preemption | None) -> bool:
    """Whether a pilot on a donated node yields only by being put back into its queue.

    Raises SubmitRefused: it would not yield at all.
    """
    order = "" if preemption is None else preemption.order
    if not order or "D" in order or "S" in order:
        return False
    if "R" in order:
        return True
    raise SubmitRefused(f"no node is donated: {CANNOT_YIELD.format(order=order)}")


CANNOT_YIELD = (
    "the scheduler's preempt_order is {order}, and pilots cannot be checkpointed: it needs D (best), R or S"
)


def arguments_of(
    order: PilotOrder,
    site: SiteConfig,
    shape: PbsShape,
    script: Path,
    *,
    type_resource: str = GPU_TYPES[0],
    rerunnable: bool = False,
) -> list[str]:
    """All arguments of qsub.

    `type_resource`: by which the nodes name the type of their GPUs.

    bash is the job's program itself, not a script: PBS would hand that to a login shell, which the
    SIGTERM before the end of the job kills, and PBS takes the end of that shell for the end of the job.
    """
    name, array = job_name(order), order.pilots > 1
    options = ["-f", "-N", name[:LONGEST_NAME], "-v", f"{TAG}={name}"]
    options += ["-J", f"0-{order.pilots - 1}"] if array else []
    for option, value in (("-q", site.partition), ("-A", site.account)):
        options += [option, value] if value is not None else []
    least, most = order.request.least, order.request.tr
    # Fixed, or from the least time on: PBS then starts the job with what the hole holds (shrink-to-fit).
    walltime = [f"walltime={most}"] if least is None else _from_to(least, most)
    for resource in (_select(shape, type_resource), _place(shape), *walltime):
        options += ["-l", resource]
    # PBS takes no array that is not rerunnable; it would bring a file for each of its jobs.
    options += ["-r", "y" if rerunnable or array else "n", "-m", "n", "-j", "oe"]
    options += ["-o", "/dev/null" if array else f"{order.directory}/pbs.out", "-W", "umask=077"]
    options += ["-W", f"depend=afterany:{order.after}"] if order.after else []
    return [*options, *site.extra_args, "--", "/bin/bash", "-l", str(script)]


def changes_of(order: PilotOrder, shape: PbsShape, *, type_resource: str = GPU_TYPES[0]) -> list[str]:
    """The arguments of qalter for a queued job, without its id.

    `select` is always among them: PBS then leaves a job that has started as it is. So are both walltimes: PBS
    changes a plain walltime to them, and does not take them back from a job that has them.
    """
    request = order.request
    resources = (_select(shape, type_resource), *_from_to(request.least or request.tr, request.tr))
    return [word for resource in resources for word in ("-l", resource)]


def check_changed(answer: CommandAnswer) -> None:
    """
    Raises:
        ChangeRefused: the server refused `qalter`.
        SchedulerError: its answer leaves open whether the job was changed.
    """
    if answer.status == 0:
        return
    problem = f"qalter failed with status {answer.status}: {answer.complaint}"
    if any(words in answer.errors for words in _NEVER_ARRIVED):
        raise SchedulerError(problem)
    if answer.status < 0 or answer.status in _UNCERTAIN or "qalter:" not in answer.errors:
        raise SchedulerError(problem)
    raise ChangeRefused(f"PBS did not change the request: {answer.complaint}")


def _select(shape: PbsShape, type_resource: str) -> str:
    """mpiprocs: the file of nodes gets one line for each processor, as MPI programs expect it."""
    words = [f"select={shape.count}", f"ncpus={shape.part.processors}", f"mpiprocs={shape.part.processors}"]
    if shape.part.memory is not None:
        words.append(f"mem={math.ceil(shape.part.memory / 1024)}kb")
    if shape.part.whole_gpus:
        words.append(f"ngpus={shape.part.whole_gpus}")
    if shape.part.whole_gpus and shape.part.gpu_type:
        words.append(f"{type_resource}={shape.part.gpu_type}")
    words += [f"{name}={value}" for name, value in shape.traits]
    if shape.node:
        words.append(f"host={shape.node}")
    return ":".join(words)


def _place(shape: PbsShape) -> str:
    if shape.node:
        return "place=exclhost"  # all vnodes of the machine
    if shape.whole_nodes:
        return "place=scatter:excl"
    return "place=free"


def _from_to(least: int, most: int) -> list[str]:
    """Options of a request that may shrink. They have a walltime too, or PBS holds its default against the
    bounds of the queue, and refuses the job."""
    return [f"min_walltime={least}", f"max_walltime={most}", f"walltime={most}"]


accepted_id = Submitter(
    program="qsub",
    scheduler="PBS",
    id_in=last_line_with(r"\d+(\[\])?\.[\w.-]+"),
    # The exit status is PBS's error number modulo 256.
    refused=lambda answer: answer.status not in _UNCERTAIN and "qsub:" in answer.errors,
    never_arrived=_NEVER_ARRIVED,
    remedy=refused_remedy,
).accepted_id
