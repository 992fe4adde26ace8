"""The arguments of qsub for an order, and what its answer means."""

from __future__ import annotations

import math
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.units import counted
from backends.base import PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain
from backends.commands import CommandAnswer
from backends.gridengine.rows import Pe
from backends.observed.site import SiteNodes

_SPREADING = ("$fill_up", "$round_robin")
_NEVER_ARRIVED = ("unable to send message", "unable to contact qmaster", "SGE_ROOT", "cell directory")
"""The request did not reach the qmaster."""
_SAID_NO = ("rejected", "denied", "no suitable queues", "qsub: ", "Unknown option", "does not exist")
_GONE = ("does not exist", "already in deletion", "has deleted job", "registered the job")


def choose_pe(order: PilotOrder, site: SiteConfig, pes: list[Pe], nodes: SiteNodes) -> Pe | None:
    """The parallel environment of a request, by its rule; None: one slot needs none.

    Several processors of a task, and whole nodes, are of one host only with `$pe_slots` or with a fixed
    number of slots on each host. Others take slots wherever they are, which starts soonest.

    Raises:
        SubmitRefused: the queue has no environment that gives the request its slots in this way.
    """
    p, each = order.request.p, order.task.processors
    if order.task.gpus:
        raise SubmitRefused("Grid Engine has no common word for GPUs: ask by `extra_args` of the site")
    chunk = p // order.spread if order.spread else 0
    if site.whole_nodes:
        chunk = site.processors_per_node or nodes.usual_size
    if p == 1 and chunk <= 1:
        return None
    found = [pe for pe in pes if pe.slots >= p]
    fixed = [pe for pe in found if pe.per_host and p % pe.per_host == 0 and (pe.controls or p == pe.per_host)]
    one = [pe for pe in found if pe.rule == "$pe_slots" and p <= max(nodes.sizes.values(), default=0)]
    if chunk:
        fitting = [pe for pe in fixed if pe.per_host == chunk] or (one if chunk == p else [])
        wish = f"{chunk} slots on each host (`allocation_rule {chunk}`)"
    elif each > 1:
        fitting = one or [pe for pe in fixed if pe.per_host and pe.per_host % each == 0]
        wish = f"the {each} processors of a task on one host (`$pe_slots`, `allocation_rule {each}`)"
    else:
        fitting = [pe for pe in found if pe.rule in _SPREADING and pe.controls] or one or fixed
        wish = "slots of any hosts (`$fill_up`, `control_slaves TRUE`), nor so many of one (`$pe_slots`)"
    if not fitting:
        there = ", ".join(f"{pe.name} {pe.rule}" for pe in found) or "none for so many slots"
        raise SubmitRefused(
            f"no parallel environment of queue {nodes.name} gives {counted(p, 'processor')} with {wish}; "
            f"there are: {there}; for requests of one host lower `limits.max_proc` of this site to its slots"
        )
    return max(fitting, key=lambda pe: pe.slots)


def arguments_of(order: PilotOrder, site: SiteConfig, queue: str, pe: Pe | None, script: Path) -> list[str]:
    """All arguments of qsub.

    `-C ""`: no line of the script is taken for options. `-notify`: SIGUSR2 comes before SIGKILL. `-w e`: what
    could not even start in an empty cluster is refused. `-R y`: slots are kept for a wide request, where the
    scheduler does that at all.
    """
    resources = [f"h_rt={order.request.tr}"]
    if order.task.memory is not None:
        resources.append(f"h_vmem={math.ceil(order.task.memory / order.task.processors / 1024)}K")
    options = ["-terse", "-N", order.tag, "-q", queue, "-l", ",".join(resources)]
    options += ["-pe", pe.name, str(order.request.p)] if pe else []
    options += ["-P", site.account] if site.account is not None else []
    options += ["-notify", "-w", "e", "-R", "y", "-r", "n", "-m", "n", "-S", "/bin/bash", "-C", ""]
    options += ["-wd", str(order.directory), "-j", "y", "-o", f":{order.directory}/gridengine.out"]
    return [*options, *site.extra_args, str(script)]


def accepted_id(answer: CommandAnswer) -> str:
    """The job's id.

    Raises:
        SubmitRefused: Grid Engine said no.
        SubmitUncertain: the answer leaves open whether the request is queued.
        SchedulerError: the qmaster was not reached, so the request is certainly not queued.
    """
    if answer.status == 0:
        for line in reversed(answer.output.split()):
            if line.isdecimal():
                return line
        raise SubmitUncertain(f"qsub printed no job id but {answer.output.strip()[:200]!r}")
    problem = f"qsub failed with status {answer.status}: {answer.complaint}"
    if any(words in answer.errors for words in _NEVER_ARRIVED):
        raise SchedulerError(problem)
    if answer.status > 0 and any(words in answer.errors for words in _SAID_NO):
        raise SubmitRefused(f"Grid Engine refused the request: {answer.complaint} (see `qsub -w v`)")
    raise SubmitUncertain(problem)


def deleted_waiting(answer: CommandAnswer) -> list[str]:
    """The ids that qdel says it has deleted, which waited and will never run.

    Raises:
        SchedulerError: some other job could not be deleted.
    """
    lines = [line for line in f"{answer.output}\n{answer.errors}".splitlines() if line.strip()]
    if answer.status and not (lines and all(any(words in line for words in _GONE) for line in lines)):
        raise SchedulerError(f"qdel failed with status {answer.status}: {answer.complaint}")
    return [line.split()[-1] for line in lines if "has deleted job" in line]
