"""What `scontrol show job` tells beyond squeue: what a job holds of each node, or wants. Pure.

A job's name, command and comment may hold anything, also what looks like an answer of scontrol. What a job
says of itself is therefore only believed where it agrees with squeue (`backends.slurm.placing.holding`),
and two lines about the same job are both left out.
"""

from __future__ import annotations

import functools
import re

import msgspec

from adaptor.resources import Gpus, Part
from backends.base import SchedulerError
from backends.numbers import whole
from backends.slurm.fields import expand, parse_count
from backends.slurm.placing.gres import gpus_of, gres_counts, parse_gpus


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a waiting job asks for. Memory in bytes; 0: it does not say."""

    tasks: int
    processors_per_task: int
    nodes: int
    """At least."""
    fixed: bool
    """Whether exactly so many."""
    memory_per_processor: int = 0
    memory_per_node: int = 0
    memory_per_gpu: int = 0
    gpus_per_job: Gpus = ()
    gpus_per_node: Gpus = ()
    gpus_per_task: Gpus = ()
    features: str = ""
    required: str = ""
    """A list of hosts that must all be among its nodes."""
    excluded: str = ""


class JobDetail(msgspec.Struct, frozen=True, kw_only=True):
    parts: tuple[Part, ...] = ()
    """Of a running or suspended job."""
    wish: Wish | None = None
    """Of a waiting job."""
    licenses: str = ""
    user: str = ""
    """By name; empty: not told."""


_NUMBER = r"[0-9]{1,18}"
_HEAD = re.compile(
    rf"JobId=({_NUMBER}) "
    rf"(?:ArrayJobId=({_NUMBER}) ArrayTaskId=(\S+) (?:ArrayTaskThrottle=\S+ )?)?"
    rf"(?:HetJobId=({_NUMBER}) HetJobOffset=({_NUMBER}) (?:HetJobIdSet=\S+ )?)?JobName="
)
_STATE = re.compile(r" JobState=([A-Z_]+) ")
_PART = re.compile(r" {2}Nodes=(\S+) CPU_IDs=(\S*) Mem=(\d{1,15}) GRES=(\S*)")
_KEYS = (
    *("NumNodes", "NumCPUs", "NumTasks", "CPUs/Task", "MinMemoryCPU", "MinMemoryNode", "MemPerTres"),
    *("TresPerJob", "TresPerNode", "TresPerTask", "Features", "ReqNodeList", "ExcNodeList"),
)
_USER = re.compile(r" UserId=([^ ()]{1,100})\(")
_LICENSES = re.compile(r" Licenses=(?!\(null\))(\S+)")
_VALUE = re.compile(rf" ({'|'.join(_KEYS)})=(\S*)")
_HOLDING = frozenset(
    {"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
)


def parse_job_details(text: str) -> dict[str, JobDetail]:
    """`scontrol show job -a -d -o`, by the ids that `key_of` makes of those of squeue.

    A job that cannot be read is left out, as is one with two lines.

    Raises:
        SchedulerError: there is text, and none of it is what that command prints.
    """
    found: dict[str, JobDetail | None] = {}
    lines = text.split("\n")
    for line in lines:
        head = _HEAD.match(line)
        if head is None:
            continue
        key = _key(head)
        found[key] = None if key in found and not key.endswith("[") else _detail(line[head.end() :])
    if not found and text.strip() and "No jobs" not in text and not text.startswith("JobId="):
        raise SchedulerError(
            f"scontrol show job printed lines that the adaptor cannot read: {lines[0][:200]!r}"
        )
    return {key: detail for key, detail in found.items() if detail is not None}


def key_of(id: str) -> str:
    """Of squeue's id: `123`, `12_3`, `12+1`, and `12_[` for what waits of an array."""
    return f"{id.partition('[')[0]}[" if "[" in id else id


def _key(head: re.Match[str]) -> str:
    if head[4]:
        return f"{head[4]}+{head[5]}"
    if head[2]:
        return f"{head[2]}_{head[3]}" if head[3].isdigit() else f"{head[2]}_["
    return head[1]


def _detail(line: str) -> JobDetail | None:
    state = _STATE.search(line)
    if state is None:
        return None
    found = _USER.search(line)
    user = found[1] if found else ""
    try:
        if state[1] in _HOLDING:
            licenses = _LICENSES.search(line)
            return JobDetail(parts=_parts(line), licenses=licenses[1] if licenses else "", user=user)
        if state[1] in ("PENDING", "REQUEUED"):
            return JobDetail(wish=_wish(tuple(_VALUE.findall(line))), user=user)
    except (ValueError, KeyError):
        return None
    return None


def _parts(line: str) -> tuple[Part, ...]:
    return tuple(
        Part(node=node, processors=_ids(ids), memory=whole(memory) * 2**20, gpus=parse_gpus(gres))
        for names, ids, memory, gres in _PART.findall(line)
        for node in expand(names)
    )


def _ids(text: str) -> int:
    """How many `0-3,8` are."""
    count = 0
    for item in text.split(","):
        first, _, last = item.partition("-")
        count += whole(last or first) - whole(first) + 1
    return count


@functools.lru_cache(maxsize=1000)
def _wish(pairs: tuple[tuple[str, str], ...]) -> Wish:
    """Remembered, since many jobs of a queue are alike."""
    values: dict[str, str] = {}
    for key, value in pairs:
        values.setdefault(key, "" if value == "(null)" else value)
    least, _, most = values["NumNodes"].partition("-")
    processors, each = parse_count(values["NumCPUs"]), _count(values.get("CPUs/Task", ""), 1)
    return Wish(
        tasks=_count(values.get("NumTasks", ""), max(1, processors // each)),
        processors_per_task=each,
        nodes=parse_count(least),
        fixed=least == most,
        memory_per_processor=_size(values.get("MinMemoryCPU", "0")),
        memory_per_node=_size(values.get("MinMemoryNode", "0")),
        memory_per_gpu=_of_gpu(values.get("MemPerTres", "")),
        gpus_per_job=parse_gpus(values.get("TresPerJob", "")),
        gpus_per_node=parse_gpus(values.get("TresPerNode", "")),
        gpus_per_task=parse_gpus(values.get("TresPerTask", "")),
        features=values.get("Features", ""),
        required=values.get("ReqNodeList", ""),
        excluded=values.get("ExcNodeList", ""),
    )


def _count(text: str, otherwise: int) -> int:
    return max(1, parse_count(text)) if text not in ("", "N/A") else otherwise


def _size(text: str) -> int:
    """Bytes of `3000M`, `2.5G`, `1T` or, without a unit, MiB."""
    return parse_count(text) * (1 if text[-1:] in "KMGT" else 2**20) if text else 0


def _of_gpu(text: str) -> int:
    """MiB in `gres:gpu:300`."""
    return sum(count for _, count in gpus_of(gres_counts(text))) * 2**20
