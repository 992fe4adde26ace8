"""Nodes, queues, reservations and the server as OpenPBS prints them. Pure.

Raises (every function):
    SchedulerError: a value is not what PBS prints.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any

from backends.numbers import clock_seconds, finite, whole
from backends.observed.remembered import Remembered
from backends.observed.rows import ReservationRow
from backends.pbs.fields import (
    PbsRecord,
    comma_list,
    parse_amounts,
    parse_limits,
    parse_long,
    parse_size,
    parse_time,
    parse_user_limit,
    parse_vnodes,
    record_understood,
)
from backends.pbs.openpbs.jobs import AMOUNT, gpu_type
from backends.pbs.rows import PbsNode, PbsQueue, PbsServer, Preemption

_WHOLE = frozenset({"force_excl", "force_exclhost", "default_excl", "default_exclhost"})
"""Values of `sharing` with which jobs get the node whole (pbs_node_attributes(7B))."""
_DEFAULT_PARTITION = "pbs-default"
_EXPRESS = "150"  # `preempt_queue_prio` where nothing is set
_HISTORY = "336:00:00"
"""Time for which ended jobs are remembered by default: two weeks (pbs_server_attributes(7B))."""


def nodes_of(records: Iterable[PbsRecord]) -> list[PbsNode]:
    """Vnodes one by one, from `pbsnodes -a -v`."""
    return [record_understood("node", record, _node) for record in records]


def shown_nodes(printed: bytes, known: Remembered[list[PbsNode]]) -> list[PbsNode]:
    """Nodes from `pbsnodes -a`, node by node. `known`: nodes of the last answer."""
    texts = re.split(rb"\n\n(?=\S)", printed)
    return [*chain.from_iterable(known.of([texts], lambda text: nodes_of(parse_long(text, ""))))]


def queues_of(
    records: Iterable[PbsRecord], user: str, groups: Collection[str] | None = None
) -> list[PbsQueue]:
    """Queues, from `qstat -Q -f`, with the limits for this user.

    `groups`: all of the user's; None: not known, and not judged.
    """
    return [record_understood("queue", record, lambda each: _queue(each, user, groups)) for record in records]


def preemption_of(record: PbsRecord) -> Preemption | None:
    """Settings of preemption, from `list sched` of qmgr; None: it says nothing of preemption."""
    values = record.values
    if "preempt_order" not in values:
        return None
    return record_understood(
        "scheduler",
        record,
        lambda _: Preemption(
            order=re.sub(r"[^SCRD]", "", values["preempt_order"]),
            express_priority=whole(values.get("preempt_queue_prio", _EXPRESS)),
        ),
    )


def server_of(record: PbsRecord, user: str, groups: Collection[str] | None = None) -> PbsServer:
    """The server, from `qstat -B -f`, with the limits for this user."""
    return record_understood("server", record, lambda each: _server(each, user, groups))


def reservations_of(records: Iterable[PbsRecord]) -> list[ReservationRow]:
    """Reservations, from `pbs_rstat -f`; those that hold no nodes (yet, or any more) are left out."""
    found = [record_understood("reservation", record, _reservation) for record in records]
    return [reservation for reservation in found if reservation.nodes]


def _node(record: PbsRecord) -> PbsNode:
    values = record.values
    has = _resources(values, "resources_available")
    jobs = (each.strip().partition("/")[0] for each in values.get("jobs", "").split(","))
    return PbsNode(
        name=record.id,
        host=has.get("host", record.id),
        states=frozenset(each.strip() for each in values["state"].lower().split(",")),
        processors=whole(has.get("ncpus", "0")),
        assigned=parse_amounts(map("=".join, _resources(values, "resources_assigned").items())),
        memory=parse_size(has["mem"]) if "mem" in has else None,
        gpus=whole(has.get("ngpus", "0")),
        gpu_type=gpu_type(has),
        jobs=tuple(dict.fromkeys(each for each in jobs if each)),
        queue=values.get("queue"),
        partition=_partition(values),
        traits={name: frozenset(value.split(",")) for name, value in has.items()},
        exclusive=values.get("sharing") in _WHOLE,
        reservations=comma_list(values.get("resv", "")),
    )


def _queue(record: PbsRecord, user: str, groups: Collection[str] | None) -> PbsQueue:
    values = record.values
    least = _resources(values, "resources_min")
    chunk = _resources(values, "default_chunk")
    names = (each.partition("@")[0] for each in comma_list(values.get("route_destinations", "")))
    return PbsQueue(
        name=record.id,
        routes_to=tuple(dict.fromkeys(name for name in names if name)),
        enabled=values.get("enabled") == "True",
        started=values.get("started") == "True",
        priority=whole(values.get("Priority", "0")),
        partition=_partition(values),
        wants={name: value for name, value in chunk.items() if not AMOUNT.fullmatch(value)},
        from_routes_only=values.get("from_route_only") == "True",
        shuts_out=shuts_out(values, user, groups),
        submit_hosts=submit_hosts(values),
        min_processors=finite(least.get("ncpus", "0")),
        min_seconds=clock_seconds(least.get("walltime", "0")),
        **_limits(values, user, groups),
    )


def _server(record: PbsRecord, user: str, groups: Collection[str] | None) -> PbsServer:
    values = record.values
    remembers = values.get("job_history_enable") == "True"
    return PbsServer(
        name=record.id,
        version=values.get("pbs_version", "unknown"),
        default_queue=values.get("default_queue"),
        scheduling=values.get("scheduling", "True") == "True",
        shows_all_jobs=values.get("query_other_jobs", "False") == "True",
        formula=values.get("job_sort_formula", ""),
        counts_eligible_time=values.get("eligible_time_enable") == "True",
        history=clock_seconds(values.get("job_history_duration", _HISTORY)) if remembers else 0.0,
        **_limits(values, user, groups),
    )


def _reservation(record: PbsRecord) -> ReservationRow:
    values = record.values
    return ReservationRow(
        name=record.id,
        queue=values["queue"],
        start=parse_time(values["reserve_start"]),
        end=parse_time(values["reserve_end"]),
        nodes=parse_vnodes(values.get("resv_nodes", "")),
        exclusive="excl" in values.get("Resource_List.place", ""),
        machines="exclhost" in values.get("Resource_List.place", ""),
        reported=True,
    )


def _limits(values: Mapping[str, str], user: str, groups: Collection[str] | None) -> dict[str, Any]:
    group = next(iter(groups or ()), "")
    most = _resources(values, "resources_max")
    return {
        "max_processors": min(_most(most, "ncpus"), _user(values, user, group, *_OF_PROCESSORS)),
        "max_nodes": _most(most, "nodect"),
        "max_memory": parse_size(most["mem"]) if "mem" in most else math.inf,
        "max_seconds": clock_seconds(most["walltime"]) if "walltime" in most else math.inf,
        "max_queued": _user(values, user, group, "max_queued", "queued_jobs_threshold"),
        "max_run": _user(values, user, group, "max_run", "max_user_run", "max_running"),
        "together": _together(values, user, group),
    }


def _most(values: Mapping[str, str], name: str) -> float:
    return finite(values[name]) if name in values else math.inf


_OF_PROCESSORS = ("max_run_res.ncpus", "max_queued_res.ncpus", "max_user_res.ncpus")


def _together(values: Mapping[str, str], user: str, group: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in ("max_run_res.ncpus", "max_user_res.ncpus"):
        for kind, limit in parse_limits(values.get(name, ""), user, group).items():
            found[kind] = min(float(limit), found.get(kind, math.inf))
    return found


def _user(values: Mapping[str, str], user: str, group: str, *names: str) -> float:
    given = (parse_user_limit(values[name], user, group) for name in names if name in values)
    return min((float(limit) for limit in given if limit is not None), default=math.inf)


def _resources(values: Mapping[str, str], group: str) -> dict[str, str]:
    start = f"{group}."
    return {name[len(start) :]: value for name, value in values.items() if name.startswith(start)}


def _partition(values: Mapping[str, str]) -> str:
    named = values.get("partition", "")
    return "" if named == _DEFAULT_PARTITION else named


def shuts_out(values: Mapping[str, str], user: str, groups: Collection[str] | None) -> str:
    """Why a queue takes no jobs of this user, one clause; empty where it does.

    As acl_check() in OpenPBS's src/lib/Libattr/attr_fn_acl.c: the first entry that names us decides; `+` and
    `-` alone say what holds for whom no entry names.

    Args:
        values: the attributes of the queue.
        groups: all of the user's; None: not known, and not judged.
    """
    if values.get("acl_user_enable") == "True" and not _admits(values.get("acl_users", ""), {user}):
        return f"its acl_users do not admit {user}"
    if groups is None or values.get("acl_group_enable") != "True":
        return ""
    if _admits(values.get("acl_groups", ""), groups):
        return ""
    return f"its acl_groups admit none of the groups of {user} ({', '.join(sorted(groups))})"


def submit_hosts(values: Mapping[str, str]) -> tuple[str, ...]:
    """The only machines from which a queue takes jobs; empty: any."""
    if values.get("acl_host_enable") != "True":
        return ()
    return comma_list(values.get("acl_hosts", ""))


def _admits(entries: str, names: Collection[str]) -> bool:
    admitted = False
    for entry in comma_list(entries):
        allows, name = not entry.startswith("-"), entry.lstrip("+-")
        if not name:
            admitted = allows
        elif _names(name, names, allows):
            return allows
    return admitted


def _names(entry: str, names: Collection[str], allows: bool) -> bool:
    """`user@host` means us only on some machines, which are taken to include this one where it admits."""
    name, _, host = entry.partition("@")
    return (name == "*" or name in names) and (not host or host == "*" or allows)
