"""Slurm's wrappers of Torque's commands (contribs/torque; Debian: slurm-wlm-torque) as a dialect.

They let the code for PBS run against a real scheduler where there is no Torque. They tell less than Torque
does: no exit status and no reason, of limits only those of `qstat -q`, of a queue's nodes nothing, and of a
node's use only whether all of it is. How a pilot ended it notes itself; without its note, and before its time
was over, that is not known.
"""

from __future__ import annotations

import atexit
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.reports import JobState
from adaptor_torque.dialect import Torque, state_of
from backends.base import PilotOrder
from backends.commands import CommandAnswer, Commands, chunks
from backends.pbs.constraints import PbsShape
from backends.pbs.rows import PbsJob, PbsNode, PbsQueue, PbsServer
from backends.pbs.state.nodes import machines_of
from tests.clusters.slurm_wrappers import parse, submitting
from tests.clusters.slurm_wrappers.notes import Notes
from tests.clusters.slurm_wrappers.text import listed_ids

PATIENCE = 60.0
"""Seconds for which a job whose note is missing is taken to be on its way out: it is called ended as soon
as its workers are told to leave, and they have Slurm's KillWait (mostly 30 s) for that."""
_REMEMBERED = 300.0
"""Seconds for which Slurm knows ended jobs unless a site sets MinJobAge."""
_PREAMBLE = Path(__file__).with_name("as-torque.sh")


def _template() -> Path:
    """Torque's own template, after a preamble that makes Slurm's job look like one of Torque's."""
    shebang, _, script = Torque.template.read_text().partition("\n")
    waits = '\nwait_for "$starter"\n'
    assert script.count(waits) == 1
    # srun may take longer to end than there is time, so the pilot's note is written before.
    script = script.replace(waits, f'\necho "$outcome" >pilot.end{waits}')
    with tempfile.NamedTemporaryFile("w", prefix="pilot-", suffix=".template", delete=False) as file:
        file.write(f"{shebang}\n{_PREAMBLE.read_text()}{script}")
    path = Path(file.name)
    atexit.register(path.unlink, missing_ok=True)
    return path


class SlurmWrappers(Torque):
    """Implements `backends.pbs.dialect.PbsDialect`."""

    name = "Slurm's wrappers"
    time_resolution = 60
    slot_margin = 100  # as `backends.slurm.ordering` has it where nothing is configured
    template = _template()

    def __init__(self, commands: Commands) -> None:
        super().__init__(commands)
        self._notes = Notes(commands.machine)

    def queue(self, nodes: Collection[PbsNode]) -> list[PbsJob]:
        return [job for job in parse.parse_jobs(self._printed("-f")) if job.state != "C"]

    def own_jobs(self, ids: Collection[str]) -> list[PbsJob]:
        user = self._commands.user()
        asked = {*listed_ids(self._printed("-u", user)), *ids}
        texts = [self._printed("-f", "-1", *part) for part in chunks(sorted(asked))]
        found = [job for text in texts for job in parse.parse_jobs(text) if job.owner == user]
        ends = [self._with_end(job) for job in found if job.id in ids or job.tag]
        return [job for job in ends if job.state != "C" or state_of(job) is not JobState.UNKNOWN]

    def nodes(self) -> list[PbsNode]:
        found = parse.parse_nodes(self._commands.ask("pbsnodes", "-a"))
        self._machines = machines_of(found)
        return found

    def queues(self) -> list[PbsQueue]:
        return parse.parse_queues(self._printed("-Q", "-f"), self._printed("-q"))

    def server(self) -> PbsServer:
        """There is none to ask: the wrappers do not tell Slurm's default partition."""
        return PbsServer(name="Slurm", version="of Torque's commands", history=_REMEMBERED)

    def arguments(self, order: PilotOrder, site: SiteConfig, shape: PbsShape, script: Path) -> list[str]:
        found = submitting.arguments_of(order, site, shape, script, self.chunks_per_node(shape))
        self._notes.expect(order.tag, script.parent)
        return found

    def accepted_id(self, answer: CommandAnswer) -> str:
        return submitting.accepted_id(answer)

    def is_over(self, answer: CommandAnswer) -> bool:
        """Of jobs that are gone it says nothing at all."""
        return not answer.output.strip() and not answer.errors.strip()

    def _with_end(self, job: PbsJob) -> PbsJob:
        if job.state != "C" or not job.nodes:
            return job
        status = self._notes.status(job.tag)
        if status is None and self._notes.is_expected(job.tag) and _is_fresh(job):
            return msgspec.structs.replace(job, state="E", end=None)
        return msgspec.structs.replace(job, exit_status=status)


def _is_fresh(job: PbsJob) -> bool:
    return job.end is not None and time.time() - job.end < PATIENCE
