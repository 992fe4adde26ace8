"""The questions that are put to Slurm: which command, which options, and the rows of its answer.

Raises (every method):
    SchedulerError: no answer in time, or one that we do not understand.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

import msgspec

from adaptor.config.schema import SiteConfig
from adaptor.model import EndedJob
from backends.base import TAG_START, SchedulerError
from backends.commands import Commands, chunks
from backends.machines.base import Machine
from backends.observed.backend import Reading
from backends.observed.remembered import Remembered
from backends.observed.rows import ReservationRow
from backends.slurm import parse
from backends.slurm.accounts import GroupLimits, SlurmTerms, is_enforced, parse_groups
from backends.slurm.ordering import TIME_RESOLUTION, most_in_array, ordering, shrink_margin, slot_margin
from backends.slurm.parse import (
    ASSOCIATION_FIELDS,
    QOS_FIELDS,
    Association,
    QosAllowance,
    parse_associations,
    parse_qos,
)
from backends.slurm.placing.gres import License, NodeDetail, parse_license_rows, parse_node_details
from backends.slurm.placing.job_details import parse_only_job
from backends.slurm.placing.job_records import JobDetails, JobRecords
from backends.slurm.placing.restriction import licenses_of
from backends.slurm.queue import waiting_elements
from backends.slurm.rows import AccountingRow, NodeRow, Partition, QueueRow

_PINGED = "Slurmctld("
_RECORD = re.compile(r"^JobId=(\d+)(?: ArrayJobId=(\d+) ArrayTaskId=(\S+))?", re.MULTILINE)
_OWNER = re.compile(r" UserId=([^\s(]+)\(\d+\) GroupId=")
_CLIENT_OPTIONS = re.compile(r"(SLURM|SBATCH|SQUEUE|SINFO|SACCT|SCANCEL|SCONTROL|SACCTMGR|SALLOC|SRUN)_")
_REACH = frozenset({"SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT", "SACKD_JWT"})
"""Say which cluster is asked, and as whom; never handed to a pilot."""

_ANSWERS = {
    "LC_ALL": "C",
    "SLURM_TIME_FORMAT": "%s",  # epoch seconds, so that no time zone has to be guessed
    "SLURM_BITSTR_LEN": "0",  # the indices of job arrays in full
}

_INHERITED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|LD_LIBRARY_PATH|SLURM_CONF"
    # What the `module` command of a prologue needs.
    r"|BASH_ENV|BASH_FUNC_\w+(%%|\(\))|MODULE\w+|LMOD_\w+|LOADEDMODULES|_LMFILES_"
)


def asking_environment(own: Mapping[str, str]) -> dict[str, str]:
    """Variables for questions: none changes the output of the commands except those that we set ourselves."""
    return {**_without_options(own), **_ANSWERS}


def submitting_environment(own: Mapping[str, str]) -> dict[str, str]:
    """Variables for sbatch, which hands its environment on to the job: only those that a script needs.

    `--export=NONE` would do nearly that, but takes PATH and `module` away, and a list of names makes
    some versions run a login shell of the user on the node.
    """
    return {key: value for key, value in _without_options(own).items() if _INHERITED.fullmatch(key)}


def _without_options(own: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in own.items() if key in _REACH or not _CLIENT_OPTIONS.match(key)}


T = TypeVar("T")

IN_SYSTEM = "PD,R,CF,CG,S,SI,SO,ST,RS"
"""States of jobs that wait for processors or hold some, as squeue's `-t` takes them."""
IN_SYSTEM_SINCE_26_05 = f"{IN_SYSTEM},EXPEDITING"  # older releases refuse it

MOST_RECORDS = 5000  # ended jobs that are learned from, at most
MOST_DISPUTED = 20  # jobs with several records that are asked for alone, at one look


class AnotherCluster(SchedulerError):
    """The answers are not those of the cluster that answered before."""


class Questions:
    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._in_system = IN_SYSTEM_SINCE_26_05
        self._queue_rows, self._own_rows = Remembered[QueueRow](), Remembered[QueueRow]()
        self._node_rows, self._node_details = Remembered[NodeRow](), Remembered[NodeDetail]()
        self._job_records = JobRecords()
        self._cluster = ""  # name of the cluster that answers; empty: not asked yet

    def queue(self) -> list[QueueRow]:
        """All users' jobs that wait or run."""
        try:
            return self._squeue(self._queue_rows, "-t", self._in_system)
        except SchedulerError as error:
            if "Invalid job state" not in str(error) or self._in_system == IN_SYSTEM:
                raise
            self._in_system = IN_SYSTEM
            return self._squeue(self._queue_rows, "-t", self._in_system)

    def own_jobs(self) -> list[QueueRow]:
        """Our user's jobs, with those that ended not longer than MinJobAge ago.

        Elements of arrays that wait are one by one: together, squeue shows the limit of one of them for all.
        """
        return self._squeue(self._own_rows, "--me", "-r", "-t", "all", own=True)

    def known(self, number: str) -> set[str] | None:
        """Ids of our user's job of this number, or of its array's elements, by slurmctld; None: unclear."""
        answer = self._commands.run("scontrol", "show", "job", "-o", number)
        if answer.status:
            return set() if "Invalid job id" in answer.errors else None
        found, user = set[str](), self._commands.user()
        for line in answer.output.splitlines():
            record, owners = _RECORD.match(line), _OWNER.findall(line)
            if record and owners and owners[-1] == user:
                array, index = record[2], record[3]
                found.update([record[1]] if array is None else waiting_elements(f"{array}_[{index}]"))
        return found if _RECORD.search(answer.output) else None

    def preempted(self) -> frozenset[str]:
        """The ids of our user's jobs that ended by themselves after an order to make room."""
        return parse.parse_preempted(
            self._commands.ask("squeue", "-h", "-a", "--me", "-t", "CD,F", "-O", parse.PREEMPTED_FORMAT)
        )

    def nodes(self) -> list[NodeRow]:
        printed = self._commands.ask_bytes("sinfo", "-h", "-a", "-N", "-o", parse.NODE_FORMAT)
        return parse.parse_nodes(printed, self._node_rows)

    def node_details(self) -> dict[str, NodeDetail]:
        """Details by the nodes' names."""
        printed = self._commands.ask_bytes("scontrol", "show", "node", "-a", "-d", "-o")
        return parse_node_details(printed, self._node_details)

    def job_details(self, jobs: Iterable[QueueRow]) -> JobDetails:
        """Details of these jobs, as far as scontrol still knows them."""
        rows = {row.id: row for row in jobs}
        printed = self._commands.ask_bytes("scontrol", "show", "job", "-a", "-d", "-o")
        details = self._job_records.read(printed, rows)
        for id in details.disputed[:MOST_DISPUTED]:
            answer = self._commands.run("scontrol", "show", "job", "-a", "-d", "-o", id)
            detail = None if answer.status else parse_only_job(answer.output, rows[id])
            if detail is not None:
                details.found[id] = detail
        return details

    def licenses(self) -> dict[str, License]:
        """Licences by name."""
        return parse_license_rows(self._commands.ask("scontrol", "show", "license", "-o"))

    def reservations(self) -> list[ReservationRow]:
        answer = self._commands.run("scontrol", "show", "reservation", "-o")
        if "No reservations" in answer.output + answer.errors:
            return []
        if answer.status:
            raise SchedulerError(f"scontrol failed with status {answer.status}: {answer.complaint}")
        return parse.parse_reservations(answer.output)

    def partitions(self) -> list[Partition]:
        return parse.parse_partitions(self._commands.ask("scontrol", "show", "partition", "-o"))

    def settings(self) -> dict[str, str]:
        """Settings of Slurm by name. They name the cluster, which has to be the same each time."""
        answer = self._commands.run("scontrol", "show", "config")
        # Behind the settings scontrol pings; where rates are limited (`rl_enable`), that alone may fail.
        if answer.status and _PINGED not in answer.output:
            raise SchedulerError(f"scontrol failed with status {answer.status}: {answer.complaint}")
        settings = parse.parse_settings(answer.output)
        name = settings.get("ClusterName", "")
        if self._cluster and name and name != self._cluster:
            raise AnotherCluster(
                f"cluster {name} answers in place of {self._cluster}, which says nothing of our jobs "
                "(if it was renamed: adaptor daemon restart)"
            )
        self._cluster = self._cluster or name
        return settings

    def associations(self) -> list[Association]:
        """Associations of our user, those of the default account first."""
        user = f"user={self._commands.user()}"
        default = self._sacctmgr("user", "DefaultAccount", "where", user).strip()
        found = parse_associations(self._sacctmgr("assoc", ASSOCIATION_FIELDS, "where", user))
        return sorted(found, key=lambda each: each.account != default)

    def qos(self) -> dict[str, QosAllowance]:
        return parse_qos(self._sacctmgr("qos", QOS_FIELDS))

    def groups(self) -> list[GroupLimits]:
        """Limits of all accounts, of our user in them, and of all QOS."""
        answer = self._commands.ask("scontrol", "show", "assoc_mgr", "-o", "flags=assoc,qos")
        return parse_groups(answer, self.user())

    def terms(self, settings: Mapping[str, str]) -> SlurmTerms:
        """Terms of the site by Slurm's settings. Raises SchedulerError: no answer about the partitions;
        accounting may be absent."""
        partitions = {partition.name: partition for partition in self.partitions()}
        found = SlurmTerms(partitions=partitions, user=self.user())
        try:
            found = msgspec.structs.replace(found, associations=self.associations())
            if not is_enforced(settings):
                unbound = [
                    msgspec.structs.replace(each, allowance=QosAllowance(source=""))
                    for each in found.associations
                ]
                return msgspec.structs.replace(found, associations=unbound)
            return msgspec.structs.replace(found, qos=self.qos(), groups=self.groups_told())
        except SchedulerError:
            return found

    def groups_told(self) -> list[GroupLimits]:
        """Limits of groups; empty: Slurm does not show them."""
        try:
            return self.groups()
        except SchedulerError:
            return []

    def user(self) -> str:
        """Name of our user."""
        return self._commands.user()

    def accounting(self, ids: Collection[str]) -> list[AccountingRow]:
        """Rows of sacct for these jobs, ended long ago or not."""
        # Of arrays as a whole: their elements may be hundreds.
        jobs = dict.fromkeys(id.partition("_")[0] for id in ids)
        return self._in_chunks(jobs.keys(), lambda part: self._sacct("-j", ",".join(part)))

    def accounting_since(self, start: str) -> list[AccountingRow]:
        """Rows of sacct for our user's jobs since `start`, in sacct's own words (`now-7days`)."""
        return self._sacct("-S", start)

    def ended_jobs(self, partition: str | None) -> list[EndedJob]:
        """Jobs of others that ended in the last two days by sacct, the oldest first."""
        delimiter = _unknown_to_jobs()
        options = ["-a", "-X", "-n", "-P", f"--delimiter={delimiter}", "-o", parse.RECORD_FIELDS]
        options += ["-S", "now-2days", "-E", "now", "-s", "CD,F,TO,OOM,CA"]
        if partition is not None:
            options += ["-r", partition]
        found = parse.parse_records(self._commands.ask("sacct", *options), delimiter, MOST_RECORDS)
        return [job for job, name in found if not name.startswith(TAG_START)]

    def _squeue(self, known: Remembered[QueueRow], *selection: str, own: bool = False) -> list[QueueRow]:
        mark = _unknown_to_jobs()
        asked = parse.queue_format(mark, own=own)
        printed = self._commands.ask_bytes("squeue", "-a", *selection, "-O", asked)
        return parse.parse_queue(parse.rows_of_squeue(printed, mark), mark, known, own=own)

    def _sacct(self, *selection: str) -> list[AccountingRow]:
        delimiter = _unknown_to_jobs()
        options = ("-X", "-n", "-P", f"--delimiter={delimiter}", "-o", parse.ACCOUNTING_FIELDS)
        return parse.parse_accounting(self._commands.ask("sacct", *options, *selection), delimiter)

    def _sacctmgr(self, entity: str, fields: str, *selection: str) -> str:
        return self._commands.ask("sacctmgr", "-n", "-P", "show", entity, f"format={fields}", *selection)

    def _in_chunks(self, ids: Collection[str], ask: Callable[[list[str]], list[T]]) -> list[T]:
        return [row for part in chunks(ids) for row in ask(part)]


def _unknown_to_jobs() -> str:
    """A word that stands in no job's name, as every job was named before."""
    return f"~{secrets.token_urlsafe(9)}"


class SlurmReading(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of Slurm to the questions from the instant `now` on."""

    now: float
    nodes: list[NodeRow]
    jobs: list[QueueRow]
    reservations: list[ReservationRow]
    node_details: dict[str, NodeDetail]
    job_details: JobDetails
    partitions: dict[str, Partition] = {}
    """Partitions by name."""
    licenses: dict[str, License] = {}

    def other_reservations(self, own: str | None) -> list[ReservationRow]:
        """All but the one of this name."""
        return [held for held in self.reservations if held.name != own]


def read(questions: Questions, *, licenses: bool = False) -> SlurmReading:
    """The nodes before the jobs: what starts in between is then not taken for a hidden job.

    Raises:
        SchedulerError: no answer, or one that we do not understand.
    """
    now = time.time()
    nodes, node_details, jobs = questions.nodes(), questions.node_details(), questions.queue()
    return SlurmReading(
        now=now,
        nodes=nodes,
        node_details=node_details,
        jobs=jobs,
        job_details=questions.job_details(jobs),
        reservations=questions.reservations(),
        partitions={each.name: each for each in questions.partitions()},
        licenses=questions.licenses() if licenses else {},
    )


MOST_GROUPS = 2000  # records of accounts and QOS that are read with each look; more, with the settings
_SETTINGS_KEPT = 600.0  # seconds for which Slurm's own configuration is taken to stay as it is
_SETTINGS_AGAIN = 60.0  # seconds after which it is asked again where it was not answered


class SharedCluster(Reading[SlurmReading]):
    """Slurm as one site sees it, in whatever partition."""

    time_resolution = TIME_RESOLUTION
    can_reshape = can_release = can_follow = True

    def __init__(self, site: SiteConfig, machine: Machine) -> None:
        """`machine`: where Slurm's commands are run."""
        super().__init__(site, machine, asking_environment, submitting_environment)
        self.questions = Questions(self.commands)
        self.licenses = licenses_of(site)
        self.settings: dict[str, str] = {}  # settings as last asked
        self.slot_margin = slot_margin({})
        self._terms = SlurmTerms(partitions={})
        self._until = 0.0

    def see(self) -> SlurmReading:
        """Partitions and the use of accounts are as of this look: both change while a daemon runs."""
        seen = read(self.questions, licenses=bool(self.licenses))
        groups = self.terms().groups
        if 0 < len(groups) <= MOST_GROUPS:
            groups = self.questions.groups_told() or groups
        self._terms = msgspec.structs.replace(self._terms, partitions=seen.partitions, groups=groups)
        return seen

    def terms(self) -> SlurmTerms:
        """The settings from which limits follow; those of the last reading if Slurm does not answer now.

        Raises:
            SchedulerError: no answer, and no earlier reading.
            AnotherCluster: another cluster answered before.
        """
        if time.monotonic() >= self._until:
            try:
                self._read_terms()
                self._until = time.monotonic() + _SETTINGS_KEPT
            except AnotherCluster:
                raise
            except SchedulerError:
                if not self.settings:
                    raise
                self._until = time.monotonic() + _SETTINGS_AGAIN
        return self._terms

    def _read_terms(self) -> None:
        settings = self.questions.settings()
        terms = self.questions.terms(settings)
        self.settings, self._terms = settings, terms
        self.slot_margin = slot_margin(settings)
        self.shrink_margin = shrink_margin(settings)
        self.most_in_array = most_in_array(settings)
        self.backfilled = ordering(settings).backfilled

    def may_preempt(self, partition: str) -> bool:
        """Whether jobs of a partition may get an order to make room, as far as known without a question."""
        kind, known = self.settings.get("PreemptType", ""), self._terms.partitions.get(partition)
        off = kind == "preempt/partition_prio" and known is not None and known.preempt_mode == "OFF"
        return not off and kind != "preempt/none"

    def partitions(self) -> dict[str, Partition]:
        """Partitions by name. Raises SchedulerError: no answer."""
        return self.terms().partitions
