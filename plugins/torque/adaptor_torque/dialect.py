"""Torque (Adaptive Computing's; 2.5 to 6.1) as a dialect of PBS."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from adaptor.config.schema import SiteConfig
from adaptor.crafting.fits import tasks_on
from adaptor.reports import JobState
from adaptor.resources import Node
from adaptor_torque import parse
from adaptor_torque.parse import TAG
from backends.base import PilotOrder, SchedulerError
from backends.commands import CommandAnswer, Commands, chunks, only_says
from backends.pbs.constraints import HOST, PbsShape
from backends.pbs.dialect import SLOT_MARGIN, TIME_RESOLUTION, PbsDialect
from backends.pbs.fields import number_of, selected_ids, unknown_ids
from backends.pbs.rows import PbsJob, PbsNode, PbsQueue, PbsServer
from backends.pbs.state.nodes import machines_of
from backends.scripts import Submitter, last_line_with

LOG = "pbs-pilot.out"  # in the pilot's folder: what the script prints, and Torque about it
_LONGEST_NAME = 15
_NEVER_ARRIVED = ("cannot connect to server", "Connection refused", "cannot be loaded", "trqauthd")
"""The request did not reach pbs_server."""
_SAID_NO = ("submit error", "administratively rejected", "illegal", "usage:", "can not be run as root")


def arguments_of(
    order: PilotOrder, site: SiteConfig, shape: PbsShape, script: Path, per_node: int
) -> list[str]:
    """All arguments of qsub. `per_node`: chunks that the usual node holds."""
    options = [
        *("-N", short_name(order.tag)),
        *("-S", "/bin/bash"),  # not whatever the user's login shell is
        *("-r", "n"),  # a pilot that starts again would hold processors that the planner does not know of
        *("-j", "oe", "-o", str(script.parent / LOG)),
        *("-l", f"nodes={nodes_wanted(shape, per_node)}"),
        *("-l", f"walltime={order.request.tr}"),
        *("-v", f"{TAG}={order.tag}"),
    ]
    if shape.part.memory is not None:
        options += ["-l", f"mem={shape.part.memory * shape.count}b"]
    for option, value in (("-q", site.partition), ("-A", site.account)):
        if value is not None:
            options += [option, value]
    if site.qos is not None:
        options += ["-l", f"qos={site.qos}"]
    return [*options, *site.extra_args, str(script)]


def nodes_wanted(shape: PbsShape, per_node: int) -> str:
    """The specification for `-l nodes=`: full nodes, and one with the rest.

    Whether `nodes=4:ppn=1` may lie on one node is each scheduler's own affair; this form means the same
    to all of them.
    """
    if shape.node:
        return _part(shape.node, 1, shape)
    each = 1 if shape.whole_nodes else max(1, min(shape.count, per_node))
    full, rest = divmod(shape.count, each)
    host = dict(shape.traits).get(HOST)
    return "+".join([_part(host or str(full), each, shape), *([_part("1", rest, shape)] if rest else [])])


def _part(nodes: str, chunks: int, shape: PbsShape) -> str:
    """Args: chunks: on each of these nodes."""
    gpus = f":gpus={chunks * shape.part.whole_gpus}" if shape.part.whole_gpus else ""
    properties = "".join(f":{value}" for name, value in shape.traits if name != HOST)
    return f"{nodes}:ppn={chunks * shape.part.processors}{gpus}{properties}"


def short_name(tag: str) -> str:
    """A job name that every version takes."""
    own = tag.rpartition(".")[2]
    return f"adaptor.{re.sub(r'[^A-Za-z0-9_-]', '_', own)}"[:_LONGEST_NAME]


_UNCERTAIN = re.compile(r"[Ss]ocket|Time ?out|End of File|shutting down")
"""qsub lost the server in the middle (the PBSE_SOCKET_… errors, PBSE_TIMEOUT)."""


def _refused(answer: CommandAnswer) -> bool:
    return any(words in answer.errors for words in _SAID_NO) and not _UNCERTAIN.search(answer.errors)


accepted_id = Submitter(
    program="qsub",
    scheduler="Torque",
    id_in=last_line_with(r"\d+(\[\])?\.\S+"),
    refused=_refused,
    never_arrived=_NEVER_ARRIVED,
).accepted_id


_UNKNOWN_JOB = 153
"""The exit status of qstat where a job that it was asked for is not known: PBSE_UNKJOBID, 15001."""
_OVER = ("Unknown Job", "nonexistent job", "already in exit state", "Request invalid for state of job")
"""What qstat and qdel say of jobs that are gone, or on their way."""


class Torque(PbsDialect):
    """It reports nothing of ended jobs, which are remembered for minutes (`tracejob` is for administrators),
    nor of reservations and preemption, which Maui and Moab keep: a site may not offer their commands."""

    name = "Torque"
    time_resolution = TIME_RESOLUTION
    slot_margin = SLOT_MARGIN
    template = Path(__file__).with_name("pilot.template")

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._machines: tuple[Node, ...] | None = None  # as they were when they were last asked
        self._foreign: frozenset[str] = frozenset()
        """Ids of our user's jobs that were seen and that the caller did not care for."""
        self._unknown: set[str] = set()

    def queue(self, nodes: Collection[PbsNode]) -> list[PbsJob]:  # noqa: ARG002  the answer says it all
        """See Dialect. `-t` lists the jobs of an array one by one."""
        return [job for job in parse.parse_jobs(self._printed("-f", "-1", "-t")) if job.state != "C"]

    def own_jobs(self, ids: Collection[str]) -> list[PbsJob]:
        """See Dialect. A job that ended without an exit status is left out, as if Torque had forgotten it."""
        user = self._commands.user()
        listed = selected_ids(self._commands.ask("qselect", "-u", user))
        asked = {number_of(id): id for id in (*(set(listed) - self._foreign), *ids)}
        self._unknown = set()
        texts = [self._printed("-f", "-1", *part) for part in chunks(list(asked.values()))]
        found = [job for text in texts for job in parse.parse_jobs(text) if job.owner == user]
        mine = [job for job in found if job.id in ids or job.tag]
        self._foreign = frozenset(listed) - {job.id for job in mine}
        return [job for job in mine if job.state != "C" or state_of(job) is not JobState.UNKNOWN]

    def unknown_ids(self) -> frozenset[str]:
        return frozenset(self._unknown)

    def nodes(self) -> list[PbsNode]:
        found = parse.parse_nodes(self._commands.ask("pbsnodes", "-a"))
        self._machines = machines_of(found)
        return found

    def queues(self) -> list[PbsQueue]:
        return parse.parse_queues(self._printed("-Q", "-f", "-1"))

    def server(self) -> PbsServer:
        return parse.parse_server(self._printed("-B", "-f", "-1"))

    def state_of(self, job: PbsJob) -> JobState:
        return state_of(job)

    def arguments(self, order: PilotOrder, site: SiteConfig, shape: PbsShape, script: Path) -> list[str]:
        return arguments_of(order, site, shape, script, self.chunks_per_node(shape))

    def chunks_per_node(self, shape: PbsShape) -> int:
        """That the usual node holds; 1 where none is known to hold any."""
        if self._machines is None:
            self.nodes()
        held = Counter(tasks for node in self._machines or () if (tasks := tasks_on(node, shape.part)))
        return held.most_common(1)[0][0] if held else 1

    def accepted_id(self, answer: CommandAnswer) -> str:
        return accepted_id(answer)

    def is_over(self, answer: CommandAnswer) -> bool:
        return only_says(answer.errors, _OVER)

    def _printed(self, *arguments: str) -> str:
        """What qstat printed; jobs that are gone are no error."""
        answer = self._commands.run("qstat", *arguments)
        only_gone = not answer.errors.strip() or only_says(answer.errors, _OVER)
        if answer.status and not (answer.status == _UNKNOWN_JOB and only_gone):
            raise SchedulerError(f"qstat failed with status {answer.status}: {answer.complaint}")
        self._unknown |= unknown_ids(answer.errors, arguments)
        return answer.output


TOLD = 143  # the exit status of our own script after an order to end: 128 + SIGTERM, as the shell would say

_LETTERS = {
    "Q": JobState.QUEUED,
    "H": JobState.QUEUED,
    "W": JobState.QUEUED,
    "T": JobState.QUEUED,  # on its way to another server
    "R": JobState.RUNNING,
    "S": JobState.RUNNING,
    "E": JobState.RUNNING,
}
"""pbs_job_attributes(7B), `job_state`; C is judged by `state_of`."""

_OVER_WALLTIME = -11  # JOB_EXEC_OVERLIMIT_WT (Torque 6); older ones only signal the job
_NODE_FAILED = range(-6, -3)
"""JOB_EXEC_INITABT to JOB_EXEC_INITRMG: the node's daemon was restarted and found the job there."""
_SIGNALLED = frozenset({TOLD, 256 + 15, 256 + 9})
"""SIGTERM, and the SIGKILL that follows after `kill_delay`: by qdel, an operator, the scheduler or because
the walltime was over; the clock shows the last case. pbs_mom runs our script under a login shell, which
SIGTERM mostly ends before the script does: then its status counts."""


def state_of(job: PbsJob) -> JobState:
    """Torque's states; of Slurm's wrapper those that it has."""
    if job.state != "C":
        return _LETTERS.get(job.state, JobState.UNKNOWN)
    status = job.exit_status
    if job.start is None and not job.nodes and (status is None or status in _SIGNALLED or status == 0):
        return JobState.CANCELLED  # deleted while it waited
    if status == _OVER_WALLTIME:
        return JobState.WALLTIME
    if status is None or status in _SIGNALLED:
        # It was ended, or its end was not recorded: only the clock can tell a walltime that was over.
        if job.start is not None and job.end is not None and job.end - job.start >= job.limit - 1:
            return JobState.WALLTIME
        return JobState.UNKNOWN if job.exit_status is None else JobState.CANCELLED
    if status == 0:
        return JobState.COMPLETED
    return JobState.NODE_FAILED if status in _NODE_FAILED else JobState.FAILED
