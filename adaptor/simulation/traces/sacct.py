"""A site's own history, as Slurm's `sacct` tells it, to a trace. Nothing but text goes in."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

import numpy as np

from adaptor.simulation.errors import TraceError
from adaptor.simulation.traces.sacct_rows import COMMAND, NotEnded, SacctJob, parse_row
from adaptor.simulation.traces.swf import FIELDS, UNKNOWN, Field, Trace
from adaptor.simulation.traces.swf_header import Header


def from_sacct(
    text: str,
    *,
    zone: datetime.tzinfo | None = None,
    processors: int | None = None,
    name: str = "sacct",
) -> Trace:
    """The trace of the ended jobs in the output of `sacct -P`, header line included, in order of submission.

    Jobs that had not ended and lines of job steps are left out; a note in the header says how many.
    Users and groups become numbers; partitions and QOS, too, but their names stay in the header.

    Args:
        zone: of times without an offset of their own; None: that of this machine.
        processors: of the machine, for the header; `sacct` does not know it.
        name: stands in messages.

    Raises:
        TraceError: a column is missing, a line has other columns than the first, or a value is damaged.
    """
    jobs, not_ended, steps = _parse(text.splitlines(), zone, name)
    jobs.sort(key=lambda job: job.submit)
    begin = jobs[0].submit if jobs else 0
    table = np.full((len(jobs), FIELDS), float(UNKNOWN))
    names = _Names()
    unique = len({job.id for job in jobs}) == len(jobs) and all(job.id.isdecimal() for job in jobs)
    for index, job in enumerate(jobs):
        table[index, Field.NUMBER] = int(job.id) if unique else index + 1
        _fill(table[index], job, begin, names)
    notes = [("Note", f"{not_ended} jobs that had not ended and {steps} lines of steps were left out")]
    return Trace(
        name=name, header=Header((*_entries(jobs, begin, zone, processors, names), *notes)), table=table
    )


def _parse(lines: Iterable[str], zone: datetime.tzinfo | None, name: str) -> tuple[list[SacctJob], int, int]:
    columns: list[str] | None = None
    jobs: list[SacctJob] = []
    not_ended = steps = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if columns is None:
            columns = line.split("|")
            continue
        values = line.split("|")
        if len(values) != len(columns):
            raise TraceError(f"{name}:{number}: {len(columns)} columns expected, {len(values)} found")
        row = dict(zip(columns, values, strict=True))
        if "." in row.get("JobIDRaw", row.get("JobID", "")):
            steps += 1
            continue
        try:
            jobs.append(parse_row(row, zone))
        except NotEnded:
            not_ended += 1
        except ValueError as error:
            raise TraceError(f"{name}:{number}: {error}") from None
    if columns is None:
        raise TraceError(f"{name}: empty; make it with: {COMMAND}")
    return jobs, not_ended, steps


class _Names:
    """Numbers for names, from 1 in the order in which they come."""

    def __init__(self) -> None:
        self.known: dict[Field, dict[str, int]] = {}

    def number(self, field: Field, name: str) -> int:
        known = self.known.setdefault(field, {})
        return known.setdefault(name, len(known) + 1) if name else UNKNOWN

    def entries(self, field: Field, label: str) -> list[tuple[str, str]]:
        return [(label, f"{number} {name}") for name, number in self.known.get(field, {}).items()]


def _fill(row: np.ndarray, job: SacctJob, begin: int, names: _Names) -> None:
    row[Field.SUBMIT] = job.submit - begin
    row[Field.WAIT] = UNKNOWN if job.start is None else job.start - job.submit
    row[Field.RUN] = job.run
    row[Field.ALLOCATED] = job.allocated
    row[Field.REQUESTED] = job.requested
    row[Field.REQUESTED_TIME] = job.limit
    row[Field.STATUS] = job.status
    row[Field.USER] = names.number(Field.USER, job.user)
    row[Field.GROUP] = names.number(Field.GROUP, job.group)
    row[Field.QUEUE] = names.number(Field.QUEUE, job.qos)
    row[Field.PARTITION] = names.number(Field.PARTITION, job.partition)


def _entries(
    jobs: list[SacctJob],
    begin: int,
    zone: datetime.tzinfo | None,
    processors: int | None,
    names: _Names,
) -> list[tuple[str, str]]:
    entries = [
        ("Version", "2.2"),
        ("Information", "made from Slurm's accounting by adaptor trace from-sacct"),
        ("MaxJobs", str(len(jobs))),
        ("MaxRecords", str(len(jobs))),
        ("Preemption", "No"),
        ("UnixStartTime", str(begin)),
    ]
    if key := getattr(zone, "key", None):
        entries.append(("TimeZoneString", key))
    if processors is not None:
        entries.append(("MaxProcs", str(processors)))
    return entries + names.entries(Field.QUEUE, "Queue") + names.entries(Field.PARTITION, "Partition")
