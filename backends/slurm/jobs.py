"""Our own jobs: from squeue while Slurm remembers them, from sacct afterwards."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Iterable

import msgspec

from adaptor.reports import TURN, JobReport, JobState, OwnJob, gone
from backends.arrays import tag_of
from backends.base import TAG_START, SchedulerError
from backends.slurm.ordering import MIN_JOB_AGE
from backends.slurm.questions import Questions
from backends.slurm.queue import waiting_elements
from backends.slurm.reasons import job_state, never, wait_of
from backends.slurm.rows import AccountingRow, QueueRow
from backends.slurm.submitting import tag_in

log = logging.getLogger(__name__)

PROBE_AGAIN = 600.0
"""Seconds for which sacct is left alone after it did not answer; many sites have no accounting."""
LOOK_BACK = "now-14days"
"""Start of the time in which the first question after a start looks for jobs that ended without a daemon."""
MOST_ASKED_ALONE = 20  # missing jobs that are asked for one by one, at one look
MOST_NAMED = 20
"""Orders to cancel that name their jobs, at most: for each, Slurm sends all jobs to scancel."""
_LEFT_BY_THEMSELVES = (JobState.COMPLETED, JobState.FAILED)


def name_of(row: QueueRow) -> str:
    """The job's name; of one that a submit plugin of the site has renamed, its comment, which we wrote."""
    submitted = "" if row.name.startswith(TAG_START) else tag_in(row.comment)
    return submitted or row.name


def own_tag(row: QueueRow) -> str:
    """The pilot's tag, also of an element of an array."""
    return _of_element(row.id, name_of(row))


def _of_element(id: str, name: str) -> str:
    index = id.partition("_")[2]
    return tag_of(name, int(index)) if index.isdecimal() else name


class OwnSlurmJobs:
    """Answers `Backend.jobs`: our jobs by squeue, and ended ones by sacct."""

    def __init__(
        self,
        questions: Questions,
        *,
        whole_nodes: bool = False,
        remembers: Callable[[], float] = lambda: MIN_JOB_AGE,
        may_preempt: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """
        Args:
            whole_nodes: whether our requests ask for whole nodes.
            remembers: the seconds for which Slurm shows jobs that have ended.
            may_preempt: whether jobs of a partition may get an order to make room.
        """
        self._questions = questions
        self._whole_nodes = whole_nodes
        self._remembers, self._may_preempt = remembers, may_preempt
        self._waiting: dict[str, JobReport] = {}  # by id: those that waited by the last answer
        self._asked = -math.inf  # monotonic seconds of the last question
        self._left: dict[str, bool] = {}  # by id: whether a job that left by itself had the order to
        self._accounting_from = 0.0
        self._looked_back = False

    def reports(self, ids: Collection[str], tag_prefix: str) -> list[JobReport]:
        """Reports of our jobs. Raises SchedulerError: squeue does not answer; without sacct the answer is
        only shorter."""
        wanted = set(ids)
        asked = time.monotonic()
        rows = [
            row
            for row in self._questions.own_jobs()
            if row.id in wanted or name_of(row).startswith(tag_prefix)
        ]
        preempted = self._preempted(rows)
        found = _by_element(self._of_queue(row, row.id in preempted) for row in rows)
        # A number that another job has by now: what became of ours only the records know.
        taken = {id for id, each in found.items() if id in wanted and not each.tag.startswith(tag_prefix)}
        reports = {each.own: each for each in found.values()}
        for old in latest(self._accounted(wanted - (found.keys() - taken))):
            for id, each in _by_element([_of_accounting(old)]).items():
                ours = each.tag.startswith(tag_prefix)
                if (id in wanted or ours) and (id not in found or (ours and id in taken)):
                    reports.setdefault(each.own, each)
        denied = self._denied(wanted.difference(job.id for job in reports))
        forgotten = self._forgotten(denied, asked)
        waiting = {id: each for id, each in found.items() if each.state is JobState.QUEUED}
        self._waiting, self._asked = waiting | forgotten, asked
        cancelled = {"state": JobState.CANCELLED, "planned_start": None, "never": "", "reason": ""}
        return [
            *reports.values(),
            *(msgspec.structs.replace(each, **cancelled) for each in forgotten.values()),
            *gone(set(denied) - forgotten.keys()),
        ]

    def _forgotten(self, denied: Iterable[str], asked: float) -> dict[str, JobReport]:
        """Elements of arrays that were cancelled before they started, as they were: Slurm keeps no record.

        Of others, that start and end between two answers, it keeps one for MinJobAge.
        """
        if asked - self._asked > self._remembers():
            return {}
        return {id: self._waiting[id] for id in denied if "_" in id and id in self._waiting}

    def _denied(self, missing: Iterable[str]) -> list[str]:
        """The numbers for which slurmctld says that it has no job of our user.

        Raises SchedulerError: slurmctld has one, so squeue left it out; or another cluster answers.
        """
        numbers: dict[str, set[str]] = {}  # of jobs and arrays
        for id in sorted(missing):
            numbers.setdefault(id.partition("_")[0], set()).add(id)
        denied: list[str] = []
        for number, ids in list(numbers.items())[:MOST_ASKED_ALONE]:
            known = self._questions.known(number)
            if known is None:
                continue
            if left_out := sorted(known & ids):
                raise SchedulerError(
                    f"squeue left out job {left_out[0]}, which scontrol shows: its answer is not whole"
                )
            denied += sorted(ids)
        if denied:
            self._questions.settings()
        return denied

    def cancel_orders(self, jobs: Collection[OwnJob], user: str) -> list[tuple[list[str], list[str]]]:
        """Options of scancel, and the numbers that they go with.

        scancel gets the name in addition to the numbers, and passes over jobs of other names. It gets the
        numbers alone, as squeue has just shown them, for more than MOST_NAMED names, which would be as many
        orders, and for elements of arrays: with any filter, scancel (22.05) ends the whole of an array that
        waits.
        Numbers that other jobs have by now, and jobs that have ended, are left out.

        Raises SchedulerError: squeue does not answer, and there are such jobs.
        """
        names: dict[str, list[str]] = {}
        try:
            rows = {row.id: row for row in self._questions.own_jobs()}
        except SchedulerError:
            if len({job.tag for job in jobs}) > MOST_NAMED or any("_" in job.id for job in jobs):
                raise
            rows = {}
        elements: list[str] = []
        for job in dict.fromkeys(jobs):
            row = rows.get(job.id)
            lives = row is not None and own_tag(row) == job.tag and job_state(row.state).ended is None
            if "_" in job.id:
                elements += [job.id] if lives else []
            elif row is None:
                names.setdefault(job.tag, []).append(job.id)
            elif lives:
                names.setdefault(row.name, []).append(job.id)
        orders = [([f"--user={user}", f"--name={name}"], ids) for name, ids in names.items()]
        if len(orders) > MOST_NAMED:
            orders = [([f"--user={user}"], [id for ids in names.values() for id in ids if id in rows])]
        return [*orders, ([], elements)] if elements else orders

    def found(self, job: OwnJob, user: str) -> list[str]:
        """The words by which `scontrol update` finds a job of ours; none: Slurm has no such job.

        Where no other job has its name, that: scontrol itself then finds the number, which cannot be that of
        another job. Name and number together would rename the job.
        """
        rows = self._questions.own_jobs()
        row = own_row(rows, job)
        if row is None:
            return []
        if row.name == job.tag and sum(each.name == job.tag for each in rows) == 1:
            return [f"JobName={job.tag}", f"UserID={user}"]
        return [f"JobId={job.id}"]

    def _of_queue(self, row: QueueRow, preempted: bool) -> JobReport:
        """Report on a job; while it waits, a request for whole nodes shows one processor for each of them."""
        report = _of_queue(row, preempted)
        if self._whole_nodes or (report.state is JobState.QUEUED and row.processors == row.node_count > 1):
            return msgspec.structs.replace(report, processors=None)
        return report

    def _preempted(self, rows: Iterable[QueueRow]) -> frozenset[str]:
        """Ids of the jobs that left because Slurm preempted them, though it says completed or failed.

        Each job is asked for once, though Slurm shows it for minutes.
        """
        left = [
            row.id
            for row in rows
            if job_state(row.state) in _LEFT_BY_THEMSELVES and any(map(self._may_preempt, row.partitions))
        ]
        known = {id: self._left[id] for id in left if id in self._left}
        if len(known) < len(left):
            ordered = self._questions.preempted()
            known = {id: id in ordered for id in left}
        self._left = known
        return frozenset(id for id, told in known.items() if told)

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


def _by_element(reports: Iterable[JobReport]) -> dict[str, JobReport]:
    """Reports by id: elements of an array that wait together have one report."""
    found = {}
    for report in reports:
        for id in waiting_elements(report.id):
            found[id] = msgspec.structs.replace(report, id=id, tag=_of_element(id, report.tag))
    return found


def latest(rows: Iterable[AccountingRow]) -> list[AccountingRow]:
    """One row per job: sacct has one for each size that a job had, the last one last. It counts with what it
    held at first: nodes that it gave back are charged apart.

    A number that was given out again is another job's, which has another name.
    """
    found: dict[tuple[str, str], AccountingRow] = {}
    for row in rows:
        job = row.id, row.name
        first = found.get(job, row)
        found[job] = msgspec.structs.replace(row, start=first.start, processors=first.processors)
    return list(found.values())


def _of_queue(row: QueueRow, preempted: bool) -> JobReport:
    state = job_state(row.state)
    if preempted and state in _LEFT_BY_THEMSELVES:
        state = JobState.PREEMPTED
    queued = state is JobState.QUEUED
    return JobReport(
        id=row.id,
        tag=name_of(row),
        state=state,
        start=None if queued or _never_started(row) else row.start,
        end=row.end if state.ended else None,
        planned_start=row.start if queued else None,
        granted=None if queued or math.isinf(row.limit) else row.limit,
        processors=row.processors,
        limit=row.limit,
        partition=row.partitions[0] if len(row.partitions) == 1 else "",
        begins=row.start if queued and "BeginTime" in row.reason else None,
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


def own_row(rows: Iterable[QueueRow], job: OwnJob) -> QueueRow | None:
    """The row of the job with this number and tag; None: there is none."""
    return next((row for row in rows if row.id == job.id and own_tag(row) == job.tag), None)


def remaining_nodes(rows: Iterable[QueueRow], job: OwnJob, leaving: Collection[str]) -> list[str]:
    """The nodes that a running job keeps; always the first one, where its script runs.

    Raises:
        SchedulerError: the job does not run, or has none of these nodes to give back.
    """
    row = own_row(rows, job)
    if row is None or job_state(row.state) is not JobState.RUNNING:
        raise SchedulerError(f"job {job.id} does not run: it has no nodes to give back")
    kept = [node for node in row.nodes if node not in leaving or node == row.nodes[0]]
    if len(kept) == len(row.nodes):
        raise SchedulerError(f"job {job.id} can give back none of {', '.join(sorted(leaving))}")
    return kept
