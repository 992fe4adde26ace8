"""Jobs as OpenPBS prints them. Pure."""

from __future__ import annotations

import functools
import logging
import math
import re
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from adaptor.model import Request
from backends.arrays import tag_of
from backends.numbers import clock_seconds, whole
from backends.observed.remembered import Remembered, lines_of
from backends.pbs.fields import (
    PbsRecord,
    dsv_record,
    element_index,
    lasting,
    parse_amounts,
    parse_hosts,
    parse_time,
    parse_vnodes,
    record_understood,
    variables,
)
from backends.pbs.rows import WAITING, PbsChunk, PbsJob

AMOUNT = re.compile(r"\d+(\.\d+)?([kmgtp]?[bw])?", re.IGNORECASE)
"""The value of a resource that is used up; any other names what a node is."""
GPU_TYPES = ("gpu_type", "gpu_model", "gputype")
"""Resources by which sites name the type of a node's GPUs, for PBS has none of its own; the first counts."""
_CHUNK = re.compile(r"""(?:[^+"']|"[^"]*"|'[^']*')+""")
_WORD = re.compile(r"""(?:[^:"']|"[^"]*"|'[^']*')+""")


@functools.lru_cache(maxsize=512)
def parse_select(text: str) -> tuple[PbsChunk, ...]:
    """The chunks of `2:ncpus=3:mem=1gb:host=n1+ncpus=4`; without processors a chunk has one, as PBS sets it.

    Raises ValueError: a number is no number.
    """
    return tuple(_chunk(_WORD.findall(part)) for part in _CHUNK.findall(text))


def _chunk(words: list[str]) -> PbsChunk:
    first, *rest = words or [""]
    count = whole(first) if first.isdecimal() else 1
    resources = rest if first.isdecimal() else [first, *rest]
    each = parse_amounts(resources)
    if not any(word.startswith("ncpus=") for word in resources):
        each = msgspec.structs.replace(each, processors=1)
    return PbsChunk(count=count, each=each, traits=_traits(resources))


def _traits(resources: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = (word.partition("=")[::2] for word in resources if "=" in word)
    plain = ((name, value.strip("\"'")) for name, value in pairs)
    return tuple(
        sorted((name, value) for name, value in plain if name in GPU_TYPES or not AMOUNT.fullmatch(value))
    )


def placing(place: str) -> Literal["free", "pack", "scatter"]:
    """Placing by `free`, `pack:excl`, `scatter`, `vscatter:shared`, …; vnodes of one machine are no
    machines."""
    words = place.split(":")
    if "pack" in words:
        return "pack"
    return "scatter" if "scatter" in words else "free"


def gpu_type(resources: Mapping[str, str]) -> str:
    """Type of a node's GPUs; of several types, the first."""
    named = next((resources[name] for name in GPU_TYPES if name in resources), "")
    return named.split(",")[0].strip("\"' ")


log = logging.getLogger(__name__)

TAG = "ADAPTOR_TAG"  # the variable of a job of ours that holds its tag
_WAITING = re.compile(r"Queued:(\d+)")
_ENDED = frozenset("FX")


def own_job(record: PbsRecord) -> PbsJob:
    """A job by its record. Raises SchedulerError: the record is not one of a job."""
    return record_understood("job", record, _job)


def own_element(record: PbsRecord) -> PbsJob:
    """A job of an array, with its own pilot's tag. Raises SchedulerError: the record is not one of a job."""
    job = own_job(record)
    ended_unrecorded = job.state in _ENDED and not job.hosts
    return msgspec.structs.replace(
        job,
        tag=tag_of(job.tag, element_index(record.id)),
        start=None if ended_unrecorded else job.start,
    )


def has_tag(record: PbsRecord) -> bool:
    """Whether the job was submitted by the adaptor."""
    return bool(_tag(record))


def everyones_jobs(records: Iterable[PbsRecord]) -> list[PbsJob]:
    """Jobs of anyone; one that we do not understand is left out (and counts as hidden if it runs)."""
    return [job for record in records if (job := _anyones_job(record)) is not None]


def queued_jobs(printed: bytes, head: str, known: Remembered[PbsJob | None]) -> list[PbsJob]:
    """Jobs, from `qstat -f -F dsv`. `used` is read only of jobs without a start.

    Args:
        head: the text before each id.
        known: jobs of the last answer.
    """
    lines = ([*map(lasting, block)] for block in lines_of(printed))
    found = known.of(lines, lambda line: _anyones_job(dsv_record(line, head)))
    return [job for job in found if job is not None]


def _anyones_job(record: PbsRecord) -> PbsJob | None:
    try:
        return _job(record)
    except (ValueError, KeyError) as error:
        log.warning("job %s is left out: %s", record.id, error)
        return None


def _job(record: PbsRecord) -> PbsJob:
    """A job by its record. Raises ValueError, KeyError: a value is not what PBS prints."""
    values = record.values
    state = values["job_state"]
    return PbsJob(
        id=record.id,
        tag=_tag(record) or values.get("Job_Name", ""),
        owner=values.get("Job_Owner", "").partition("@")[0],
        state=state,
        substate=_int(values, "substate"),
        queue=values.get("queue", ""),
        processors=_int(values, "Resource_List.ncpus") or 0,
        node_count=_int(values, "Resource_List.nodect") or 1,
        exclusive="excl" in values.get("Resource_List.place", ""),
        machines="exclhost" in values.get("Resource_List.place", ""),
        # With the defaults of the queue where we may see it.
        chunks=_chunks(values.get("schedselect", values.get("Resource_List.select", ""))),
        placing=placing(values.get("Resource_List.place", "")),
        limit=_limit(values, state),
        request=_request(values),
        used=_seconds(values, "resources_used.walltime"),
        submitted=_moment(values, "etime") or _moment(values, "qtime"),
        start=None if state in WAITING else _moment(values, "stime"),
        end=_end(values) if state in _ENDED else None,
        planned_start=_moment(values, "estimated.start_time") if state in ("Q", "B") else None,
        hosts=parse_hosts(values.get("exec_host", "")),
        nodes=parse_vnodes(values.get("exec_vnode", "")),
        planned_nodes=parse_vnodes(values.get("estimated.exec_vnode", "")),
        elements=_elements(values),
        exit_status=_int(values, "Exit_status"),
        rerunnable=values.get("Rerunable") == "True",
        runs=_int(values, "run_count") or 0,
        comment=values.get("comment", ""),
    )


def _tag(record: PbsRecord) -> str:
    text = record.values.get("Variable_List", "")
    return dict(variables(text)).get(TAG, "") if TAG in text else ""


def _chunks(select: str) -> tuple[PbsChunk, ...]:
    """Chunks of a request; empty if it is not understood: what the job holds counts anyway."""
    try:
        return parse_select(select)
    except ValueError as error:
        log.debug("the request %.200r is not understood: %s", select, error)
        return ()


def _limit(values: Mapping[str, str], state: str) -> float:
    """A shrink-to-fit job has its walltime from its start on; before, the most it may become counts."""
    walltime = _seconds(values, "Resource_List.walltime")
    longest = _seconds(values, "Resource_List.max_walltime")
    if state in WAITING and longest is not None:
        return longest
    return math.inf if walltime is None else walltime


def _request(values: Mapping[str, str]) -> Request | None:
    processors = _int(values, "Resource_List.ncpus")
    longest = _seconds(values, "Resource_List.max_walltime")
    seconds = _seconds(values, "Resource_List.walltime") if longest is None else longest
    if not processors or seconds is None or math.isinf(seconds):
        return None
    return Request(processors, math.floor(seconds))


def _end(values: Mapping[str, str]) -> float | None:
    """Epoch seconds of the end that the node reported; for a job that never ran, of its move into the
    history."""
    return _moment(values, "obittime") or _moment(values, "history_timestamp")


def _elements(values: Mapping[str, str]) -> int:
    counts = _WAITING.search(values.get("array_state_count", ""))
    if counts is None:
        return 1
    at_once = _int(values, "max_run_subjobs")
    return whole(counts[1]) if at_once is None else min(whole(counts[1]), at_once)


def _int(values: Mapping[str, str], name: str) -> int | None:
    return whole(values[name]) if name in values else None


def _seconds(values: Mapping[str, str], name: str) -> float | None:
    return clock_seconds(values[name]) if name in values else None


def _moment(values: Mapping[str, str], name: str) -> float | None:
    text = values.get(name, "UNKNOWN")
    return None if text == "UNKNOWN" else parse_time(text)
