"""Grid Engine as a backend: the arguments of its commands, and what their answers mean."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.model import EndedJob, QueueState
from adaptor.reports import JobReport, OwnJob, Remedy
from adaptor.units import counted
from adaptor_gridengine.parse import Pe, element_id
from adaptor_gridengine.reading import Master, Own
from adaptor_gridengine.state import GridSeen, ceilings, pes_of, queue_state, refusal
from backends.arrays import job_name, script_of
from backends.base import TAG_START, PilotOrder, SubmitRefused
from backends.ceilings import Ceilings
from backends.commands import CommandAnswer, only_says
from backends.machines.base import Machine
from backends.machines.here import HERE
from backends.observed.backend import BatchBackend
from backends.observed.site import SiteNodes
from backends.scripts import Submitter, last_line_with, remedy_in_words, render

_SPREADING = ("$fill_up", "$round_robin")
_NEVER_ARRIVED = ("unable to send message", "unable to contact qmaster", "SGE_ROOT", "cell directory")
"""The request did not reach the qmaster."""
_SAID_NO = ("rejected", "denied", "no suitable queues", "qsub: ", "Unknown option", "does not exist")
_NO_SIZE = (
    *("max_jobs", "max_u_jobs", "limited to", "does not exist", "Unknown option", "access", "not allowed"),
    *("not owner", "unknown queue", "unknown project"),
)
"""Words of a refusal that no smaller request meets."""
_GONE = ("does not exist", "already in deletion", "has deleted job", "registered the job")


def choose_pe(order: PilotOrder, site: SiteConfig, pes: list[Pe], nodes: SiteNodes) -> Pe | None:
    """The parallel environment of a request, by its rule; None: one slot needs none.

    Several processors of a task, and whole nodes, are of one host only with `$pe_slots` or with a fixed
    number of slots on each host. Others take slots wherever they are, which starts soonest.

    Raises SubmitRefused: the queue has no environment that gives the request its slots in this way.
    """
    p, each = order.request.p, order.task.processors
    if order.task.gpus:
        raise SubmitRefused(
            "Grid Engine has no common word for GPUs: ask by `extra_args` of the site", Remedy.OTHER
        )
    chunk = (site.processors_per_node or nodes.usual_size) if site.whole_nodes else 0
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
            f"there are: {there}; for requests of one host lower `limits.max_proc` of this site to its slots",
            Remedy.NARROWER,
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
    options = ["-terse", "-N", job_name(order), "-q", queue, "-l", ",".join(resources)]
    options += ["-pe", pe.name, str(order.request.p)] if pe else []
    options += ["-t", f"1-{order.pilots}"] if order.pilots > 1 else []
    options += ["-P", site.account] if site.account is not None else []
    options += ["-notify", "-w", "e", "-R", "y", "-r", "n", "-m", "n", "-S", "/bin/bash", "-C", ""]
    # The pilots of an array say what they have to say into files of their own (`array.template`).
    said = f"{order.directory}/gridengine.out" if order.pilots == 1 else "/dev/null"
    options += ["-wd", str(order.directory), "-j", "y", "-o", f":{said}"]
    return [*options, *site.extra_args, str(script)]


def refused_remedy(said: str) -> Remedy:
    """The change by which Grid Engine might take a request that qsub says is refused."""
    return Remedy.OTHER if any(words in said for words in _NO_SIZE) else remedy_in_words(said)


def _number(output: str) -> str | None:
    """Number of a job in the output of `qsub -terse`, which prints `12.1-40:1` for an array."""
    found = last_line_with(r"[0-9]+(\.[0-9]+-[0-9]+:[0-9]+)?")(output)
    return found and found.partition(".")[0]


accepted_id = Submitter(
    program="qsub",
    scheduler="Grid Engine",
    id_in=_number,
    refused=lambda answer: any(words in answer.errors for words in _SAID_NO),
    never_arrived=_NEVER_ARRIVED,
    hint=" (see `qsub -w v`)",
    remedy=refused_remedy,
).accepted_id


def nothing_left(answer: CommandAnswer) -> bool:
    """Whether a qdel that failed only says of some jobs that they have ended, or are about to."""
    return only_says(f"{answer.output}\n{answer.errors}", _GONE)


def deleted_waiting(answer: CommandAnswer) -> list[str]:
    """The ids that qdel says it has deleted, which waited and will never run."""
    said = f"{answer.output}\n{answer.errors}"
    return [line.split()[-1] for line in said.splitlines() if "has deleted job" in line]


_TEMPLATE = Path(__file__).with_name("pilot.template")
_LATELY = 6 * 3600.0  # seconds for which jobs that have ended are learned from


class GridEngineBackend(BatchBackend[Master]):
    """Grid Engine at one site (`backends.base.Backend`)."""

    reading = Master

    def __init__(self, site: SiteConfig, machine: Machine = HERE, shared: Master | None = None) -> None:
        super().__init__(site, machine, shared)
        self._own = Own(self._shared)
        self._seen: GridSeen | None = None

    def _observe(self) -> QueueState:
        self._seen = seen = self._shared.look.take(self._asker)
        return queue_state(seen, seen.queue(self._site.partition))

    def submit(self, order: PilotOrder) -> str:
        """Submit a request; return its job id.

        Raises:
            SubmitRefused: Grid Engine said no, or would take the request and never start it.
            SubmitUncertain: qsub hung, or failed in a way that leaves open what became of the request.
            SchedulerError: qsub cannot be run or did not reach the qmaster; the request is not queued.
        """
        seen = self._known()
        queue = seen.queue(self._site.partition)
        nodes = seen.nodes(queue.name)
        if problem := refusal(order.request, seen.cell, queue, nodes):
            raise SubmitRefused(problem)
        pe = choose_pe(order, self._site, pes_of(seen.cell, queue), nodes)
        script = script_of(order)
        command = ["qsub", *arguments_of(order, self._site, queue.name, pe, script)]
        memory = order.task.memory
        text = render(
            _TEMPLATE,
            processors=order.request.p,
            seconds=str(order.request.tr),
            command=command,
            environment=order.environment,
            prologue=self._site.prologue,
            worker=order.worker,
            index="" if order.pilots == 1 else "SGE_TASK_ID - 1",
            memory="" if memory is None else str(memory // order.task.processors),
        )
        return accepted_id(self._submit(command, script, text))

    def submit_array(self, order: PilotOrder) -> list[str]:
        """Submit equal pilots; return the ids of their tasks in the array."""
        id = self.submit(order)
        if order.pilots == 1:
            return [id]
        return [element_id(id, str(task)) for task in range(1, order.pilots + 1)]

    def jobs(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """Reports of our jobs. Records of ended jobs may come some seconds after their end."""
        return self._own.reports(ids, tag_prefix)

    def cancel(self, jobs: Collection[OwnJob]) -> None:
        """End these jobs by qdel. The queue's `notify` passes from the signal to SIGKILL."""
        for answer in self._cancel(["qdel"], self._own.living(jobs), nothing_left):
            self._own.deleted.update(deleted_waiting(answer))

    def ended_jobs(self) -> list[EndedJob]:
        """Jobs of other users that ended lately, from the records that qacct shows."""
        found = self._shared.records(time.time() - _LATELY) or []
        return [
            EndedJob(job.owner, job.limit, job.end - job.start)
            for job in found
            if 0 < job.start < job.end and 0 < job.limit < float("inf") and not job.name.startswith(TAG_START)
        ]

    def _ceilings(self) -> Ceilings:
        seen = self._known()
        queue = seen.queue(self._site.partition)
        return ceilings(seen.cell, queue, seen.nodes(queue.name))

    def _known(self) -> GridSeen:
        """The cell as it was when the queue was last read."""
        if self._seen is None:
            self._seen = self._shared.see()
        return self._seen


BACKEND = GridEngineBackend
