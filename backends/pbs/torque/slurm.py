"""Slurm's wrappers of Torque's commands (contribs/torque; Debian: slurm-wlm-torque) as a dialect.

They tell less than Torque does: no exit status and no reason, of limits only those of `qstat -q`, of
a queue's nodes nothing, and of a node's use only whether all of it is. How a pilot ended it notes itself;
without its note, and before its time was over, that is not known. `backend: slurm` knows all of it.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

import msgspec

from adaptor.config.schema import SiteConfig
from backends.base import PilotOrder
from backends.commands import Answer, Commands
from backends.pbs.rows import PbsJob, PbsNode, PbsQueue, PbsServer
from backends.pbs.shape import Shape
from backends.pbs.torque import slurm_parse, slurm_submitting
from backends.pbs.torque.dialect import Torque
from backends.pbs.torque.notes import Notes
from backends.pbs.torque.text import listed_ids

PATIENCE = 60.0
"""Seconds for which a job whose note is missing is taken to be on its way out: it is called ended as soon
as its workers are told to leave, and they have Slurm's KillWait (mostly 30 s) for that."""
_REMEMBERED = 300.0
"""Seconds for which Slurm knows ended jobs unless a site sets MinJobAge."""


class SlurmWrappers(Torque):
    """Implements `backends.pbs.dialect.Dialect`."""

    name = "Slurm's wrappers"
    time_resolution = 60
    slot_margin = 100  # as `backends.slurm.margin` has it where nothing is configured

    def __init__(self, commands: Commands) -> None:
        super().__init__(commands)
        self._notes = Notes(commands.machine)

    def queue(self, nodes: Collection[PbsNode]) -> list[PbsJob]:  # noqa: ARG002
        return [job for job in self._parsed(self._printed("-f")) if job.state != "C"]

    def queues(self) -> list[PbsQueue]:
        return slurm_parse.parse_queues(self._printed("-Q", "-f"), self._printed("-q"))

    def server(self) -> PbsServer:
        """There is none to ask: the wrappers do not tell Slurm's default partition."""
        return PbsServer(name="Slurm", version="of Torque's commands", history=_REMEMBERED)

    def arguments(self, order: PilotOrder, site: SiteConfig, shape: Shape, script: Path) -> list[str]:
        found = slurm_submitting.arguments_of(order, site, shape, script, self._usual_node())
        self._notes.expect(order.tag, script.parent)
        return found

    def accepted_id(self, answer: Answer) -> str:
        return slurm_submitting.accepted_id(answer)

    def is_over(self, answer: Answer) -> bool:
        """Of jobs that are gone it says nothing at all."""
        return not answer.output.strip() and not answer.errors.strip()

    def _parsed(self, text: str) -> list[PbsJob]:
        return slurm_parse.parse_jobs(text)

    def _parsed_nodes(self, text: str) -> list[PbsNode]:
        return slurm_parse.parse_nodes(text)

    def _listed(self) -> list[str]:
        return listed_ids(self._printed("-u", self._commands.user()))

    def _with_end(self, job: PbsJob) -> PbsJob:
        if job.state != "C" or not job.nodes:
            return job
        status = self._notes.status(job.tag)
        if status is None and self._notes.is_expected(job.tag) and _is_fresh(job):
            return msgspec.structs.replace(job, state="E", end=None)
        return msgspec.structs.replace(job, exit_status=status)


def _is_fresh(job: PbsJob) -> bool:
    return job.end is not None and time.time() - job.end < PATIENCE
