"""One line of `sacct -P` to one job."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

import msgspec

from adaptor.simulation.traces.swf import UNKNOWN, Status
from adaptor.units import parse_duration

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
_MOST_DIGITS = 15
"""Of a number that a trace can hold exactly."""
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
