"""Our own jobs: from squeue while Slurm remembers them, from sacct afterwards."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Collection, Iterable

import msgspec

from adaptor.reports import TURN, JobReport, JobState
from backends.base import SchedulerError
from backends.slurm.questions import Questions
from backends.slurm.reasons import job_state, never, wait_of
from backends.slurm.rows import AccountingRow, QueueRow

log = logging.getLogger(__name__)

PROBE_AGAIN = 600.0
"""Seconds for which sacct is left alone after it did not answer; many sites have no accounting."""
LOOK_BACK = "now-14days"
"""How far back the first question after a start looks for jobs that ended while no daemon ran."""
_LEFT_BY_THEMSELVES = (JobState.COMPLETED, JobState.FAILED)


class OwnSlurmJobs:
    """Answers `Backend.jobs`."""

    def __init__(self, questions: Questions, *, whole_nodes: bool = False) -> None:
        """`whole_nodes`: whether our requests ask for whole nodes."""
        self._questions = questions
        self._whole_nodes = whole_nodes
        self._accounting_from = 0.0
        self._looked_back = False

    def reports(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """Raises SchedulerError: squeue does not answer; without sacct the answer is only shorter."""
        wanted = set(ids)
        rows = [
            row for row in self._questions.own_jobs() if row.id in wanted or row.name.startswith(tag_prefix)
        ]
        preempted = self._preempted(rows)
        found = {row.id: self._of_queue(row, row.id in preempted) for row in rows}
        for old in latest(self._accounted(wanted - found.keys())):
            if old.id in wanted or old.name.startswith(tag_prefix):
                found.setdefault(old.id, _of_accounting(old))
        return list(found.values())

    def _of_queue(self, row: QueueRow, preempted: bool) -> JobReport:
        """While it waits, a request for whole nodes shows one processor for each of them."""
        report = _of_queue(row, preempted)
        if self._whole_nodes or (report.state is JobState.QUEUED and row.processors == row.node_count > 1):
            return msgspec.structs.replace(report, processors=None)
        return report

    def _preempted(self, rows: Iterable[QueueRow]) -> frozenset[str]:
        """Which of these jobs left on an order: Slurm says completed or failed of them."""
        if not any(job_state(row.state) in _LEFT_BY_THEMSELVES for row in rows):
            return frozenset()
        return self._questions.preempted()

    def _accounted(self, missing: Collection[str]) -> list[AccountingRow]:
        if time.monotonic() < self._accounting_from or (self._looked_back and not missing):
            return []
        try:
            rows = self._questions.accounting(missing)
            if not self._looked_back:
                rows += self._questions.accounting_since(LOOK_BACK)
                self._looked_back = True
        except SchedulerError as error:
            log.info("jobs that squeue no longer shows are unknown for now: %s", error)
            self._accounting_from = time.monotonic() + PROBE_AGAIN
            return []
        return rows


def latest(rows: Iterable[AccountingRow]) -> list[AccountingRow]:
    """One row per job: sacct has one for each size that a job had, the last one last. It counts with what it
    held at first: nodes that it gave back are charged apart."""
    found: dict[str, AccountingRow] = {}
    for row in rows:
        first = found.get(row.id, row)
        found[row.id] = msgspec.structs.replace(row, start=first.start, processors=first.processors)
    return list(found.values())


def _of_queue(row: QueueRow, preempted: bool) -> JobReport:
    state = job_state(row.state)
    if preempted and state in _LEFT_BY_THEMSELVES:
        state = JobState.PREEMPTED
    queued = state is JobState.QUEUED
    return JobReport(
        id=row.id,
        tag=row.name,
        state=state,
        start=None if queued or _never_started(row) else row.start,
        end=row.end if state.ended else None,
        planned_start=row.start if queued else None,
        granted=None if queued or math.isinf(row.limit) else row.limit,
        processors=row.processors,
        limit=row.limit,
        nodes=row.nodes,
        reason="" if row.reason == "None" else row.reason,
        never=never(row.state, row.reason) if queued else "",
        wait=wait_of(row.state, row.reason) if queued else TURN,
        held=None if queued or not row.nodes else row.processors,
    )


def _never_started(row: QueueRow) -> bool:
    """A job that was cancelled while it waited: Slurm gives its end as its start too."""
    return bool(job_state(row.state).ended) and not row.nodes


def _of_accounting(row: AccountingRow) -> JobReport:
    state = job_state(row.state)
    return JobReport(
        id=row.id,
        tag=row.name,
        state=state,
        start=row.start if row.nodes else None,
        end=row.end if state.ended else None,
        nodes=row.nodes,
        held=row.processors if row.nodes else None,
    )


def remaining_nodes(rows: Iterable[QueueRow], id: str, leaving: Collection[str]) -> list[str]:
    """The nodes that a running job keeps; always the first one, where its script runs.

    Raises:
        SchedulerError: the job does not run, or has none of these nodes to give back.
    """
    row = next((row for row in rows if row.id == id), None)
    if row is None or job_state(row.state) is not JobState.RUNNING:
        raise SchedulerError(f"job {id} does not run: it has no nodes to give back")
    kept = [node for node in row.nodes if node not in leaving or node == row.nodes[0]]
    if len(kept) == len(row.nodes):
        raise SchedulerError(f"job {id} can give back none of {', '.join(sorted(leaving))}")
    return kept
