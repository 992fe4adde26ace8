"""What `scontrol show job` tells beyond squeue: what a job holds of each node, or wants. Pure.

A job's name, account, comment, command and, since 26.05, its `SubmitLine` may hold anything, line breaks and
whole records of other jobs included. So only records of jobs that squeue shows are read. They begin with the
name and the account that squeue shows, and are read up to `Network=`: no text of a user stands in between,
and squeue tells what stands behind. If a job seems to have two records, one is text of a user: the job is
disputed, and asked for alone. Recorded from 22.05, 24.11 and 26.05.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

import msgspec

from adaptor.resources import Gpus, Part
from backends.numbers import not_understood, whole
from backends.slurm.fields import expand, parse_count
from backends.slurm.placing.exclusivity import NOTHING, of_job
from backends.slurm.placing.gres import gpus_of, gres_counts, parse_gpus
from backends.slurm.rows import QueueRow


class JobWish(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a waiting job asks for. Memory in bytes; 0: it does not say."""

    tasks: int
    processors_per_task: int
    nodes: int
    """At least."""
    fixed: bool
    """Whether exactly this number."""
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


class JobDetail(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    parts: tuple[Part, ...] = ()
    """Of a running or suspended job."""
    wish: JobWish | None = None
    """Of a waiting job."""
    exclusive: str = NOTHING
    """What it does not share with others (`backends.slurm.rows`)."""
    licenses: str = ""
    user: str = ""
    """By name; empty: not told."""


class JobDetails(msgspec.Struct, frozen=True):
    found: dict[str, JobDetail]
    """By the jobs' ids, as squeue names them."""
    disputed: tuple[str, ...] = ()
    """Jobs with several records that differ: some of them are text of users."""
    unread: tuple[str, ...] = ()
    """Jobs whose record has another form."""


_NUMBER = r"[0-9]{1,18}"
_HEAD = re.compile(
    rf"^JobId=({_NUMBER}) "
    rf"(?:ArrayJobId=({_NUMBER}) ArrayTaskId=(\S+) (?:ArrayTaskThrottle=\S+ )?)?"
    rf"(?:HetJobId=({_NUMBER}) HetJobOffset=({_NUMBER}) (?:HetJobIdSet=\S+ )?)?JobName=",
    re.MULTILINE,
)
_NAME_TO_ACCOUNT = re.compile(
    r" (?:SLUID=\S+ )?(?:HetJobIdSet=\S+ )?UserId=([^()\n]{1,100})\([0-9]+\) GroupId=[^()\n]*\([0-9]+\) "
    r"MCS_label=\S* Priority=[0-9]+ Nice=-?[0-9]+ Account="
)
_ACCOUNT_TO_WCKEY = re.compile(r" QOS=\S*( WCKey=)?")
_STATE = re.compile(r" JobState=([A-Z_]+) ")
_WISHED = (
    *("NumNodes", "NumCPUs", "NumTasks", "CPUs/Task", "MinMemoryCPU", "MinMemoryNode"),
    *("Features", "ReqNodeList", "ExcNodeList"),
)
_VALUE = re.compile(rf" ({'|'.join(_WISHED)}|OverSubscribe|Exclusive|Licenses)=(\S*)")
_FIRST_READ = " ReqNodeList="  # of the fields of `_VALUE` and of the parts, the first
_BEHIND = " Network="
_TIMES = 2000  # characters between the state and `_FIRST_READ`, most often; beyond, all of a record is read
_PART = re.compile(r" Nodes=(\S+) CPU_IDs=(\S*) Mem=([0-9]{1,15}) GRES=(\S*)")
_HOLDING = frozenset(
    {"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
)
_WAITING = frozenset({"PENDING", "REQUEUED", "EXPEDITING"})


class _Record(msgspec.Struct, frozen=True, gc=False):
    """What a record of a job says."""

    row: QueueRow
    head: str
    """How it begins, up to the state."""
    fields: str
    """What is read of the rest."""
    detail: JobDetail | None


class _Run(msgspec.Struct, frozen=True):
    """Records of waiting jobs in a row: from look to look most are the same, letter by letter."""

    hash: int
    """Of their text."""
    length: int
    records: dict[str, _Record]
    """By the words with which they begin."""

    def stays(self, text: str, begin: int, rows: Mapping[str, QueueRow]) -> bool:
        """Whether the same text stands at `begin`, of jobs that are as they were."""
        if any(rows.get(record.row.id) is not record.row for record in self.records.values()):
            return False
        return hash(text[begin : begin + self.length]) == self.hash

    @property
    def found(self) -> dict[str, JobDetail]:
        return {record.row.id: record.detail for record in self.records.values() if record.detail is not None}


_RUN = 50  # records of a run at most: some 60,000 characters


class JobRecords:
    """Reads `scontrol show job -a -d -o`. A record that is as it was at the last look is only compared."""

    def __init__(self) -> None:
        self._last: dict[str, _Record] = {}  # by the word with which the record begins
        self._runs: dict[str, _Run] = {}  # by the word with which the first record begins

    def read(self, text: str, rows: Mapping[str, QueueRow]) -> JobDetails:
        """Of the jobs that squeue shows: `rows`, by their ids.

        Raises:
            SchedulerError: there is text, and it does not begin as what that command prints.
        """
        if not text.startswith("JobId=") and text.strip() and "No jobs" not in text:
            raise not_understood("scontrol show job", text.strip())
        found: dict[str, JobDetail] = {}
        disputed: set[str] = set()
        unread: set[str] = set()
        last, self._last = self._last, {}
        runs, self._runs = self._runs, {}
        start = begin = 0 if text.startswith("JobId=") else _next(text, 0)
        some: dict[str, _Record] = {}  # those from `start` on that become a run
        while begin >= 0:
            word = text[begin : text.find(" ", begin)]
            run = runs.get(word)
            if run is not None and run.stays(text, begin, rows) and found.keys().isdisjoint(run.found):
                self._keep(text[start:begin], some)
                self._last |= run.records
                self._runs[word] = run
                found |= run.found
                start = begin = _next(text, begin + run.length - 1)
                some = {}
                continue
            id, record, end = _known_or_read(last.get(word), text, begin, rows)
            after = _next(text, end)
            if record is not None:
                self._last[word] = record
            detail = record.detail if record is not None else None
            joins = detail is not None and detail.wish is not None and word not in some and id not in found
            if joins and record is not None:
                some[word] = record
            if not joins or len(some) == _RUN or after < 0:
                stop = begin if not joins else after if after >= 0 else len(text)
                self._keep(text[start:stop], some)
                start, some = after, {}
            begin = after
            if detail is None:
                unread |= {id} - {""}
            elif found.setdefault(id, detail) is not detail and found[id] != detail:
                disputed.add(id)
        for id in disputed:
            del found[id]
        return JobDetails(found, tuple(sorted(disputed)), tuple(sorted(unread - disputed - found.keys())))

    def _keep(self, text: str, run: dict[str, _Record]) -> None:
        if run:
            self._runs[next(iter(run))] = _Run(hash(text), len(text), run)


def _next(text: str, start: int) -> int:
    """Where the next line begins that may be the first of a record; -1: there is none."""
    end = text.find("\n", start)
    while end >= 0 and not text.startswith("JobId=", end + 1):
        end = text.find("\n", end + 1)
    return end + 1 or -1


def parse_only_job(text: str, row: QueueRow) -> JobDetail | None:
    """`scontrol show job -a -d -o ID` of this very job: the record with which the answer begins."""
    record = _record(text, 0, {row.id: row})[1]
    return record.detail if record is not None else None


def _known_or_read(
    known: _Record | None, text: str, begin: int, rows: Mapping[str, QueueRow]
) -> tuple[str, _Record | None, int]:
    """As `_record`; `known`: what stood at the last look where the same word begins a record."""
    if known is not None and rows.get(known.row.id) is known.row:
        end = _end_of(known, text, begin)
        if end >= 0:
            return known.row.id, known, end
    return _record(text, begin, rows)


def _end_of(record: _Record, text: str, begin: int) -> int:
    """Where this record ends, which begins at `begin`; -1: there stands another one."""
    if not text.startswith(record.head, begin):
        return -1
    times = begin + len(record.head)
    fields = text.find(_FIRST_READ, times, times + _TIMES)
    return fields + len(record.fields) if text.startswith(record.fields, fields) else -1


def _record(text: str, begin: int, rows: Mapping[str, QueueRow]) -> tuple[str, _Record | None, int]:
    """The id of the job, what its record says, and where it was read to.

    The id is empty where no job of `rows` has such a record; None: it has another form.
    """
    head = _HEAD.match(text, begin)
    row = rows.get(_id(head)) if head is not None else None
    name_end = _past(text, head.end(), row.name) if head is not None and row is not None else None
    if head is None or row is None or name_end is None:
        return "", None, begin if head is None else head.end()
    state = _state_of(text, name_end, row)
    fields, end = _fields(text, state.end) if state is not None else ("", -1)
    if state is None or end < 0:
        return row.id, None, name_end
    gpus = (row.gpus_per_job, row.gpus_per_node, row.gpus_per_task, row.memory_per_gpu)
    told = (state.word, fields, state.user, *gpus)
    fields, detail = _alike(*told) if state.word in _WAITING else (fields, _detail(*told))
    return row.id, _Record(row, text[begin : state.end], fields, detail), end


def _id(head: re.Match[str]) -> str:
    id, array, element, het, offset = head.groups()
    if het:
        return f"{het}+{offset}"
    if array:
        return f"{array}_{element}" if element.isdigit() else f"{array}_[{element}]"
    return str(id)


def _past(text: str, start: int, value: str) -> int | None:
    """Where this value ends that begins at `start`; None: another one begins there."""
    for spelling in ("(null)", "") if value in ("(null)", "") else (value,):
        if text.startswith(spelling, start):
            return start + len(spelling)
    return None


class _State(msgspec.Struct, frozen=True, gc=False):
    word: str
    user: str
    end: int
    """Where it ends."""


def _state_of(text: str, start: int, row: QueueRow) -> _State | None:
    """Of a record in which the job's name ends at `start`; None: it has another form."""
    owner = _NAME_TO_ACCOUNT.match(text, start)
    account = _past(text, owner.end(), row.account) if owner is not None else None
    qos = _ACCOUNT_TO_WCKEY.match(text, account) if account is not None else None
    if owner is None or qos is None:
        return None
    begin = _past(text, qos.end(), row.wckey) if qos[1] else qos.end()
    state = _STATE.match(text, begin) if begin is not None else None
    return None if state is None else _State(state[1], owner[1], state.end())


def _fields(text: str, start: int) -> tuple[str, int]:
    """What is read behind the state, and where it ends; -1: the record has another form.

    Between the two stand the times, which change from look to look.
    """
    line_end = text.find("\n", start)
    end = text.find(_BEHIND, start, len(text) if line_end < 0 else line_end)
    begin = text.find(_FIRST_READ, start, end)
    return text[begin if begin >= 0 else start - 1 : end + len(_BEHIND)], end


@functools.lru_cache(maxsize=4000)
def _alike(state: str, fields: str, user: str, *gpus: str) -> tuple[str, JobDetail | None]:
    """Many waiting jobs are alike, and have the same fields and detail."""
    return fields, _detail(state, fields, user, *gpus)


def _detail(state: str, fields: str, user: str, *gpus: str) -> JobDetail | None:
    try:
        parts = _parts(fields) if state in _HOLDING else ()
        # Behind the parts stands what is read of a job that has some.
        values = _values(fields[max(0, fields.find(" MinCPUsNode=")) :] if parts else fields)
        if state == "RUNNING" and not parts:
            return None
        return JobDetail(
            parts=parts,
            wish=_wish(values, gpus) if state in _WAITING else None,
            exclusive=of_job(values),
            licenses=values.get("Licenses", "") if state in _HOLDING else "",
            user=user,
        )
    except (ValueError, KeyError):
        return None


@functools.lru_cache(maxsize=1000)
def _values(fields: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for key, value in _VALUE.findall(fields):
        values.setdefault(key, "" if value == "(null)" else value)
    return values


def _parts(fields: str) -> tuple[Part, ...]:
    return tuple(
        Part(node=node, processors=_ids(ids), memory=whole(memory) * 2**20, gpus=parse_gpus(gres))
        for names, ids, memory, gres in _PART.findall(fields)
        for node in expand(names)
    )


def _ids(text: str) -> int:
    """How many `0-3,8` are."""
    count = 0
    for item in text.split(","):
        first, _, last = item.partition("-")
        count += whole(last or first) - whole(first) + 1
    return count


def _wish(values: Mapping[str, str], gpus: tuple[str, ...]) -> JobWish:
    return _made(tuple(values.get(key, "") for key in _WISHED), gpus)


@functools.lru_cache(maxsize=1000)
def _made(told: tuple[str, ...], gpus: tuple[str, ...]) -> JobWish:
    """Remembered, since many jobs of a queue are alike."""
    numbers, cpus, tasks, per_task, memory_per_cpu, memory_per_node, features, required, excluded = told
    per_job, per_node, per_gpu_task, memory_per_gpu = gpus
    least, _, most = numbers.partition("-")
    processors, each = parse_count(cpus), _count(per_task, 1)
    return JobWish(
        tasks=_count(tasks, max(1, processors // each)),
        processors_per_task=each,
        nodes=parse_count(least),
        fixed=least == most,
        memory_per_processor=_size(memory_per_cpu),
        memory_per_node=_size(memory_per_node),
        memory_per_gpu=sum(count for _, count in gpus_of(gres_counts(memory_per_gpu))) * 2**20,
        gpus_per_job=parse_gpus(per_job),
        gpus_per_node=parse_gpus(per_node),
        gpus_per_task=parse_gpus(per_gpu_task),
        features=features,
        required=required,
        excluded=excluded,
    )


def _count(text: str, otherwise: int) -> int:
    return max(1, parse_count(text)) if text not in ("", "N/A") else otherwise


def _size(text: str) -> int:
    """Bytes of `3000M`, `2.5G`, `1T` or, without a unit, MiB."""
    return parse_count(text) * (1 if text[-1:] in "KMGT" else 2**20) if text else 0
