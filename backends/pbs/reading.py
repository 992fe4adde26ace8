"""What the queues of a site share: one reading of the server serves them all."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.errors import ConfigError
from adaptor.plugins import PBS_DIALECTS, TORQUE, loaded_if_there
from backends.base import SchedulerError
from backends.commands import CommandAnswer, Commands
from backends.machines.base import Machine
from backends.observed.backend import Reading
from backends.observed.rows import ReservationRow
from backends.pbs.dialect import SLOT_MARGIN, TIME_RESOLUTION, PbsDialect
from backends.pbs.openpbs.dialect import OpenPbs
from backends.pbs.rows import PbsJob, PbsNode, PbsQueue, PbsServer
from backends.pbs.state.nodes import QueueNodes, find_site

_OF_A_JOB = re.compile(r"PBS_(O_\w+|JOB\w+|ENVIRONMENT|NODE\w+|TASKNUM|QUEUE|MOMPORT|ARRAY\w+|CONTAINER\w+)")
"""Stand in the environment of a daemon that itself runs in a job, and mean that job."""

_ANSWERS = {
    "LC_ALL": "C",
    "TZ": "UTC",  # the commands print times in the caller's zone
}

_INHERITED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|TZ|LD_LIBRARY_PATH"
    # Which server is asked, and how.
    r"|PBS_CONF_FILE|PBS_DEFAULT|PBS_(SERVER|PRIMARY|SECONDARY|EXEC|HOME|AUTH|ENCRYPT|COMM|BATCH_SERVICE)\w*"
    r"|KRB5CCNAME|SLURM_CONF"
)


def asking_environment(own: Mapping[str, str]) -> dict[str, str]:
    """For questions: times in UTC, plain words, nothing of a job that we may run in."""
    return {**{key: value for key, value in own.items() if not _OF_A_JOB.fullmatch(key)}, **_ANSWERS}


def submitting_environment(own: Mapping[str, str]) -> dict[str, str]:
    """For qsub, which writes some of its variables into the job where every user can read them."""
    return {key: value for key, value in own.items() if _INHERITED.fullmatch(key)}


class PbsAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """What PBS says, whatever the queue."""

    now: float = 0.0  # when it was asked
    server: PbsServer
    queues: dict[str, PbsQueue]
    nodes: Sequence[PbsNode]  # of all queues
    reservations: Sequence[ReservationRow] = ()
    jobs: Sequence[PbsJob] = ()

    def terms(self, name: str | None, wants: Mapping[str, str] = {}) -> PbsTerms:
        """Those of a queue, or of the default one where none is named.

        `wants`: what the site's requests ask of their nodes (`backends.pbs.constraints`).

        Raises SchedulerError: there is no such queue.
        """
        named = name or self.server.default_queue
        site = find_site(self.nodes, self.queues, named, self.reservations, wants)
        return PbsTerms(**msgspec.structs.asdict(self), site=site)


class PbsTerms(PbsAnswers, frozen=True, kw_only=True):
    """What PBS says, with the nodes that a site's queue uses."""

    site: QueueNodes

    @property
    def other_reservations(self) -> list[ReservationRow]:
        """All but the one that the site itself uses."""
        return [held for held in self.reservations if held.queue != self.site.name]

    @property
    def standstill(self) -> str:
        """Why no job of the site starts at the moment; empty where jobs start."""
        if not self.server.scheduling:
            return f"server {self.server.name} does not schedule"
        if not self.site.queue.started:
            return f"queue {self.site.queue.name} is stopped"
        return ""


def ask(dialect: PbsDialect, *, jobs: bool = False) -> PbsAnswers:
    """Raises SchedulerError: no answer."""
    now, server = time.time(), dialect.server()
    queues = {queue.name: queue for queue in dialect.queues()}
    nodes = dialect.nodes()
    return PbsAnswers(
        now=now,
        server=server,
        queues=queues,
        nodes=nodes,
        reservations=dialect.reservations(nodes),
        jobs=dialect.queue(nodes) if jobs else (),
    )


_OPENPBS = re.compile(r"^pbs_version = (\S+)", re.MULTILINE)
_TORQUE = re.compile(r"^version: *\d", re.IGNORECASE | re.MULTILINE)
_WRAPPER = "[--man]"
"""In the usage that Slurm's wrappers of Torque's commands print of themselves; they know no `--version`."""


def choose(site: SiteConfig, commands: Commands) -> PbsDialect:
    """The site's own choice (`dialect`), else the dialect whose version `qstat` prints.

    Raises:
        SchedulerError: no PBS answers here, or neither OpenPBS nor Torque; the package for Torque is missing.
    """
    if site.dialect == "openpbs":
        return OpenPbs(commands)
    answer = commands.run("qstat", "--version")
    # Slurm's program of that name fails.
    if site.dialect is None and answer.status == 0 and _OPENPBS.search(answer.output):
        return OpenPbs(commands)
    if is_torque(answer):
        return torque(commands)
    if _WRAPPER in answer.errors:
        raise SchedulerError("qstat is Slurm's imitation of Torque here: set `backend: slurm` for this site")
    if site.dialect is not None:
        raise SchedulerError(f"Torque does not answer (qstat --version: {answer.complaint})")
    raise SchedulerError(
        f"qstat is here, but neither OpenPBS nor Torque answers (qstat --version: {answer.complaint}): "
        "set `dialect` for this site if it is one of them"
    )


def torque(commands: Commands) -> PbsDialect:
    """Raises SchedulerError: the package for Torque is missing, or cannot be loaded."""
    try:
        return cast(PbsDialect, loaded_if_there(PBS_DIALECTS, "torque", "Torque", TORQUE)(commands))
    except ConfigError as error:
        raise SchedulerError(str(error)) from error


def is_torque(answer: CommandAnswer) -> bool:
    """By the answer of `qstat --version`: `Version: 6.1.2`, on standard error."""
    return answer.status == 0 and _TORQUE.search(answer.output + "\n" + answer.errors) is not None


class SharedServer(Reading[PbsAnswers]):
    """PBS as one site sees it, in whatever queue. The traits are those of its dialect, once that is known."""

    time_resolution = TIME_RESOLUTION
    slot_margin = SLOT_MARGIN
    choose = staticmethod(choose)
    _chosen: PbsDialect | None = None

    def __init__(self, site: SiteConfig, machine: Machine) -> None:
        """`machine`: where PBS's commands are run."""
        super().__init__(site, machine, asking_environment, submitting_environment)
        self._choosing = threading.Lock()  # several threads ask first; a dialect remembers what it has seen

    def see(self) -> PbsAnswers:
        return ask(self.dialect(), jobs=True)

    def dialect(self) -> PbsDialect:
        """Found with the first question. Raises SchedulerError: no PBS answers."""
        with self._choosing:
            if self._chosen is None:
                self._chosen = self.choose(self.site, self.commands)
                self.learn(self._chosen)
            return self._chosen
