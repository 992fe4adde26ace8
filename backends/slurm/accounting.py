"""Limits that Slurm's accounting sets for a user (sacctmgr(1): associations and QOS)."""

from __future__ import annotations

import math

import msgspec

from backends.base import SchedulerError
from backends.numbers import finite
from backends.slurm.fields import parse_limit

ASSOCIATION_FIELDS = "Account,Partition,QOS,DefaultQOS,MaxSubmit,MaxWall,MaxTRES"
QOS_FIELDS = "Name,MaxSubmitPU,MaxWall,MaxTRES,MaxTRESPU"


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """What an association or a QOS allows; `math.inf` where it says nothing."""

    source: str
    """For people: `QOS short`."""
    submitted: float = math.inf
    """Jobs of one user, queued or running."""
    seconds: float = math.inf
    processors: float = math.inf
    nodes: float = math.inf


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """What binds a user to an account."""

    account: str
    partition: str
    """Empty: all partitions."""
    qos: tuple[str, ...]
    """Those that may be used."""
    default_qos: str
    allowance: Allowance


def parse_associations(text: str) -> list[Association]:
    """`sacctmgr -n -P show assoc` with ASSOCIATION_FIELDS. Raises SchedulerError."""
    return [_association(line) for line in text.splitlines() if line]


def parse_qos(text: str) -> dict[str, Allowance]:
    """`sacctmgr -n -P show qos` with QOS_FIELDS, by name. Raises SchedulerError."""
    return dict(_qos(line) for line in text.splitlines() if line)


def _association(line: str) -> Association:
    account, partition, qos, default, submitted, wall, tres = _split(line, 7)
    return Association(
        account=account,
        partition=partition,
        qos=tuple(name for name in qos.split(",") if name),
        default_qos=default,
        allowance=_allowance(f"account {account}", submitted, wall, tres),
    )


def _qos(line: str) -> tuple[str, Allowance]:
    name, submitted, wall, per_job, per_user = _split(line, 5)
    return name, _allowance(f"QOS {name}", submitted, wall, per_job, per_user)


def _split(line: str, fields: int) -> list[str]:
    words = line.split("|")
    if len(words) != fields:
        raise SchedulerError(f"sacctmgr printed a line that the adaptor cannot read: {line[:200]!r}")
    return words


def _allowance(source: str, submitted: str, wall: str, *resources: str) -> Allowance:
    try:
        counted = [_resources(text) for text in resources]
        return Allowance(
            source=source,
            submitted=finite(submitted) if submitted else math.inf,
            seconds=parse_limit(wall),
            processors=min(each.get("cpu", math.inf) for each in counted),
            nodes=min(each.get("node", math.inf) for each in counted),
        )
    except ValueError as error:
        raise SchedulerError(
            f"sacctmgr: the limits of {source[:100]} are not understood: {str(error)[:200]}"
        ) from error


def _resources(text: str) -> dict[str, float]:
    """`cpu=12,node=2` to numbers; other kinds, such as memory, are of no use here."""
    pairs = (item.partition("=") for item in text.split(",") if item)
    return {name: finite(value) for name, _, value in pairs if name in ("cpu", "node")}
