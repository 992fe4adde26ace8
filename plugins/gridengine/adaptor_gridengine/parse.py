"""The answers of Grid Engine's commands to rows. Pure; every function raises SchedulerError on other text."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar
from xml.etree import ElementTree

import msgspec

from backends.base import SchedulerError
from backends.numbers import clock_seconds, finite, utc_time, whole
from backends.observed.rows import Amounts, ReservationRow


class GridJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job, one running task of an array, or those tasks of an array that wait."""

    number: str
    task: str = ""  # of an array: `3`, or of waiting ones `5-9:2` or `1,3`
    name: str
    owner: str
    state: str  # letters, as qstat prints them: `qw`, `hqw`, `r`, `dr`, `Eqw`, `z`, …
    priority: float = 0.0  # by which waiting jobs are ordered; the highest first
    slots: int = 1  # slots that it asks for at least, or that it has since it started
    pe: str = ""  # its parallel environment; empty: one slot without any
    limit: float = math.inf  # seconds of its `h_rt`; `math.inf`: it names none
    memory: int = 0  # bytes of its `h_vmem`, for each slot; 0: none is counted
    start: float | None = None
    wants: tuple[str, ...] = ()  # patterns of queues, or `queue@host`, one of which it must have; empty: any
    parts: Mapping[tuple[str, str], int] = {}  # by queue and host the slots that it has there

    @property
    def id(self) -> str:
        """Id of a single task of an array; of several tasks, the array's."""
        return element_id(self.number, self.task) if self.task.isdecimal() and self.parts else self.number

    def elements(self, most: int) -> list[str]:
        """The ids of its first `most` tasks; of a job that is no array, its own."""
        found: list[str] = []
        for first, last, step in re.findall(r"(\d{1,9})(?:-(\d{1,9}):(\d{1,9}))?", self.task):
            numbers = range(int(first), int(last or first) + 1, int(step or 1) or 1)
            found += [element_id(self.number, str(number)) for number in numbers[: most - len(found)]]
        return found or [self.number]


def element_id(number: str, task: str) -> str:
    """The id of a job or of an array's element, as qdel takes it."""
    return f"{number}.{task}" if task else number


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """A queue on one host."""

    queue: str
    host: str
    slots: int
    used: int
    states: str = ""  # letters of what is wrong: `d` disabled, `u` unreachable, `E` error, …
    host_free: int | None = None
    """Slots that all queues of the host can still have together; None: the host sets no such limit."""
    memory_free: int | None = None
    """Bytes of `h_vmem` that jobs can still have there; None: it is not counted."""

    @property
    def in_service(self) -> bool:
        """Whether it takes new work. A load that is too high at the moment (`a`, `A`) does not count: most
        often that is the load of jobs which will end."""
        return not set(self.states) & set("uEdDsSCco")


class GridQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster queue (queue_conf(5))."""

    name: str
    seconds: float = math.inf  # the longest run time of its jobs (`h_rt`)
    pes: tuple[str, ...] = ()  # names of the parallel environments of its jobs


class Pe(msgspec.Struct, frozen=True, kw_only=True):
    """A parallel environment (sge_pe(5))."""

    name: str
    slots: int  # of all its jobs together
    rule: str
    """Rule of giving slots: `$pe_slots` (on one host), `$fill_up`, `$round_robin`, or a number a host."""
    controls: bool = False  # whether `qrsh -inherit` may start processes on its hosts

    @property
    def per_host(self) -> int | None:
        """Slots on each host; None where that is not fixed."""
        return int(self.rule) if self.rule.isdecimal() and self.rule.strip("0") else None


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of the cell, which changes rarely."""

    queues: Mapping[str, GridQueue]
    pes: Mapping[str, Pe]
    max_jobs: float = math.inf  # jobs of one user (`max_u_jobs`), running ones included
    default_memory: int | None = None
    """Bytes of `h_vmem` for each slot of a job that names none; None: it is not given as slots are."""


class EndedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of qacct. Times in epoch seconds, 0 where it never ran."""

    number: str
    task: str = ""  # of an array: `3`
    name: str
    owner: str
    host: str
    start: float
    end: float
    failed: int  # Grid Engine's own code (sge_status(5)); 0: the job ended without help
    exit_status: int
    slots: int
    limit: float = math.inf  # seconds of its `h_rt`; `math.inf`: it named none

    @property
    def id(self) -> str:
        return element_id(self.number, self.task)


_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kKmMgGtT]?)")
_UNITS = {"": 1, **{unit: 1000**n for n, unit in enumerate("kmgt", 1)}}
_UNITS |= {unit: 1024**n for n, unit in enumerate("KMGT", 1)}


def seconds_of(text: str) -> float:
    """Seconds from `600`, `0:10:0` or `INFINITY`; of `INFINITY,[n1=0:30:0]` what holds on most hosts."""
    text = text.partition(",[")[0].strip()
    if text.upper() in ("INFINITY", "NONE", ""):
        return math.inf
    return clock_seconds(re.sub(r"(?<=:)(?=:|$)|^(?=:)", "0", text))  # parts may be empty


def bytes_of(text: str) -> int:
    """Bytes from `512M` (1024 × 1024), `512m` (1000 × 1000), `1.500G` or a plain number."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is not a size")
    return whole(str(int(finite(match[1]) * _UNITS[match[2]])))


def time_of(text: str) -> float:
    """Epoch seconds from `2026-11-25T21:45:38` or ctime(3), both in UTC; 0 from `-/-`."""
    if text.startswith("-/-"):
        return 0.0
    return utc_time(text.partition(".")[0].strip())


def count_of(text: str) -> int:
    """A whole number from `4`, `4.000000` or `2-4`, of which it is the least."""
    return whole(str(int(finite(text.partition("-")[0] or "0"))))


T = TypeVar("T")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Characters that users may put into a job's name, and that XML must not have."""


def _explained(parse: Callable[[str], T]) -> Callable[[str], T]:
    """The parser with an error that shows what is not understood in the answer."""

    @functools.wraps(parse)
    def wrapped(text: str) -> T:
        try:
            return parse(text)
        except (ValueError, LookupError, ElementTree.ParseError) as error:
            raise SchedulerError(f"cannot read an answer of Grid Engine: {error}: {text[:200]!r}") from error

    return wrapped


def _tree(text: str) -> ElementTree.Element:
    if "<!" in text:  # neither declarations nor entities: nothing grows when it is read
        raise ValueError("the XML has declarations")
    text = text[max(0, text.find("<?xml")) :]  # a site may print something before it
    return ElementTree.fromstring(_CONTROL.sub("?", text))  # noqa: S314


@_explained
def instances(text: str) -> list[Instance]:
    """Instances of queues, from `qstat -xml -f -F slots,h_vmem`."""
    return [_instance(element) for element in _tree(text).iter("Queue-List")]


def _instance(element: ElementTree.Element) -> Instance:
    queue, _, host = _text(element, "name").partition("@")
    resources = {each.get("name"): each for each in element.iter("resource")}
    slots, memory = resources.get("slots"), resources.get("h_vmem")
    counted = memory is not None and (memory.get("type") or "").endswith("c")
    by_host = slots is not None and slots.get("type") == "hc"
    return Instance(
        queue=queue,
        host=host,
        slots=count_of(_text(element, "slots_total")),
        used=count_of(_text(element, "slots_used")),
        states=_text(element, "state"),
        host_free=max(0, count_of(_own(slots))) if by_host else None,
        memory_free=bytes_of(_own(memory)) if counted else None,
    )


@_explained
def jobs(text: str) -> list[GridJob]:
    """Jobs, from `qstat -xml -f -r`; the parts of a job on several hosts are one."""
    tree = _tree(text)
    found: dict[tuple[str, str, bool], GridJob] = {}
    for place in tree.iter("Queue-List"):
        queue, _, host = _text(place, "name").partition("@")
        for element in place.iter("job_list"):
            job = _job(element)
            key = (job.number, job.task, True)
            parts = {**(found[key].parts if key in found else {}), (queue, host): job.slots}
            found[key] = msgspec.structs.replace(job, parts=parts, slots=sum(parts.values()))
    for part in tree.findall("job_info"):
        for element in part.iter("job_list"):
            job = _job(element)
            found[(job.number, job.task, False)] = job
    return list(found.values())


def _job(element: ElementTree.Element) -> GridJob:
    wants = {each.get("name"): _own(each) for each in element.iter("hard_request")}
    given = {each.get("name"): _own(each) for each in element.iter("def_hard_request")}
    pe = element.find("granted_pe")
    pe = element.find("requested_pe") if pe is None else pe
    start = _text(element, "JAT_start_time")
    return GridJob(
        number=_text(element, "JB_job_number"),
        task=_text(element, "tasks"),
        name=_text(element, "full_job_name") or _text(element, "JB_name"),
        owner=_text(element, "JB_owner"),
        state=_text(element, "state"),
        priority=float(_text(element, "JAT_prio") or 0),
        slots=max(1, count_of(_text(element, "slots") or "1")),
        pe="" if pe is None else pe.get("name") or "",
        limit=seconds_of(wants.get("h_rt", "")),
        memory=bytes_of(wants.get("h_vmem") or given.get("h_vmem") or "0"),
        start=time_of(start) if start else None,
        wants=tuple(_own(each) for each in element.iter("hard_req_queue")),
    )


def _text(element: ElementTree.Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _own(element: ElementTree.Element | None) -> str:
    return "" if element is None else (element.text or "").strip()


@_explained
def reservations(text: str) -> list[ReservationRow]:
    """Reservations, from `qrstat -xml -ar ID,…`."""
    found = []
    for each in _tree(text).iter("ar_summary"):
        held: dict[str, Amounts | None] = {}
        for part in each.iter("granted_slots"):
            host = (part.get("queue_instance") or "").partition("@")[2]
            held[host] = Amounts(count_of(part.get("slots") or "0")) + (held.get(host) or Amounts())
        start, end = time_of(_text(each, "start_time")), time_of(_text(each, "end_time"))
        found.append(ReservationRow(name=_text(each, "id"), start=start, end=end, nodes=held))
    return found


@_explained
def queues(text: str) -> list[GridQueue]:
    """Queues, from `qconf -sq NAME,…`: those that run batch jobs, or parallel ones by their environments."""
    found = []
    for values in _blocks(text, "qname"):
        pes = tuple(values.get("pe_list", "NONE").partition(",[")[0].replace("NONE", "").split())
        if pes or "BATCH" in values.get("qtype", "BATCH"):
            limit = seconds_of(values.get("h_rt", ""))
            found.append(GridQueue(name=values["qname"], seconds=limit, pes=pes))
    return found


@_explained
def pe(text: str) -> Pe:
    """Parallel environment, from `qconf -sp NAME`."""
    (values,) = _blocks(text, "pe_name")
    return Pe(
        name=values["pe_name"],
        slots=count_of(values.get("slots", "0")),
        rule=values.get("allocation_rule", ""),
        controls=values.get("control_slaves", "").upper() == "TRUE",
    )


@_explained
def max_jobs(text: str) -> float:
    """Number of jobs that one user may have, from `qconf -sconf`; `math.inf`: no bound."""
    found = re.search(r"^max_u_jobs\s+(\d+)", text, re.MULTILINE)
    return (count_of(found[1]) if found else 0) or math.inf


@_explained
def default_memory(text: str) -> int | None:
    """Bytes of `h_vmem` of a job that names none, from `qconf -sc`; None: it is not given as slots are."""
    found = re.search(r"^h_vmem\s+\S+\s+\S+\s+\S+\s+\S+\s+(?:YES|HOST)\s+(\S+)", text, re.MULTILINE)
    return bytes_of(found[1]) if found else None


@_explained
def ended(text: str) -> list[EndedRecord]:
    """Records of ended jobs, from `qacct -j`, in its order."""
    found = []
    for values in _blocks(text, "qname"):
        limit = re.search(r"h_rt=([\d:]+)", values.get("category", ""))
        found.append(
            EndedRecord(
                number=values["jobnumber"],
                task=task if (task := values.get("taskid", "")).isdecimal() else "",
                name=values["jobname"],
                owner=values["owner"],
                host=values["hostname"],
                start=time_of(values["start_time"]),
                end=time_of(values["end_time"]),
                failed=count_of(values["failed"].split()[0]),
                exit_status=count_of(values["exit_status"].split()[0]),
                slots=count_of(values["slots"]),
                limit=seconds_of(limit[1]) if limit else math.inf,
            )
        )
    return found


def _blocks(text: str, first: str) -> Iterator[dict[str, str]]:
    """Settings of several things, each of which begins with `first`; long lines end in a backslash."""
    values: dict[str, str] = {}
    for line in text.replace("\\\n", " ").splitlines():
        name, _, value = line.strip().partition(" ")
        if name == first:
            if values:
                yield values
            values = {}
        if name and (values or name == first):
            values[name] = " ".join(value.split())
    if values:
        yield values
