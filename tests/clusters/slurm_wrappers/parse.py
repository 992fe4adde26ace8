"""What Slurm's wrappers print in Torque's words, to rows. Pure.

They say of a job's times: `mtime` is its start, of a waiting one as planned; `ctime` its end, of a
running one by its time limit. A priority of 0 is Slurm's way to hold a job.
"""

from __future__ import annotations

import math
import re

from adaptor_torque.parse import understood
from backends.numbers import clock_seconds
from backends.observed.rows import Amounts
from backends.pbs.fields import PbsRecord, parse_long, parse_time
from backends.pbs.rows import PbsJob, PbsNode, PbsQueue
from tests.clusters.slurm_wrappers.text import as_torque

_UNLIMITED = float((2**32 - 2) * 60)
"""Slurm's words for "no limit", 2³² - 1 and 2³² - 2 minutes, are printed as if they were numbers."""
_NAME_COLUMN = 16
_OUT = re.compile(r"down|drain|fail|future|power(ing)?_down|reboot|unknown|blocked|inval|perfctrs|.*[*!%@^]")
"""The states (and flags) of sinfo(1) in which a node takes no new work."""


def parse_jobs(text: str) -> list[PbsJob]:
    """`qstat -f`. Raises SchedulerError: there are records, but none is a job's."""
    return understood(parse_long(as_torque(text), "Job Id: "), _job)


def parse_nodes(text: str) -> list[PbsNode]:
    """`pbsnodes -a`. Raises SchedulerError: there are records, but none is a node's."""
    return understood(parse_long(text, ""), _node)


def parse_queues(text: str, limits: str) -> list[PbsQueue]:
    """`qstat -Q -f` and `qstat -q`. Raises SchedulerError: there are records, but none is a queue's."""
    bounds = {line[:_NAME_COLUMN].strip(): line[_NAME_COLUMN:].split() for line in limits.splitlines()}

    def queue(record: PbsRecord) -> PbsQueue:
        columns = bounds.get(record.id[:_NAME_COLUMN], [])
        # Memory, CPU time, walltime, nodes, running, queued, an empty limit, and two letters.
        walltime, nodes = columns[2:4] if len(columns) == 9 else ("--", "--")
        return PbsQueue(
            name=record.id,
            enabled=record.values["enabled"] == "yes",
            started=record.values["started"] == "yes",
            max_seconds=math.inf if walltime == "--" else clock_seconds(walltime),
            max_nodes=math.inf if nodes == "--" else float(nodes),
        )

    return understood(parse_long(as_torque(text), "Queue: "), queue)


def parse_held_counts(text: str) -> dict[str, int]:
    """Processors by node: `n1/4+n2/2` counts them, where Torque names them."""
    pairs = (part.strip().rpartition("/") for part in text.split("+"))
    return {node: int(count) for node, _, count in pairs}


def _job(record: PbsRecord) -> PbsJob:
    """Raises KeyError, ValueError: not a job."""
    values = record.values
    held = parse_held_counts(values["exec_host"]) if "exec_host" in values else {}
    state = _state(values["job_state"], int(values["Priority"]))
    limit = clock_seconds(values["Resource_List.walltime"])
    begins = parse_time(values["mtime"]) if "mtime" in values else None
    return PbsJob(
        id=record.id,
        tag=values.get("Job_Name", ""),
        owner=values["Job_Owner"].partition("@")[0],
        state=state,
        queue=values["queue"],
        processors=int(values["Resource_List.ncpus"]),
        node_count=int(values["Resource_List.nodect"]),
        limit=math.inf if limit >= _UNLIMITED else limit,
        submitted=parse_time(values["qtime"]),
        start=begins if held else None,
        end=parse_time(values["ctime"]) if state == "C" and "ctime" in values else None,
        planned_start=begins if state == "Q" else None,
        hosts=tuple(held),
        nodes={node: Amounts(count) for node, count in held.items()},
        priority=int(values["Priority"]),
    )


def _state(letter: str, priority: int) -> str:
    if letter == "U":  # out of memory, or past its deadline: the wrapper has no letter for them
        return "C"
    return "H" if letter == "Q" and priority == 0 else letter


def _node(record: PbsRecord) -> PbsNode:
    """Raises KeyError, ValueError: not a node."""
    values = record.values
    said = dict(word.partition("=")[::2] for word in values.get("status", "").split(","))
    state = said.get("slurmstate", values["state"])
    size = int(values["np"])
    taken = state.startswith("allocated")
    return PbsNode(
        name=record.id,
        host=record.id,
        states=frozenset({"offline" if _OUT.match(state) else "job-exclusive" if taken else "free"}),
        processors=size,
        assigned=Amounts(size if taken else 0),
    )
