"""A site's own history, as Slurm's `sacct -P` tells it, to a trace: a job a line. Only text goes in."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from adaptor.units import parse_duration
from adaptor_simulation.files import TraceError
from adaptor_simulation.traces.swf import FIELDS, UNKNOWN, Field, Header, Status, Trace

COMMAND = (
    "sacct -a -X -P -S 2026-01-01 -E now "
    "-o JobIDRaw,Submit,Start,End,ElapsedRaw,TimelimitRaw,AllocCPUS,ReqCPUS,State,User,Group,Partition,QOS"
)
"""The command that the message names; more columns, and other orders, do no harm."""

_STATUS = {
    "COMPLETED": Status.COMPLETED,
    "CANCELLED": Status.CANCELLED,
    "REVOKED": Status.CANCELLED,
    **dict.fromkeys(
        ("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "PREEMPTED"),
        Status.FAILED,
    ),
}
_MOST_DIGITS = 15  # of a number that a trace can hold exactly
_NO_TIME = frozenset({"", "None", "Unknown", "N/A"})
_NO_LIMIT = frozenset({"", "UNLIMITED", "Partition_Limit", "INVALID"})


class NotEnded(Exception):
    """The job runs or waits: its run time is not known yet."""


class SacctJob(msgspec.Struct, frozen=True, kw_only=True):
    """Times in epoch seconds, -1 for what is not known."""

    id: str
    submit: int
    start: int | None
    run: int
    limit: int
    allocated: int
    requested: int
    status: Status
    user: str
    group: str
    partition: str
    qos: str


def parse_row(row: Mapping[str, str], zone: datetime.tzinfo | None) -> SacctJob:
    """Raises NotEnded, or ValueError for a missing column or a damaged value (names the column)."""
    state = _value(row, "State").split()[:1]
    status = _STATUS.get(state[0].rstrip("+")) if state else None
    if status is None:
        raise NotEnded
    submit = _time(row, "Submit", zone)
    if submit is None:
        raise ValueError("Submit: a job without a time of submission")
    start = _time(row, "Start", zone)
    return SacctJob(
        id=_value(row, "JobIDRaw", "JobID"),
        submit=submit,
        start=start,
        run=UNKNOWN if start is None else _elapsed(row),
        limit=_limit(row),
        allocated=_count(row, "AllocCPUS", "NCPUS"),
        requested=_count(row, "ReqCPUS") if "ReqCPUS" in row else UNKNOWN,
        status=status,
        user=row.get("User", ""),
        group=row.get("Group", row.get("Account", "")),
        partition=row.get("Partition", ""),
        qos=row.get("QOS", ""),
    )


def _value(row: Mapping[str, str], *names: str) -> str:
    for name in names:
        if name in row:
            return row[name].strip()
    raise ValueError(f"no column {' or '.join(names)}; make it with: {COMMAND}")


def _time(row: Mapping[str, str], name: str, zone: datetime.tzinfo | None) -> int | None:
    """`2026-11-21T08:04:00`, also with an offset, or epoch seconds (SLURM_TIME_FORMAT=%s)."""
    text = _value(row, name)
    if text in _NO_TIME:
        return None
    if text.isdecimal() and len(text) <= _MOST_DIGITS:
        return int(text)
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name}: {text[:30]!r} is no time") from None
    if moment.tzinfo is None and zone is not None:
        moment = moment.replace(tzinfo=zone)
    return int(moment.timestamp())


def _elapsed(row: Mapping[str, str]) -> int:
    if "ElapsedRaw" in row:
        return _count(row, "ElapsedRaw", least=0)
    return _duration("Elapsed", _value(row, "Elapsed"))


def _limit(row: Mapping[str, str]) -> int:
    """TimelimitRaw counts minutes."""
    if row.get("TimelimitRaw", "") not in _NO_LIMIT:
        return 60 * _count(row, "TimelimitRaw")
    text = row.get("Timelimit", "") if "TimelimitRaw" in row else _value(row, "TimelimitRaw", "Timelimit")
    return UNKNOWN if text in _NO_LIMIT else _duration("Timelimit", text)


def _duration(name: str, text: str) -> int:
    try:
        return int(parse_duration(text))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _count(row: Mapping[str, str], *names: str, least: int = 1) -> int:
    """A number; -1 where it is less than `least`, or empty."""
    text = _value(row, *names)
    if text and not text.isdecimal():
        raise ValueError(f"{names[0]}: {text[:30]!r} is no number")
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"{names[0]}: {text[:30]!r} is too large")
    return int(text) if text and int(text) >= least else UNKNOWN


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
