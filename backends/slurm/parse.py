"""Slurm's text to rows. Pure functions; each says which command prints what it reads.

Raises (every function):
    SchedulerError: a line is not what that command prints.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from adaptor.model import EndedJob
from adaptor.units import parse_size
from backends.base import SchedulerError
from backends.numbers import Row, finite, not_understood, understood, whole
from backends.observed.remembered import Remembered, blocks_of, decoded, lines_of
from backends.observed.rows import ReservationRow
from backends.slurm.fields import expand, parse_count, parse_limit, parse_time
from backends.slurm.placing.exclusivity import jobs_on_a_processor, of_partition
from backends.slurm.rows import AccountingRow, NodeRow, Partition, QueueRow

ASSOCIATION_FIELDS = "Account,Partition,QOS,DefaultQOS,MaxSubmit,MaxWall,MaxTRES"
QOS_FIELDS = (
    "Name,MaxSubmitPU,MaxWall,MaxTRES,MaxTRESPU,MaxJobsPU,MaxJobsPA,MaxSubmitPA,MaxTRESPA,MaxTRESPerNode,"
    "MaxTRESMins,MinTRES"
)


class QosAllowance(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of an association or a QOS; `math.inf`: no limit."""

    source: str
    """Source for people: `QOS short`."""
    submitted: float = math.inf
    """Jobs of one user, queued or running."""
    seconds: float = math.inf
    processors: float = math.inf
    nodes: float = math.inf
    jobs: float = math.inf
    """Jobs of one user that run at the same time."""
    account_jobs: float = math.inf
    account_submitted: float = math.inf
    """Jobs of all users of one account, queued or running; `account_jobs`: those that run at once."""
    user_processors: float = math.inf
    """Processors of all jobs of one user that run at the same time."""
    account_processors: float = math.inf
    node_processors: float = math.inf
    """Processors that one job may have of a node."""
    node_memory: float = math.inf
    """Bytes that one job may have of a node."""
    minutes: float = math.inf
    """Processors times minutes of one job."""
    memory: float = math.inf
    """Bytes of one job."""
    gpus: float = math.inf
    """GPUs of one job."""
    billing: float = math.inf
    """Billing units of one job."""
    least: int = 1
    """Processors of one job at least; the next four are of one job at least too."""
    least_nodes: int = 1
    least_memory: float = 0
    least_gpus: float = 0
    least_billing: float = 0


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """The association of a user with an account."""

    account: str
    partition: str
    """Name of the partition; empty: all partitions."""
    qos: tuple[str, ...]
    """Names of the QOS that may be used."""
    default_qos: str
    allowance: QosAllowance


def parse_associations(text: str) -> list[Association]:
    """`sacctmgr -n -P show assoc` with ASSOCIATION_FIELDS. Raises SchedulerError."""
    return _rows("sacctmgr", text.splitlines(), _association)


def parse_qos(text: str) -> dict[str, QosAllowance]:
    """`sacctmgr -n -P show qos` with QOS_FIELDS, by name. Raises SchedulerError."""
    return dict(_rows("sacctmgr", text.splitlines(), _qos))


def _association(line: str) -> Association:
    account, partition, qos, default, submitted, wall, tres = line.split("|")
    return Association(
        account=account,
        partition=partition,
        qos=tuple(name for name in qos.split(",") if name),
        default_qos=default,
        allowance=_allowance(f"account {account}", submitted, wall, tres),
    )


def _qos(line: str) -> tuple[str, QosAllowance]:
    name, submitted, wall, per_job, per_user, *more = line.split("|")
    jobs, account_jobs, account_submitted, per_account, per_node, minutes, least = more
    found = _allowance(f"QOS {name}", submitted, wall, per_job, per_user, per_account)
    return name, msgspec.structs.replace(
        found,
        jobs=_count(jobs),
        account_jobs=_count(account_jobs),
        account_submitted=_count(account_submitted),
        user_processors=_processors(per_user),
        account_processors=_processors(per_account),
        node_processors=_processors(per_node),
        node_memory=_resources(per_node).get("mem", math.inf),
        minutes=_processors(minutes),
        least=int(_resources(least).get("cpu", 1)),
        least_nodes=int(_resources(least).get("node", 1)),
        least_memory=_resources(least).get("mem", 0),
        least_gpus=_resources(least).get("gres/gpu", 0),
        least_billing=_resources(least).get("billing", 0),
    )


_COUNTED = ("cpu", "node", "billing", "gres/gpu")


def _count(text: str) -> float:
    return finite(text) if text else math.inf


def _processors(text: str) -> float:
    return _resources(text).get("cpu", math.inf)


def _allowance(source: str, submitted: str, wall: str, *resources: str) -> QosAllowance:
    counted = [_resources(text) for text in resources]
    return QosAllowance(
        source=source,
        submitted=_count(submitted),
        seconds=parse_limit(wall),
        processors=min(each.get("cpu", math.inf) for each in counted),
        nodes=min(each.get("node", math.inf) for each in counted),
        memory=min(each.get("mem", math.inf) for each in counted),
        gpus=min(each.get("gres/gpu", math.inf) for each in counted),
        billing=min(each.get("billing", math.inf) for each in counted),
    )


def _resources(text: str) -> dict[str, float]:
    """`cpu=12,node=2,mem=500M` to numbers, memory in bytes; licences and other devices are of no use here."""
    pairs = [item.partition("=") for item in text.split(",") if item]
    found = {name: finite(value) for name, _, value in pairs if name in _COUNTED}
    sizes = {name: float(parse_size(value)) for name, _, value in pairs if name == "mem"}
    return {**found, **sizes}


OF_ONE_JOB = ("JobArrayID", "PriorityLong", "StartTime", "EndTime", "NodeList", "SchedNodes")
OF_ITS_KIND = (
    *("State", "Partition", "NumCPUs", "NumNodes", "TimeLimit", "Reason"),
    *("tres-per-job", "tres-per-node", "tres-per-task", "mem-per-tres"),
)
"""Fields that are equal for many jobs, so that they are read once."""
FREE_TEXTS = ("Name", "Account", "WCKey")
OWN_TEXTS = ("Name", "Account", "Comment")
"""Free texts of our user's jobs: of a job that the site renames, the comment has our tag."""
PREEMPTED_FORMAT = "JobArrayID:40,PreemptTime:32"  # `squeue -h -a --me -t CD,F -O`
NODE_FORMAT = "%P|%a|%N|%T|%C|%m"  # `sinfo -h -a -N -o`
ACCOUNTING_FIELDS = "JobID,State,Start,End,NodeList,AllocCPUS,JobName"
"""`sacct -X -n -P -o`, with a `--delimiter` that no job can know."""

RECORD_FIELDS = "User,TimelimitRaw,ElapsedRaw,JobName"
"""`sacct -a -X -n -P -o`, with a `--delimiter` that no job can know."""

_NOT_SET = frozenset({"", "N/A", "(null)"})
_NODE_STATE = re.compile(r"([a-z_]+)([^a-z_]*)", re.IGNORECASE)


def queue_format(mark: str, *, own: bool = False) -> str:
    """Format for `squeue -a -O`: every field in its full length, and behind it a bar; behind free texts the
    mark.

    Args:
        mark: a word that stands in no job, so that a user's text ends no field and begins no row.
        own: whether OWN_TEXTS are among the fields.
    """
    plain = [f"{field}:0|" for field in (*OF_ONE_JOB, *OF_ITS_KIND)]
    texts = OWN_TEXTS if own else FREE_TEXTS
    return ",".join([*plain, *(f"{field}:0{mark}" for field in texts)])


class _InPieces(ValueError):
    """A line is no whole row: a text of a job has line breaks."""


def rows_of_squeue(printed: bytes, mark: str) -> bytes:
    """The rows behind the header of `squeue -a -O` with the `queue_format` of this mark.

    The header begins each answer, also where there are no jobs: without it nothing was answered. Output of
    the site before it is left out.

    Raises SchedulerError: there is no header.
    """
    begin = printed.rfind(b"\n", 0, max(0, printed.find(mark.encode()))) + 1
    end = printed.find(b"\n", begin)
    if mark.encode() not in printed or end < 0 or printed[begin : begin + 1].isdigit():
        said = decoded(printed[:200].strip())
        raise SchedulerError(f"squeue printed no header, so it has not answered: {said!r}")
    return printed[end + 1 :]


def parse_queue(
    printed: bytes, mark: str, known: Remembered[QueueRow] | None = None, *, own: bool = False
) -> list[QueueRow]:
    """The rows of `squeue -a -O` with the `queue_format` of this mark.

    Args:
        known: rows of the last answer; its mark may differ.
        own: as in `queue_format`.
    """
    known, sign, width = known or Remembered(), mark.encode(), len(FREE_TEXTS)
    make = _own_line_row if own else _line_row
    if b"\0" not in printed:  # no text of Slurm holds it, so it can stand for the mark
        with contextlib.suppress(_InPieces):
            return known.of(blocks_of(printed.replace(sign, b"\0")), make)
    *values, rest = printed.split(sign)
    if rest.strip() or len(values) % width:
        raise not_understood("squeue", decoded(rest.strip() or printed))
    rows = [values[start : start + width] for start in range(0, len(values), width)]
    if b"\0" in printed:
        return [_row_of(own, *map(decoded, row)) for row in rows]
    return known.of([[b"".join(b"%b\0" % value for value in row) for row in rows]], make)


def _line_row(line: str) -> QueueRow:
    return _row_of(False, *_values_of(line))


def _own_line_row(line: str) -> QueueRow:
    return _row_of(True, *_values_of(line))


def _values_of(line: str) -> list[str]:
    values = line.split("\0")
    if len(values) != len(FREE_TEXTS) + 1 or values[-1]:
        raise _InPieces
    return values[:-1]


def _row_of(own: bool, *values: str) -> QueueRow:
    return understood("squeue", functools.partial(_queue_row, own), *values)


def parse_preempted(text: str) -> frozenset[str]:
    """`squeue` with PREEMPTED_FORMAT: the ids of those jobs that got the order to make room for others."""
    pairs = _rows("squeue", text.splitlines(), _id_and_time)
    return frozenset(id for id, told in pairs if told is not None)


def parse_nodes(printed: bytes, known: Remembered[NodeRow] | None = None) -> list[NodeRow]:
    """`sinfo -N` with NODE_FORMAT. `known`: rows of the last answer."""
    known = known or Remembered()
    return known.of(lines_of(printed), _understood_node)


def parse_accounting(text: str, delimiter: str = "|") -> list[AccountingRow]:
    """`sacct -X -n -P` with ACCOUNTING_FIELDS and this delimiter; of a job's name, the first line."""
    lines = _first_lines("sacct", text, lambda line: delimiter in line)
    return _rows("sacct", lines, lambda line: _accounting_row(line, delimiter))


def parse_records(text: str, delimiter: str, most: int) -> list[tuple[EndedJob, str]]:
    """`sacct -a -X -n -P` with RECORD_FIELDS: the last jobs that ran with a time limit, and their names."""
    found = []
    for line in text.split("\n"):
        user, limit, ran, name = (line.split(delimiter, 3) + [""] * 4)[:4]
        if limit.isdigit() and ran.isdigit() and whole(limit) and whole(ran):
            found.append((EndedJob(user, 60.0 * whole(limit), float(whole(ran))), name))
    return found[-most:]


def parse_reservations(text: str) -> list[ReservationRow]:
    """`scontrol show reservation -o`; those without nodes (licences only) are left out."""
    lines = [line for line in text.splitlines() if line.startswith("ReservationName=")]
    found = _rows("scontrol", lines, _reservation)
    return [reservation for reservation in found if reservation.nodes]


def parse_partitions(text: str) -> list[Partition]:
    """Partitions, from `scontrol show partition -o`."""
    return _rows("scontrol", text.splitlines(), _partition)


def parse_settings(text: str) -> dict[str, str]:
    """`scontrol show config`: names to values."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def job_id_of(text: str) -> str | None:
    """The id that `sbatch --parsable` printed: `12` or `12;cluster`, perhaps after a site's greetings."""
    for line in reversed(text.splitlines()):
        match = re.fullmatch(r"\s*(?:Submitted batch job )?(\d+)(?:;\S*)?\s*", line)
        if match:
            return match[1]
    return None


def _first_lines(command: str, text: str, is_first: Callable[[str], bool]) -> list[str]:
    """The first line of each row, where names of jobs may hold line breaks."""
    lines = [line for line in text.split("\n") if line.strip()]
    if lines and not is_first(lines[0]):
        raise not_understood(command, lines[0])
    return [line for line in lines if is_first(line)]


def _rows(command: str, lines: list[str], make: Callable[[str], Row]) -> list[Row]:
    return [understood(command, make, line) for line in lines if line.strip()]


def _queue_row(own: bool, told: str, account: str, third: str) -> QueueRow:
    """The row of a job. `told`: all before the mark behind the name; `third`: the third of the free texts."""
    id, priority, start, end, names, planned, rest = told.split("|", len(OF_ONE_JOB))
    id = id.strip()
    if not id[:1].isdigit():
        raise ValueError(id)
    name = rest.split("|", len(OF_ITS_KIND))[-1]
    return QueueRow(
        id=id,
        start=parse_time(start),
        end=parse_time(end),
        nodes=tuple(expand(names)),
        planned_nodes=tuple(expand(planned)),
        priority=whole(priority),
        name=sys.intern(name),
        account=sys.intern(account),
        wckey="" if own else sys.intern(third),
        comment=_told_or_empty(third) if own else "",
        **_of_its_kind(rest[: len(rest) - len(name)]),
    )


@functools.lru_cache(maxsize=4000)
def _of_its_kind(told: str) -> dict[str, Any]:
    state, partitions, processors, nodes, limit, reason, *gpus, _ = told.split("|")
    per_job, per_node, per_task, memory = map(_told_or_empty, gpus)
    return {
        "state": state,
        "partitions": tuple(partitions.split(",")),
        "processors": parse_count(processors),
        "node_count": parse_count(nodes),
        "limit": parse_limit(limit),
        "reason": reason,
        "gpus_per_job": per_job,
        "gpus_per_node": per_node,
        "gpus_per_task": per_task,
        "memory_per_gpu": memory,
    }


def _told_or_empty(text: str) -> str:
    return "" if text in _NOT_SET else text


def _id_and_time(line: str) -> tuple[str, float | None]:
    id, told = line.split()
    return id, parse_time(told)


def _understood_node(line: str) -> NodeRow:
    return understood("sinfo", _node_row, line)


def _node_row(line: str) -> NodeRow:
    partition, available, node, state, counts, memory = line.split("|")
    word = _NODE_STATE.fullmatch(state)
    if word is None:
        raise ValueError(state)
    allocated, idle, other, _ = (parse_count(count) for count in counts.split("/"))
    return NodeRow(
        partition=partition.rstrip("*"),
        default=partition.endswith("*"),
        available=available,
        node=node,
        state=word[1].lower(),
        flags=word[2],
        allocated=allocated,
        idle=idle,
        other=other,
        memory=parse_count(memory.rstrip("+")),
    )


def _accounting_row(line: str, delimiter: str) -> AccountingRow:
    id, state, start, end, nodes, processors, name = line.split(delimiter, 6)
    return AccountingRow(
        id=id,
        name=name,
        state=state,
        start=parse_time(start),
        end=parse_time(end),
        nodes=tuple(expand(nodes)),
        processors=parse_count(processors),
    )


def _pairs(line: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def _reservation(line: str) -> ReservationRow:
    values = _pairs(line)
    start, end = parse_time(values["StartTime"]), parse_time(values["EndTime"])
    if start is None or end is None:
        raise ValueError(line)
    nodes = dict.fromkeys(expand(values["Nodes"]))
    return ReservationRow(name=values["ReservationName"], start=start, end=end, nodes=nodes)


def _named(names: str) -> frozenset[str]:
    """Names in a list; empty: all are named."""
    return frozenset() if names.upper() in ("", "ALL", "(NULL)") else frozenset(names.split(","))


def _billing(weights: str) -> float:
    """Billing units of each processor: 1 if no weights are set."""
    pairs = (item.partition("=") for item in weights.lower().split(",") if item)
    found = {name: value for name, _, value in pairs}
    return finite(found.get("cpu", "0")) if found else 1.0


def _most(text: str) -> float:
    return math.inf if text in ("", "UNLIMITED") else float(parse_count(text))


def _partition(line: str) -> Partition:
    values = _pairs(line)
    most, qos = values["MaxNodes"], values.get("QoS", "N/A")
    return Partition(
        name=values["PartitionName"],
        default=values["Default"] == "YES",
        state=values["State"],
        max_time=parse_limit(values["MaxTime"]),
        max_nodes=None if most == "UNLIMITED" else parse_count(most),
        processors=parse_count(values["TotalCPUs"]),
        nodes=parse_count(values["TotalNodes"]),
        tier=whole(values.get("PriorityTier", "1")),
        exclusive=of_partition(values),
        shared_by=jobs_on_a_processor(values),
        qos="" if qos in ("N/A", "(null)") else qos,
        preempt_mode=values.get("PreemptMode", "OFF"),
        grace=finite(values.get("GraceTime", "0")),
        default_memory=values.get("DefMemPerCPU", ""),
        most_memory=values.get("MaxMemPerCPU", ""),
        most_node_memory=values.get("MaxMemPerNode", ""),
        node_processors=_most(values.get("MaxCPUsPerNode", "")),
        socket_processors=_most(values.get("MaxCPUsPerSocket", "")),
        min_nodes=max(1, parse_count(values.get("MinNodes", "1"))),
        only_accounts=_named(values.get("AllowAccounts", "")),
        only_qos=_named(values.get("AllowQos", "")),
        no_accounts=_named(values.get("DenyAccounts", "")),
        no_qos=_named(values.get("DenyQos", "")),
        billing=_billing(values.get("TRESBillingWeights", "")),
    )
