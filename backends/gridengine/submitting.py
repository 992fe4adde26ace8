"""The arguments of qsub for an order, and what its answer means."""

from __future__ import annotations

import math
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.units import counted
from backends.base import PilotOrder, SubmitRefused
from backends.commands import CommandAnswer, only_says
from backends.gridengine.rows import Pe
from backends.observed.site import SiteNodes
from backends.scripts import Submitter, last_line_with

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
        wish = "slots of any hosts (`$fill_up`, `control_slaves TRUE`), nor that many of one (`$pe_slots`)"
    if not fitting:
        there = ", ".join(f"{pe.name} {pe.rule}" for pe in found) or "none for that many slots"
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


accepted_id = Submitter(
    program="qsub",
    scheduler="Grid Engine",
    id_in=last_line_with(r"[0-9]+"),
    refused=lambda answer: any(words in answer.errors for words in _SAID_NO),
    never_arrived=_NEVER_ARRIVED,
    hint=" (see `qsub -w v`)",
).accepted_id


def nothing_left(answer: CommandAnswer) -> bool:
    """Whether a qdel that failed only says of some jobs that they have ended, or are about to."""
    return only_says(f"{answer.output}\n{answer.errors}", _GONE)


def deleted_waiting(answer: CommandAnswer) -> list[str]:
    """The ids that qdel says it has deleted, which waited and will never run."""
    said = f"{answer.output}\n{answer.errors}"
    return [line.split()[-1] for line in said.splitlines() if "has deleted job" in line]
