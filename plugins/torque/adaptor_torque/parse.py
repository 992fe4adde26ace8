"""Torque's records to rows. Pure.

Torque prints job names, comments and variables as their owners wrote them, line breaks included, so other
users can put lines into an answer that look like attributes or whole jobs. Therefore a record that is not
what Torque prints is left out, and of our own jobs only those answers are believed that were asked for by id.
Where nothing at all is understood, that is an error.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from backends.base import SchedulerError
from backends.numbers import clock_seconds, finite, whole
from backends.observed.rows import Amounts
from backends.pbs.fields import PbsRecord, amounts_of, parse_long, parse_size, parse_time, variables
from backends.pbs.rows import WAITING, PbsChunk, PbsJob, PbsNode, PbsQueue, PbsServer

_PROPERTY = "neednodes"  # the resource under which nodes have their properties
_GPU_MODES = frozenset(
    {"default", "exclusive", "exclusive_process", "exclusive_thread", "reseterr", "shared"}
)


def parse_indices(text: str) -> int:
    """How many numbers `0-3,5` names."""
    count = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        count += whole(last or first) - whole(first) + 1
    return count


def parse_exec_host(text: str) -> dict[str, int]:
    """Processors by node: `n1/0+n1/1+n2/0` (Torque up to 4), `n1/0-1,3+n2/0` (since 5)."""
    held: Counter[str] = Counter()
    for part in text.split("+"):
        node, _, indices = part.strip().rpartition("/")
        held[node] += parse_indices(indices)
    return dict(held)


def parse_holders(text: str) -> dict[str, int]:
    """Processors by job, of a node: `0/12.srv, 1/12.srv` (up to 4), `0-3,5/12.srv,4/13.srv` (since 5)."""
    held: Counter[str] = Counter()
    indices: list[str] = []
    for word in text.replace(" ", "").split(","):
        index, slash, job = word.partition("/")
        indices.append(index)
        if slash:
            held[job] += parse_indices(",".join(indices))
            indices = []
    return dict(held)


def parse_exec_gpus(text: str) -> dict[str, int]:
    """GPUs by node: `n1-gpu/0+n1-gpu/1`; several in one as in `exec_host`."""
    held: Counter[str] = Counter()
    for part in text.split("+"):
        node, _, indices = part.strip().rpartition("/")
        held[node.removesuffix("-gpu")] += parse_indices(indices)
    return dict(held)


def parse_wanted(text: str) -> tuple[PbsChunk, ...]:
    """The parts of a node specification: `2:ppn=4+1:ppn=3:fast:gpus=1+n7` (pbs_resources(7)).

    Other words are the properties of nodes, or the mode of GPUs.
    """
    return tuple(_chunk(*part.split(":")) for part in text.split("+"))


def _chunk(first: str, *rest: str) -> PbsChunk:
    numbers = dict(word.split("=", 1) for word in (first, *rest) if "=" in word)
    named = () if first.isdecimal() or "=" in first else (("host", first),)
    wanted = ((_PROPERTY, word) for word in rest if "=" not in word and word not in _GPU_MODES)
    return PbsChunk(
        count=whole(first) if first.isdecimal() else 1,
        each=amounts_of(whole(numbers.get("ppn", "1")), 0, whole(numbers.get("gpus", "0"))),
        traits=(*named, *wanted),
    )


log = logging.getLogger(__name__)

Row = TypeVar("Row")

TAG = "ADAPTOR_TAG"
"""The variable of a job that holds our tag: names may be no longer than 15 characters (Torque 2)."""
_WHOLE_NODES = frozenset({"singlejob", "singletask"})


def parse_jobs(text: str) -> list[PbsJob]:
    """`qstat -f -1`. Raises SchedulerError: there are records, but none is a job's."""
    return understood(parse_long(text, "Job Id: "), job)


def parse_nodes(text: str) -> list[PbsNode]:
    """`pbsnodes -a`. Raises SchedulerError: there are records, but none is a node's."""
    return understood(parse_long(text, ""), node)


def parse_queues(text: str) -> list[PbsQueue]:
    """`qstat -Q -f -1`. Raises SchedulerError: there are records, but none is a queue's."""
    return understood(parse_long(text, "Queue: "), queue)


def parse_server(text: str) -> PbsServer:
    """`qstat -B -f -1`. Raises SchedulerError: it is not a server's record."""
    found = understood(parse_long(text, "Server: "), server)
    if not found:
        raise SchedulerError(f"qstat -B printed nothing of a server: {text[:200]!r}")
    return found[0]


def understood(records: Iterable[PbsRecord], make: Callable[[PbsRecord], Row]) -> list[Row]:
    """Raises SchedulerError: there are records, but nothing can be made of any."""
    rows: list[Row] = []
    broken: list[PbsRecord] = []
    for record in records:
        try:
            rows.append(make(record))
        except (KeyError, ValueError, OverflowError):
            broken.append(record)
    if broken and not rows:
        raise SchedulerError(f"PBS printed what the adaptor cannot read, first {str(broken[0])[:200]}")
    if broken:
        log.debug("%d records of PBS were left out, first %.200s", len(broken), broken[0])
    return rows


def job(record: PbsRecord) -> PbsJob:
    """Raises KeyError, ValueError: not a job of Torque."""
    values = record.values
    held = _held(values)
    nodes, processors = _wanted(values)
    status = values.get("exit_status")
    waits = values["job_state"] in WAITING
    walltime = values.get("Resource_List.walltime")
    # With the memory of each. `procs` and `procct` are processors on any nodes.
    memory = _memory_of_processor(values, processors)
    asked = parse_wanted(values["Resource_List.nodes"]) if "Resource_List.nodes" in values else ()
    if sum(chunk.count * chunk.each.processors for chunk in asked) < processors:
        asked = (PbsChunk(count=processors, each=Amounts(1)),)
    access = values.get("Resource_List.naccesspolicy", "").lower()
    return PbsJob(
        id=record.id,
        tag=dict(variables(values.get("Variable_List", ""))).get(TAG, ""),
        owner=values["Job_Owner"].partition("@")[0],
        state=values["job_state"],
        queue=values["queue"],
        processors=sum(each.processors for each in held.values()) or processors,
        node_count=len(held) or nodes,
        exclusive=(values.get("node_exclusive", "").lower() == "true" or access in _WHOLE_NODES),
        chunks=tuple(
            replace(chunk, each=replace(chunk.each, memory=chunk.each.processors * memory)) for chunk in asked
        ),
        limit=math.inf if walltime is None else clock_seconds(walltime),
        used=_maybe(clock_seconds, values.get("resources_used.walltime")),
        submitted=_maybe(parse_time, values.get("etime", values.get("qtime"))),
        start=None if waits else _maybe(parse_time, values.get("start_time")),
        end=_maybe(parse_time, values.get("comp_time")) if values["job_state"] == "C" else None,
        hosts=() if waits else tuple(held),
        nodes={} if waits else held,
        priority=whole(values.get("Priority", "0")),
        exit_status=None if status is None else whole(status),
        comment=values.get("comment", ""),
    )


def node(record: PbsRecord) -> PbsNode:
    """Raises KeyError, ValueError: not a node of Torque."""
    values = record.values
    held = parse_holders(values["jobs"]) if values.get("jobs") else {}
    # Bytes, out of a node's `status`: `…,physmem=3961760kb,…`.
    status = values.get("status", "")
    found = re.search(r"(?:^|,)physmem=([^,]*)", status)
    return PbsNode(
        name=record.id,
        host=record.id,
        states=frozenset(word.strip().lower() for word in values["state"].split(",")),
        processors=whole(values["np"]),
        assigned=Amounts(sum(held.values())),
        memory=(parse_size(found[1]) if found else None),
        gpus=whole(values.get("gpus", "0")),
        jobs=tuple(held),
        traits={
            "neednodes": frozenset(re.split(r"[,\s]+", values.get("properties", ""))),
            "host": frozenset({record.id}),
        },
    )


def queue(record: PbsRecord) -> PbsQueue:
    """Raises KeyError, ValueError: not a queue of Torque."""
    values = record.values
    routes = values.get("route_destinations", "").replace(" ", "")
    needs = values.get("resources_default.neednodes")
    return PbsQueue(
        name=record.id,
        routes_to=tuple(route.partition("@")[0] for route in routes.split(",") if route),
        enabled=values["enabled"].lower() != "false",
        started=values["started"].lower() != "false",
        priority=whole(values.get("Priority", "0")),
        wants={} if needs is None else {"neednodes": needs},
        **_limits(values),
    )


def server(record: PbsRecord) -> PbsServer:
    """Raises ValueError: not a server of Torque."""
    values = record.values
    return PbsServer(
        name=record.id,
        version=values.get("pbs_version", "unknown"),
        default_queue=values.get("default_queue"),
        scheduling=values.get("scheduling", "True").lower() != "false",
        shows_all_jobs=values.get("query_other_jobs", "True").lower() != "false",
        history=finite(values.get("keep_completed", "0")),
        **_limits(values),
    )


def _limits(values: Mapping[str, str]) -> dict[str, Any]:
    """That a queue and the server may set (pbs_queue_attributes(7B), pbs_server_attributes(7B))."""
    longest = values.get("resources_max.walltime")
    return {
        "max_seconds": math.inf if longest is None else clock_seconds(longest),
        "max_processors": _least(values, "resources_max.procct", "resources_max.ncpus"),
        "max_nodes": _least(values, "resources_max.nodect", "resources_max.nodes"),
        "max_queued": _least(values, "max_user_queuable", "max_queuable"),
        "max_run": _least(values, "max_user_run", "max_running"),
    }


def _least(values: Mapping[str, str], *names: str) -> float:
    """Of those that are set; `2:ppn=8` counts for 2."""
    numbers = (finite(values[name].partition(":")[0]) for name in names if name in values)
    return min(numbers, default=math.inf)


def _held(values: Mapping[str, str]) -> dict[str, Amounts]:
    """By node. Torque does not say how a job's memory lies: as its processors do, as schedulers count it."""
    processors = parse_exec_host(values["exec_host"]) if "exec_host" in values else {}
    gpus = parse_exec_gpus(values["exec_gpus"]) if "exec_gpus" in values else {}
    each = _memory_of_processor(values, sum(processors.values()))
    return {node: amounts_of(count, count * each, gpus.get(node, 0)) for node, count in processors.items()}


def _memory_of_processor(values: Mapping[str, str], processors: int) -> int:
    """Bytes; 0 where the job asks for none."""
    if "Resource_List.pmem" in values:
        return parse_size(values["Resource_List.pmem"])
    return parse_size(values.get("Resource_List.mem", "0")) // max(1, processors)


def _wanted(values: Mapping[str, str]) -> tuple[int, int]:
    """Nodes and processors that a job asks for."""
    listed = parse_wanted(values.get("Resource_List.nodes", "1"))
    processors = sum(chunk.count * chunk.each.processors for chunk in listed)
    named = [values.get(f"Resource_List.{name}") for name in ("procct", "procs", "ncpus")]
    counts = [whole(count) for count in named if count is not None]
    nodect = values.get("Resource_List.nodect")
    nodes = sum(chunk.count for chunk in listed) if nodect is None else whole(nodect)
    return nodes, max([processors, *counts])


def _maybe(parse: Callable[[str], float], text: str | None) -> float | None:
    return None if text is None else parse(text)
