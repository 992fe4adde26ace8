"""What the queues of a site share: one reading of the qmaster serves them all."""

from __future__ import annotations

import re
import time

from adaptor.config.schema import SiteConfig
from backends.commands import Commands
from backends.gridengine import parse
from backends.gridengine.rows import Cell, Ended, GridJob
from backends.gridengine.state import Seen
from backends.machines.base import Machine
from backends.observed.rows import ReservationRow
from backends.sharing import SharedLook

_ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC"}
"""Plain words, and times in UTC. qsub hands nothing of the environment on (no `-V`)."""
_CONFIGURED = 600.0
"""Seconds for which what is configured is not asked again."""
_NO_RECORDS = "no jobs running since startup"
"""What qacct says before the first job of a cell has ended."""


class Master:
    """Grid Engine as one site sees it, in whatever queue. Asks nothing yet.

    Raises (every method):
        SchedulerError: no answer, or not one that we can read.
    """

    def __init__(self, site: SiteConfig, machine: Machine) -> None:
        self.commands = Commands(lambda own: {**own, **_ENVIRONMENT}, site.command_timeout, machine)
        self.look = SharedLook(self.see)
        self._cell: tuple[float, Cell] | None = None

    def see(self) -> Seen:
        """Everything, of everyone."""
        now, cell = time.time(), self.cell()
        text = self._qstat("-F", "slots,h_vmem", "-u", "*")
        return Seen(
            now=now,
            cell=cell,
            instances=parse.instances(text),
            jobs=parse.jobs(text),
            reservations=self._reservations(),
        )

    def own_jobs(self) -> list[GridJob]:
        """In the system, and those that have ended lately, as far as the qmaster knows them (state `z`)."""
        return parse.jobs(self._qstat("-u", self.commands.user(), "-s", "prsz"))

    def records(self, since: float, user: str = "") -> list[Ended] | None:
        """Ended jobs of everyone, or of a user, that started since then; None: we may not read them."""
        begin = time.strftime("%Y%m%d%H%M", time.gmtime(since))
        answer = self.commands.run("qacct", *(("-o", user) if user else ()), "-b", begin, "-j")
        if answer.status and _NO_RECORDS not in answer.output + answer.errors:
            return None
        return parse.ended(answer.output)

    def cell(self) -> Cell:
        if self._cell is None or time.monotonic() - self._cell[0] > _CONFIGURED:
            self._cell = time.monotonic(), self._ask_cell()
        return self._cell[1]

    def version(self) -> str:
        """For instance `SGE 8.1.9`."""
        return self.commands.run("qstat", "-help").output.partition("\n")[0].strip() or "of unknown version"

    def _ask_cell(self) -> Cell:
        ask = self.commands.ask
        queues = parse.queues(ask("qconf", "-sq", ",".join(ask("qconf", "-sql").split())))
        names = self._optional("qconf", "-spl").split()
        return Cell(
            queues={queue.name: queue for queue in queues},
            pes={name: parse.pe(ask("qconf", "-sp", name)) for name in names},
            max_jobs=parse.max_jobs(ask("qconf", "-sconf")),
            default_memory=parse.default_memory(ask("qconf", "-sc")),
        )

    def _reservations(self) -> list[ReservationRow]:
        ids = re.findall(r"<id>(\d+)</id>", self._optional("qrstat", "-xml", "-u", "*"))
        text = self._optional("qrstat", "-xml", "-ar", ",".join(ids)) if ids else ""
        return parse.reservations(text) if text else []

    def _qstat(self, *options: str) -> str:
        return self.commands.ask("qstat", "-xml", "-f", "-r", *options)

    def _optional(self, *command: str) -> str:
        """The answer of a command that fails where there is nothing to be listed."""
        answer = self.commands.run(*command)
        return "" if answer.status else answer.output
