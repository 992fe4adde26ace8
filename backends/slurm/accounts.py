"""Limits of associations and QOS for groups of jobs, and what of them is used: `scontrol show assoc_mgr`.

slurmctld answers from memory, to every user unless the site hides associations. Limits of one job and of one
user are in `backends.slurm.parse`. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import msgspec

from adaptor.model import SharedBound
from backends.numbers import finite, understood
from backends.slurm.parse import Association, QosAllowance
from backends.slurm.placing.job_details import JobDetail
from backends.slurm.reasons import job_state
from backends.slurm.rows import Partition, QueueRow

ENFORCED = frozenset({"limits", "safe", "all"})
"""Words of AccountingStorageEnforce with which Slurm keeps to these limits."""


class SlurmTerms(msgspec.Struct, frozen=True, kw_only=True):
    """All that limits are made of."""

    partitions: dict[str, Partition]
    associations: list[Association] = []
    """Associations of our user; empty: there is no accounting."""
    qos: dict[str, QosAllowance] = {}
    groups: list[GroupLimits] = []
    """Limits of accounts, of our user in them, and of QOS; empty: Slurm keeps to no such limits."""
    user: str = ""
    """Name of our user."""


def is_enforced(settings: Mapping[str, str]) -> bool:
    """Whether Slurm keeps to limits of associations and QOS; where it does not say, it may."""
    enforced = settings.get("AccountingStorageEnforce")
    if enforced is None:
        return True
    return not ENFORCED.isdisjoint(word.strip().lower() for word in enforced.split(","))


class Used(msgspec.Struct, frozen=True):
    """A limit, `math.inf` where there is none, and what is used of it."""

    limit: float = math.inf
    used: float = 0.0

    @property
    def left(self) -> float:
        return max(0.0, self.limit - self.used)


class GroupLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of an account, of a user in an account, or of a QOS."""

    source: str
    """Source for people: `account lab`, `QOS normal`."""
    account: str = ""
    user: str = ""
    """User of the record; empty: it is of the account, with all accounts below it, or of a QOS."""
    partition: str = ""
    parent: str = ""
    """The account above an account."""
    qos: str = ""
    processors: Used = Used()
    """GrpTRES=cpu."""
    nodes: Used = Used()
    """GrpTRES=node."""
    memory: Used = Used()
    """GrpTRES=mem, MiB."""
    billing: Used = Used()
    """GrpTRES=billing."""
    gpus: Used = Used()
    """GrpTRES=gres/gpu."""
    jobs: Used = Used()
    """Running jobs: GrpJobs; of a user in an account, MaxJobs."""
    submitted: Used = Used()
    """Jobs queued or running: GrpSubmitJobs."""
    minutes: Mapping[str, Used] = {}
    """Used since the last reset, by what is counted: GrpTRESMins of `cpu`, `node`, `mem` and `billing`, which
    concern every job; `wall` is GrpWall."""
    run_minutes: Mapping[str, Used] = {}
    """Minutes that running jobs of the group may still take together, by resource: GrpTRESRunMins."""
    job_processors: float = math.inf
    """Processors of one job on one node: MaxTRESPerNode=cpu."""
    job_memory: float = math.inf
    """Memory that one job may have of a node, in MiB: MaxTRESPerNode=mem."""
    job_minutes: float = math.inf
    """Processors times minutes of one job: MaxTRESMins=cpu."""


_SPENT = {
    "cpu": ("GrpTRESMins=cpu", "GrpCPUMinutesLimit"),
    "node": ("GrpTRESMins=node", "GrpNodeMinutes"),
    "mem": ("GrpTRESMins=mem", "GrpMemMinutes"),
    "billing": ("GrpTRESMins=billing", "GrpBillingMinutes"),
    "wall": ("GrpWall", "GrpWallLimit"),
}
"""Key of sacctmgr, and Slurm's word for jobs that wait, behind Assoc or QOS, by what every job uses."""
_PAIR = re.compile(r"(N|[0-9.]+)(?:\(([0-9.]+)\))?")
_WORD = re.compile(r"(\w+)=(\S*)")


def parse_groups(text: str, user: str) -> list[GroupLimits]:
    """`scontrol show assoc_mgr -o flags=assoc,qos`: the accounts, those of the user in them, and the QOS.

    Raises:
        SchedulerError: a line is not what that command prints.
    """
    lines = [line for line in text.splitlines() if line.startswith(("ClusterName=", "QOS="))]
    found = [understood("scontrol show assoc_mgr", _group, line) for line in lines]
    return [group for group in found if group.user in ("", user)]


def _group(line: str) -> GroupLimits:
    values: dict[str, str] = {}
    for key, value in _WORD.findall(line):
        values.setdefault(key, value)
    tres = _counted(values["GrpTRES"], {*_SPENT, "gres/gpu"})
    on_node = _counted(values.get("MaxTRESPN", ""))
    minutes = {**_counted(values["GrpTRESMins"]), "wall": _used(values.get("GrpWall", ""))}
    jobs = _used(values["GrpJobs"])
    name = _name(values.get("QOS", ""))
    account, user = values.get("Account", ""), _name(values.get("UserName", ""))
    if user and (own := _used(values.get("MaxJobs", ""))).limit < jobs.limit:
        jobs = own
    of_user = f"account {account} of user {user}" if user else f"account {account}"
    return GroupLimits(
        source=f"QOS {name}" if name else of_user,
        account=account,
        user=user,
        partition=values.get("Partition", "") if account else "",
        parent=_name(values.get("ParentAccount", "")),
        qos=name,
        processors=tres.get("cpu", Used()),
        nodes=tres.get("node", Used()),
        memory=tres.get("mem", Used()),
        billing=tres.get("billing", Used()),
        gpus=tres.get("gres/gpu", Used()),
        jobs=jobs,
        submitted=_used(values["GrpSubmitJobs"]),
        minutes=minutes,
        run_minutes=_counted(values["GrpTRESRunMins"]),
        job_processors=on_node.get("cpu", Used()).limit,
        job_memory=on_node.get("mem", Used()).limit,
        job_minutes=_counted(values.get("MaxTRESMinsPJ", "")).get("cpu", Used()).limit,
    )


def _name(text: str) -> str:
    """The name without the number in brackets."""
    return text.partition("(")[0]


def _counted(text: str, names: Container[str] = _SPENT) -> dict[str, Used]:
    """`cpu=6(2),mem=N(0)`, by the name before the sign."""
    pairs = (item.partition("=") for item in text.split(",") if item)
    return {name: _used(value) for name, _, value in pairs if name in names}


def _used(text: str) -> Used:
    if not text:
        return Used()
    match = _PAIR.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return Used(math.inf if match[1] == "N" else finite(match[1]), finite(match[2] or "0"))


def concerning(
    groups: Iterable[GroupLimits], account: str, user: str, partition: str, qos: Iterable[str]
) -> list[GroupLimits]:
    """The limits for jobs of a user under an account and these QOS: with the accounts above it."""
    known, names = list(groups), set(qos)
    own = [each for each in known if each.account == account and each.user == user and not each.qos]
    own = [each for each in own if each.partition == partition] or [
        each for each in own if not each.partition
    ]
    accounts = {each.account: each for each in known if each.account and not each.user}
    above = [accounts[name] for name in _upwards(accounts, account)]
    return [*own, *above, *(each for each in known if each.qos in names and each.qos)]


def _upwards(accounts: Mapping[str, GroupLimits], account: str) -> Iterator[str]:
    seen: set[str] = set()
    while account in accounts and account not in seen:
        seen.add(account)
        yield account
        account = accounts[account].parent


def below(groups: Iterable[GroupLimits], account: str) -> frozenset[str]:
    """An account with all accounts below it."""
    accounts = {each.account: each for each in groups if each.account and not each.user}
    return frozenset(name for name in accounts if account in _upwards(accounts, name)) | {account}


def minutes_of(name: str) -> tuple[str, str]:
    """Words for people for minutes that are counted as used, and the key of sacctmgr."""
    what = {"cpu": "processor minutes", "wall": "minutes"}.get(name, f"minutes of {name}")
    return what, _SPENT[name][0]


def used_up(groups: Iterable[GroupLimits]) -> str:
    """Why no job of ours starts until a limit is raised or its period begins again; empty: jobs can."""
    for group in groups:
        for name, minutes in group.minutes.items():
            if minutes.limit > minutes.used:
                continue
            (what, key), reason = minutes_of(name), _SPENT[name][1]
            return (
                f"{group.source} has used up its {minutes.limit:g} {what} ({key}={minutes.limit:g}, "
                f"{minutes.used:g} used): Slurm starts none of its jobs ({'QOS' if group.qos else 'Assoc'}"
                f"{reason}); ask its coordinator for more, or set `account` or `qos` of this site to another"
            )
        for key, limit in (
            ("GrpTRES=cpu", group.processors.limit),
            ("GrpTRES=node", group.nodes.limit),
            ("GrpJobs", group.jobs.limit),
            ("GrpSubmitJobs", group.submitted.limit),
        ):
            if limit <= 0:
                return f"{group.source} may run nothing ({key}={limit:g}): set `account` or `qos` to another"
    return ""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that together hold at most `most` processors."""

    most: float
    source: str
    accounts: frozenset[str] | None = None
    """Accounts of the group; None: all."""
    user: str = ""
    """User of the group; empty: all."""
    used: float | None = None
    """Processors that they hold, where the jobs are not distinguished from others."""


def shared_bounds(
    groups: Sequence[Group], jobs: Iterable[QueueRow], details: Mapping[str, JobDetail], user: str
) -> tuple[SharedBound, ...]:
    """The bounds with what the jobs hold of them. `user`: ours."""
    rows = [(row, details[row.id].user if row.id in details else "") for row in jobs] if groups else []
    return tuple(_bound(group, rows, user) for group in groups)


def _bound(group: Group, rows: Sequence[tuple[QueueRow, str]], user: str) -> SharedBound:
    who = group.user or (user if group.used is not None else "")
    mine = [
        row
        for row, owner in rows
        if (group.accounts is None or row.account in group.accounts) and who in ("", owner)
    ]
    running = [row for row in mine if row.nodes and not job_state(row.state).ended]
    held = [(math.inf if row.end is None else row.end, row.processors) for row in running]
    if group.used is not None and (hidden := int(group.used) - sum(count for _, count in held)) > 0:
        ends = [row.end for row, _ in rows if row.nodes and row.end is not None]
        held.append((max(ends, default=math.inf), hidden))  # the latest of the jobs that we see
    waiting = frozenset(row.id for row in mine if not row.nodes)
    return SharedBound(most=int(group.most), held=tuple(held), waiting=waiting, source=group.source)
