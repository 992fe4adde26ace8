"""The questions that are put to Slurm: which command, which options, and the rows of its answer.

Raises (every method):
    SchedulerError: no answer in time, or one that we do not understand.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection
from typing import TypeVar

import msgspec

from adaptor.model import EndedJob
from backends.base import TAG_START, SchedulerError
from backends.chunks import chunks
from backends.commands import Commands
from backends.slurm import parse
from backends.slurm.accounting import (
    ASSOCIATION_FIELDS,
    QOS_FIELDS,
    Allowance,
    Association,
    parse_associations,
    parse_qos,
)
from backends.slurm.placing.job_details import JobDetail, parse_job_details
from backends.slurm.placing.licenses import License, parse_license_rows
from backends.slurm.placing.node_details import NodeDetail, parse_node_details
from backends.slurm.rows import AccountingRow, NodeRow, Partition, QueueRow, Reservation

T = TypeVar("T")

IN_SYSTEM = "PD,R,CF,CG,S,SI,SO,ST,RS"
"""States of jobs that wait for processors or hold some, as squeue's `-t` takes them."""


MOST_RECORDS = 5000
"""Ended jobs that are learned from, at most."""


class Questions:
    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def queue(self) -> list[QueueRow]:
        """Everyone's jobs that wait or run."""
        text = self._commands.ask("squeue", "-h", "-a", "-t", IN_SYSTEM, "-o", parse.QUEUE_FORMAT)
        return parse.parse_queue(text)

    def own_jobs(self) -> list[QueueRow]:
        """Our user's jobs, with those that ended not longer than MinJobAge ago."""
        mark = _unknown_to_jobs()
        format = parse.OWN_FORMAT.format(mark=mark)
        return parse.parse_own_jobs(
            self._commands.ask("squeue", "-h", "-a", "--me", "-t", "all", "-o", format), mark
        )

    def preempted(self) -> frozenset[str]:
        """The ids of our user's jobs that ended by themselves after they were told to make room."""
        return parse.parse_preempted(
            self._commands.ask("squeue", "-h", "-a", "--me", "-t", "CD,F", "-O", parse.PREEMPTED_FORMAT)
        )

    def nodes(self) -> list[NodeRow]:
        return parse.parse_nodes(self._commands.ask("sinfo", "-h", "-a", "-N", "-o", parse.NODE_FORMAT))

    def node_details(self) -> dict[str, NodeDetail]:
        """By the nodes' names."""
        return parse_node_details(self._commands.ask("scontrol", "show", "node", "-a", "-d", "-o"))

    def job_details(self) -> dict[str, JobDetail]:
        """Everyone's, by `backends.slurm.placing.job_details.key_of` their ids."""
        return parse_job_details(self._commands.ask("scontrol", "show", "job", "-a", "-d", "-o"))

    def licenses(self) -> dict[str, License]:
        """By name."""
        return parse_license_rows(self._commands.ask("scontrol", "show", "license", "-o"))

    def reservations(self) -> list[Reservation]:
        answer = self._commands.run("scontrol", "show", "reservation", "-o")
        if "No reservations" in answer.output + answer.errors:
            return []
        if answer.status:
            raise SchedulerError(f"scontrol failed with status {answer.status}: {answer.complaint}")
        return parse.parse_reservations(answer.output)

    def partitions(self) -> list[Partition]:
        return parse.parse_partitions(self._commands.ask("scontrol", "show", "partition", "-o"))

    def settings(self) -> dict[str, str]:
        return parse.parse_settings(self._commands.ask("scontrol", "show", "config"))

    def associations(self) -> list[Association]:
        """Of our user, those of the default account first."""
        user = f"user={self._commands.user()}"
        default = self._sacctmgr("user", "DefaultAccount", "where", user).strip()
        found = parse_associations(self._sacctmgr("assoc", ASSOCIATION_FIELDS, "where", user))
        return sorted(found, key=lambda each: each.account != default)

    def qos(self) -> dict[str, Allowance]:
        return parse_qos(self._sacctmgr("qos", QOS_FIELDS))

    def accounting(self, ids: Collection[str]) -> list[AccountingRow]:
        """What sacct knows of these jobs, ended long ago or not."""
        return self._in_chunks(ids, lambda part: self._sacct("-j", ",".join(part)))

    def accounting_since(self, start: str) -> list[AccountingRow]:
        """What sacct knows of our user's jobs since `start`, in sacct's own words (`now-7days`)."""
        return self._sacct("-S", start)

    def ended_jobs(self, partition: str | None) -> list[EndedJob]:
        """What sacct shows of the jobs of others that ended in the last two days, the oldest first."""
        delimiter = _unknown_to_jobs()
        options = ["-a", "-X", "-n", "-P", f"--delimiter={delimiter}", "-o", parse.RECORD_FIELDS]
        options += ["-S", "now-2days", "-E", "now", "-s", "CD,F,TO,OOM,CA"]
        if partition is not None:
            options += ["-r", partition]
        found = parse.parse_records(self._commands.ask("sacct", *options), delimiter, MOST_RECORDS)
        return [job for job, name in found if not name.startswith(TAG_START)]

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
    return f"adaptor-{secrets.token_hex(8)}"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked from the instant `now` on."""

    now: float
    nodes: list[NodeRow]
    jobs: list[QueueRow]
    reservations: list[Reservation]
    node_details: dict[str, NodeDetail]
    job_details: dict[str, JobDetail]
    licenses: dict[str, License] = {}

    def other_reservations(self, own: str | None) -> list[Reservation]:
        """All but the one of this name."""
        return [held for held in self.reservations if held.name != own]


def read(questions: Questions, *, licenses: bool = False) -> Reading:
    """The nodes before the jobs: what starts in between is then not taken for a hidden job.

    Raises:
        SchedulerError: no answer, or one that we do not understand.
    """
    now = time.time()
    return Reading(
        now=now,
        nodes=questions.nodes(),
        node_details=questions.node_details(),
        jobs=questions.queue(),
        job_details=questions.job_details(),
        reservations=questions.reservations(),
        licenses=questions.licenses() if licenses else {},
    )
