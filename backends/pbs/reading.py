"""State that the queues of a site share: one reading of the server serves them all."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.config.schema import SiteConfig
from backends.base import SchedulerError
from backends.commands import Commands
from backends.machines.base import Machine
from backends.observed.backend import Reading
from backends.observed.rows import ReservationRow
from backends.pbs.openpbs.server import OpenPbs
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
    """Variables for questions: times in UTC, plain words, nothing of a job that we may run in."""
    return {**{key: value for key, value in own.items() if not _OF_A_JOB.fullmatch(key)}, **_ANSWERS}


def submitting_environment(own: Mapping[str, str]) -> dict[str, str]:
    """Variables for qsub, which writes some of them into the job where every user can read them."""
    return {key: value for key, value in own.items() if _INHERITED.fullmatch(key)}


class PbsAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of PBS that are the same for all queues."""

    now: float = 0.0  # epoch seconds of the question
    server: PbsServer
    queues: dict[str, PbsQueue]
    nodes: Sequence[PbsNode]  # of all queues
    reservations: Sequence[ReservationRow] = ()
    jobs: Sequence[PbsJob] = ()

    def terms(self, name: str | None, wants: Mapping[str, str] = {}) -> PbsTerms:
        """The terms of a queue, by default those of the default queue.

        `wants`: what the site's requests ask of their nodes (`backends.pbs.constraints`).

        Raises SchedulerError: there is no such queue.
        """
        named = name or self.server.default_queue
        site = find_site(self.nodes, self.queues, named, self.reservations, wants)
        return PbsTerms(**msgspec.structs.asdict(self), site=site)


class PbsTerms(PbsAnswers, frozen=True, kw_only=True):
    """Answers of PBS, with the nodes that a site's queue uses."""

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


def ask(pbs: OpenPbs, *, jobs: bool = False) -> PbsAnswers:
    """Answers of PBS for all queues, with all `jobs` or without. Raises SchedulerError: no answer."""
    now, server = time.time(), pbs.server()
    queues = {queue.name: queue for queue in pbs.queues()}
    nodes = pbs.nodes()
    return PbsAnswers(
        now=now,
        server=server,
        queues=queues,
        nodes=nodes,
        reservations=pbs.reservations(nodes),
        jobs=pbs.queue(nodes) if jobs else (),
    )


_OPENPBS = re.compile(r"^pbs_version = (\S+)", re.MULTILINE)
_WRAPPER = "[--man]"
"""Word in the usage that Slurm's wrappers of qstat print of themselves; they know no `--version`."""


def choose(commands: Commands) -> OpenPbs:
    """The PBS whose version `qstat` prints. Raises SchedulerError: no PBS answers here."""
    answer = commands.run("qstat", "--version")
    if answer.status == 0 and _OPENPBS.search(answer.output):
        return OpenPbs(commands)
    if _WRAPPER in answer.errors:
        raise SchedulerError("qstat is Slurm's imitation of PBS here: set `backend: slurm` for this site")
    raise SchedulerError(
        "qstat is here, but neither OpenPBS nor PBS Professional answers "
        f"(qstat --version: {answer.complaint}): `adaptor site init` finds other schedulers"
    )


class SharedServer(Reading[PbsAnswers]):
    """PBS as one site sees it, in whatever queue."""

    time_resolution = OpenPbs.time_resolution
    slot_margin, shrink_margin = OpenPbs.slot_margin, OpenPbs.shrink_margin
    can_reshape = can_release = can_follow = True
    most_in_array = OpenPbs.most_in_array
    _chosen: OpenPbs | None = None

    def __init__(self, site: SiteConfig, machine: Machine) -> None:
        """`machine`: where PBS's commands are run."""
        super().__init__(site, machine, asking_environment, submitting_environment)
        self._choosing = threading.Lock()  # several threads ask first; it remembers what it has seen

    def see(self) -> PbsAnswers:
        return ask(self.pbs(), jobs=True)

    def pbs(self) -> OpenPbs:
        """Found with the first question. Raises SchedulerError: no PBS answers."""
        with self._choosing:
            if self._chosen is None:
                self._chosen = choose(self.commands)
            return self._chosen
