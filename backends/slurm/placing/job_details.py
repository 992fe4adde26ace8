"""Details by `scontrol show job` beyond squeue: amounts that a job holds of each node, or wants. Pure.

A job's name, account, comment, command and, since 26.05, its `SubmitLine` may hold anything, line breaks and
whole records of other jobs included. So only records of jobs that squeue shows are read. They begin with the
name and the account that squeue shows, and are read up to `Network=`: no text of a user stands in between,
and squeue tells what stands behind. If a job seems to have two records, one is text of a user: the job is
disputed, and asked for alone. Recorded from 22.05, 24.11 and 26.05.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

import msgspec

from adaptor.resources import Gpus, Part
from backends.numbers import whole
from backends.observed.remembered import decoded
from backends.slurm.fields import expand, parse_count
from backends.slurm.placing.exclusivity import NOTHING, of_job
from backends.slurm.placing.gres import gpus_of, gres_counts, parse_gpus
from backends.slurm.rows import QueueRow


class JobWish(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Resources for which a waiting job asks. Memory in bytes; 0: it does not say."""

    tasks: int
    processors_per_task: int
    nodes: int
    """Least number of nodes."""
    fixed: bool
    """Whether the job asks for exactly this number of nodes."""
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
    """Parts of a running or suspended job."""
    wish: JobWish | None = None
    """Wish of a waiting job."""
    exclusive: str = NOTHING
    """Units that the job does not share with others (`NODE`, … of `backends.slurm.placing.exclusivity`)."""
    licenses: str = ""
    user: str = ""
    """Name of the user; empty: not told."""


_NUMBER = r"[0-9]{1,18}"
_HEAD = re.compile(
    rf"({_NUMBER}) "
    rf"(?:ArrayJobId=({_NUMBER}) ArrayTaskId=(\S+) (?:ArrayTaskThrottle=\S+ )?)?"
    rf"(?:HetJobId=({_NUMBER}) HetJobOffset=({_NUMBER}) (?:HetJobIdSet=\S+ )?)?JobName="
)
_TO_ACCOUNT = (
    r" (?:SLUID=\S+ )?(?:HetJobIdSet=\S+ )?UserId=([^()\n]{1,100})\([0-9]+\) GroupId=[^()\n]*\([0-9]+\) "
    r"MCS_label=\S* Priority=[0-9]+ Nice=-?[0-9]+ Account="
)
_NAME_TO_ACCOUNT = re.compile(_TO_ACCOUNT)
_ACCOUNT_TO_WCKEY = re.compile(r" QOS=\S*( WCKey=)?")
_STATE = re.compile(r" JobState=([A-Z_]+) ")
_TO_STATE = re.compile(rf"(\S*){_TO_ACCOUNT}(\S*) QOS=\S*(?: WCKey=(\S*))? JobState=([A-Z_]+) ")
"""All of them, if no text of the job has blanks."""
_WISHED = (
    *("NumNodes", "NumCPUs", "NumTasks", "CPUs/Task", "MinMemoryCPU", "MinMemoryNode"),
    *("Features", "ReqNodeList", "ExcNodeList"),
)
_VALUE = re.compile(rf" ({'|'.join(_WISHED)}|OverSubscribe|Exclusive|Licenses)=(\S*)")
_READ_FIRST = " ReqNodeList="  # of the fields of `_VALUE` and of the parts
_FIRST_READ = _READ_FIRST.encode()
_BEHIND = " Network="
_TIMES = 2000  # characters between the state and `_FIRST_READ`, most often; beyond, all of a record is read
_PART = re.compile(r" Nodes=(\S+) CPU_IDs=(\S*) Mem=([0-9]{1,15}) GRES=(\S*)")
_HOLDING = frozenset(
    {"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
)
_WAITING = frozenset({"PENDING", "REQUEUED", "EXPEDITING"})


class Record(msgspec.Struct, frozen=True, gc=False):
    """Contents of a record of a job. Texts are remembered by their hashes, as in `Remembered`."""

    row: QueueRow
    id: str
    """Id of its row."""
    detail: JobDetail | None
    word: bytes = b""
    """Word with which the record begins, behind `JobId=`; empty: records of other looks are not compared with
    it."""
    head: int = 0
    """Bytes up to the state."""
    fields: int = 0
    """Bytes of what is read of the rest."""
    hash: int = 0
    """Hash of both parts."""

    def stands_in(self, piece: bytes) -> bool:
        """Whether all that was read stands there still; the times between head and fields may be others."""
        head = self.head
        begin = piece.find(_FIRST_READ, head, head + _TIMES)
        return begin >= 0 and hash((piece[:head], piece[begin : begin + self.fields])) == self.hash


BEGINS = b"JobId="
BETWEEN = b"\n" + BEGINS


def read_record(
    piece: bytes, rows: Mapping[str, QueueRow], with_more: Callable[[int], str]
) -> tuple[Record | None, int]:
    """Contents of the record with which the piece begins, and the number of separators in it. None: it is no
    record of a job of `rows`."""
    text = decoded(piece)
    head = _HEAD.match(text)
    row = rows.get(_id(head)) if head is not None else None
    if head is None or row is None:
        return None, 0
    if more := _imitations(row):
        text = with_more(more)
    return _record(text, head, row, piece)


def parse_only_job(text: str, row: QueueRow) -> JobDetail | None:
    """`scontrol show job -a -d -o ID` of this very job: the record with which the answer begins."""
    text = text.removeprefix("JobId=")
    head = _HEAD.match(text)
    if head is None or _id(head) != row.id:
        return None
    record, _ = _record(text, head, row, b"")
    return record.detail if record is not None else None


def _imitations(row: QueueRow) -> int:
    """Number of separators of records in the texts of a job."""
    if "\n" not in row.name and "\n" not in row.account and "\n" not in row.wckey:
        return 0
    return sum(text.count("\nJobId=") for text in (row.name, row.account, row.wckey))


def _record(text: str, head: re.Match[str], row: QueueRow, piece: bytes) -> tuple[Record | None, int]:
    """Contents of the record with which the text begins, and the number of separators of records in it.

    None: the text does not begin as a record of this job.

    Args:
        piece: the output up to the first separator.
    """
    state, name_end = _soon_told(text, head.end(), row), head.end()
    if state is None:
        past = _past(text, name_end, row.name)
        if past is None:
            return None, 0
        state, name_end = _state_of(text, past, row), past
    begin, end = _fields(text, state.end) if state is not None else (-1, -1)
    if state is None or end < 0:
        return Record(row, row.id, None), text.count("\nJobId=", 0, name_end + len(BEGINS))
    gpus = (row.gpus_per_job, row.gpus_per_node, row.gpus_per_task, row.memory_per_gpu)
    read = _alike if state.word in _WAITING else _detail
    detail = read(state.word, text[begin:end], state.user, *gpus)
    behind = text.count("\nJobId=", 0, end)
    if behind or len(text) != len(piece):  # else characters are bytes
        return Record(row, row.id, detail), behind
    told = hash((piece[: state.end], piece[begin:end]))
    return Record(row, row.id, detail, piece[: piece.find(b" ")], state.end, end - begin, told), 0


def _id(head: re.Match[str]) -> str:
    id, array, element, het, offset = head.groups()
    if het:
        return f"{het}+{offset}"
    if array:
        return f"{array}_{element}" if element.isdigit() else f"{array}_[{element}]"
    return str(id)


def _past(text: str, start: int, value: str) -> int | None:
    """Position behind the value that begins at `start`; None: another value begins there."""
    if value and value != "(null)":
        return start + len(value) if text.startswith(value, start) else None
    return start + len("(null)") if text.startswith("(null)", start) else start


class _State(msgspec.Struct, frozen=True, gc=False):
    word: str
    user: str
    end: int
    """Position behind the state in the record."""


def _soon_told(text: str, start: int, row: QueueRow) -> _State | None:
    """The result of `_state_of` for a record whose name begins at `start`, if no text has blanks; else
    None."""
    told = _TO_STATE.match(text, start)
    if told is None:
        return None
    name, user, account, wckey, state = told.groups()
    shown = (row.name, row.account, row.wckey)
    if (name, account, wckey) != shown and not all(
        found == value or (found in _NO_TEXT and value in _NO_TEXT)
        for found, value in zip((name, account, wckey), shown, strict=True)
    ):
        return None
    return _State(state, user, told.end())


_NO_TEXT = ("(null)", "", None)


def _state_of(text: str, start: int, row: QueueRow) -> _State | None:
    """State in a record in which the job's name ends at `start`; None: it has another form."""
    owner = _NAME_TO_ACCOUNT.match(text, start)
    account = _past(text, owner.end(), row.account) if owner is not None else None
    qos = _ACCOUNT_TO_WCKEY.match(text, account) if account is not None else None
    if owner is None or qos is None:
        return None
    begin = _past(text, qos.end(), row.wckey) if qos[1] else qos.end()
    state = _STATE.match(text, begin) if begin is not None else None
    return None if state is None else _State(state[1], owner[1], state.end())


def _fields(text: str, start: int) -> tuple[int, int]:
    """Begin and end of the part that is read behind the state; end -1: the record has another form.

    Between the state and the begin stand the times, which change from look to look.
    """
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    begin = text.find(_READ_FIRST, start, line_end)
    if begin < 0 or text.find(_BEHIND, start, begin) >= 0:  # behind it, it would be text of a user
        begin = start - 1
    end = text.find(_BEHIND, begin, line_end)
    return begin, end + len(_BEHIND) if end >= 0 else -1


@lru_cache(maxsize=4000)
def _alike(state: str, fields: str, user: str, *gpus: str) -> JobDetail | None:
    """Detail of a waiting job, remembered: many waiting jobs are alike."""
    return _detail(state, fields, user, *gpus)


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


@lru_cache(maxsize=1000)
def _values(fields: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for key, value in _VALUE.findall(fields):
        values.setdefault(key, "" if value == "(null)" else value)
    return values


def _parts(fields: str) -> tuple[Part, ...]:
    found = list[Part]()
    for names, ids, memory, gres in _PART.findall(fields):
        processors, size, gpus = _ids(ids), whole(memory) * 2**20, parse_gpus(gres)
        found += [Part(node=node, processors=processors, memory=size, gpus=gpus) for node in expand(names)]
    return tuple(found)


def _ids(text: str) -> int:
    """Number of ids in a list like `0-3,8`."""
    count = 0
    for item in text.split(","):
        first, _, last = item.partition("-")
        count += whole(last or first) - whole(first) + 1
    return count


def _wish(values: Mapping[str, str], gpus: tuple[str, ...]) -> JobWish:
    return _made(tuple(values.get(key, "") for key in _WISHED), gpus)


@lru_cache(maxsize=1000)
def _made(told: tuple[str, ...], gpus: tuple[str, ...]) -> JobWish:
    """Wish of a waiting job, remembered: many jobs of a queue are alike."""
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
