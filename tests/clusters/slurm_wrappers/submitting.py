"""The arguments of Slurm's qsub, which hands them to a shell as they are, and what its answer means."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor_torque.dialect import LOG
from backends.base import PilotOrder, SubmitRefused
from backends.commands import CommandAnswer
from backends.pbs.constraints import PbsShape
from backends.slurm import submitting as sbatch
from tests.backends.answering import answer_of


def arguments_of(
    order: PilotOrder, site: SiteConfig, shape: PbsShape, script: Path, per_node: int
) -> list[str]:
    """All arguments of qsub.

    Args:
        per_node: chunks that the usual node holds.

    Raises:
        SubmitRefused: the site wants what this qsub cannot say.
    """
    if site.qos is not None:
        raise SubmitRefused("Slurm's qsub cannot say a QOS: use `backend: slurm` for this site")
    log = str(script.parent / LOG).replace("%", "%%")  # sbatch replaces `%` and a letter
    options = [
        *("-N", shlex.quote(order.tag)),
        *("-r", "n"),
        *("-j", "oe", "-o", shlex.quote(log)),
        *("-l", f"{_resources(shape, per_node)},walltime={order.request.tr}"),
    ]
    for option, value in (("-q", site.partition), ("-A", site.account)):
        if value is not None:
            options += [option, shlex.quote(value)]
    return [*options, *site.extra_args, shlex.quote(str(script))]


def _resources(shape: PbsShape, per_node: int) -> str:
    """Whole nodes, or tasks wherever they find room: `nodes=N:ppn=C` would ask for N nodes at least."""
    if shape.node:
        return f"nodes={shlex.quote(shape.node)}:ppn={shape.part.processors}"
    if shape.whole_nodes:
        return f"nodes={shape.count}:ppn={shape.part.processors}"
    wanted = f"mppwidth={shape.count},mppdepth={shape.part.processors}"
    if shape.part.memory is None:
        return wanted
    # It can only be said for each node: enough for as many tasks as may come to lie on one.
    most = max(1, min(shape.count, per_node))
    return f"{wanted},mem={math.ceil(shape.part.memory * most / 2**20)}M"


def accepted_id(answer: CommandAnswer) -> str:
    """The job's id; qsub prints what sbatch complained of to its standard output.

    Raises:
        SubmitRefused, SubmitUncertain, SchedulerError: as `backends.slurm.submitting.accepted_id`.
    """
    lines = [line.strip("' ") for line in answer.output.splitlines()]
    complaints = [line for line in lines if line.startswith("sbatch:")]
    return sbatch.accepted_id(answer_of(answer.status, answer.output, "\n".join(complaints)))
