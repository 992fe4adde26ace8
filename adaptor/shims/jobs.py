"""Tasks as jobs in Slurm's words, and the numbers by which people name them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from adaptor import api
from adaptor.batch_script import place_of
from adaptor.client.reading import Reader, all_tasks
from adaptor.defaults import FIRST_JOB
from adaptor.endings import OUT_OF_MEMORY
from adaptor.errors import UsageError

UNFINISHED = ["waiting", "running", "blocked"]
SHORT = {
    "PENDING": "PD", "RUNNING": "R", "COMPLETED": "CD", "CANCELLED": "CA", "FAILED": "F", "TIMEOUT": "TO",
    "OUT_OF_MEMORY": "OOM", "NODE_FAIL": "NF",
}  # fmt: skip
"""The states of a job, with what squeue calls them for short."""
ACTIVE = ("PENDING", "RUNNING")
_PAGE = 2_000


class Named(msgspec.Struct, frozen=True):
    """A job number on a command line."""

    number: int
    indices: frozenset[str] | None = None  # of an array; None: all of the array, or the job alone

    @property
    def ours(self) -> bool:
        """The scheduler's own numbers end far below ours."""
        return self.number >= FIRST_JOB


_ID = re.compile(
    r"(?P<number>\d+)(?:_(?:(?P<index>\d+)|\[(?P<list>[\d,:-]+)(?:%\d+)?\]|\*))?(?:\.\w+)?", re.ASCII
)


def named(text: str) -> Named | None:
    """`7`, `7_3`, `7_[1-5,9]`, and the same with a step behind a dot; None: it is no number."""
    found = _ID.fullmatch(text.strip())
    if found is None:
        return None
    if found["index"] is not None:
        return Named(int(found["number"]), frozenset([found["index"]]))
    if found["list"] is None:
        return Named(int(found["number"]))
    from adaptor.bagfile.scripts.values import parse_array

    try:
        return Named(int(found["number"]), frozenset(map(str, parse_array(found["list"]).indices)))
    except ValueError:
        return None


def split(texts: Iterable[str]) -> tuple[list[Named], list[str]]:
    """Our jobs among those named, and the scheduler's as they were written."""
    ours: list[Named] = []
    others: list[str] = []
    for text in texts:
        for word in re.split(r",(?![^\[]*\])", text):
            found = named(word)
            if found is not None and found.ours:
                ours.append(found)
            elif word.strip():
                others.append(word)
    return ours, others


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One job as squeue and sacct show it. Times are epoch seconds."""

    bag: int
    task: int
    number: int
    array: int | None
    index: str | None
    name: str
    state: str  # a word of `SHORT`
    code: int
    signal: int
    reason: str
    submitted: float
    started: float | None
    ended: float | None
    wall: float | None
    cpu: float | None
    peak_memory: int | None
    cpus: int
    limit: float | None
    cwd: str
    node: str
    command: str
    stdout: str
    stderr: str

    @property
    def id(self) -> str:
        """`100000001`, of an element `100000001_3`."""
        return str(self.number) if self.array is None else f"{self.array}_{self.index}"


def job_of(view: api.TaskView, now: float) -> Job | None:
    """The job of a task; None: the task is no job of these commands."""
    told = view.job
    if told is None:
        return None
    state = _state(view)
    started = None if state == "PENDING" else view.started
    ended = None if state in ACTIVE else view.ended if view.ended is not None else view.started
    wall = view.wall if state not in ACTIVE else now - started if started is not None else None
    return Job(
        bag=view.bag,
        task=view.task,
        number=told.number,
        array=told.array,
        index=told.index,
        name=view.name or "",
        state=state,
        code=view.exit_code or int(state == "FAILED" and not view.signal),
        signal=view.signal or 0,
        reason=_reason(view, state),
        submitted=told.submitted,
        started=started,
        ended=ended,
        wall=wall,
        cpu=view.cpu,
        peak_memory=view.peak_memory,
        cpus=told.cpus,
        limit=told.limit,
        cwd=told.cwd,
        node=view.node or "",
        command=view.command,
        stdout=view.stdout or "",
        stderr=view.stderr or view.stdout or "",
    )


def _state(view: api.TaskView) -> str:
    if view.state == "running":
        return "RUNNING" if view.started is not None else "PENDING"
    if view.state == "failed":
        return _failure(view)
    return {"done": "COMPLETED", "cancelled": "CANCELLED"}.get(view.state, "PENDING")


def _failure(view: api.TaskView) -> str:
    error = view.error or ""
    if error.startswith(OUT_OF_MEMORY):
        return "OUT_OF_MEMORY"
    if error.startswith("time-out"):
        return "TIMEOUT"
    if error.startswith("it runs after"):
        return "CANCELLED"
    if view.exit_code is None and view.signal is None and "worker" in error:
        return "NODE_FAIL"
    return "FAILED"


def _reason(view: api.TaskView, state: str) -> str:
    if state == "PENDING":
        return "Dependency" if view.state == "blocked" else "Resources"
    return {"FAILED": "NonZeroExitCode", "TIMEOUT": "TimeLimit"}.get(state, "None")


class Jobs:
    """Jobs as the daemon, else its journal, knows them."""

    def __init__(self) -> None:
        self.now = time.time()
        self._reader = Reader(time.time, quiet=True)

    def of(self, wanted: Sequence[Named]) -> list[Job]:
        """The jobs of these names, each once, without those that are not there."""
        by_bag: dict[int, set[int]] = {}
        for each in wanted:
            bag, task = place_of(each.number)
            by_bag.setdefault(bag, set()).add(task)
        heads = {job.number: job for bag, tasks in by_bag.items() for job in self._named(bag, sorted(tasks))}
        found: dict[tuple[int, int], Job] = {}
        for each in wanted:
            if (head := heads.get(each.number)) is not None:
                found.update({(job.bag, job.task): job for job in self._one(each, head)})
        return list(found.values())

    def _named(self, bag: int, tasks: list[int]) -> Iterator[Job]:
        for first in range(0, len(tasks), _PAGE):
            yield from self._jobs(api.GetTasks(bag, limit=_PAGE, numbers=tasks[first : first + _PAGE]))

    def _one(self, wanted: Named, head: Job) -> Iterator[Job]:
        """The job of this number, or the elements of its array."""
        if head.array != head.number and wanted.indices is None:
            yield head
            return
        first = head.task
        while page := list(self._named(head.bag, [*range(first, first + _PAGE)])):
            for job in page:
                if job.array != wanted.number:
                    return
                if wanted.indices is None or job.index in wanted.indices:
                    yield job
            first += _PAGE

    def _jobs(self, question: api.GetTasks) -> Iterator[Job]:
        try:
            views = self._reader.get(question)
        except UsageError:  # there is no such bag
            return iter(())
        return filter(None, (job_of(view, self.now) for view in views))

    def all(self, *, ended: bool) -> Iterator[Job]:
        """All jobs. `ended`: those that have ended, too."""
        for bag in self._reader.get(api.GetBags("all")).bags:
            if bag.jobs and (ended or bag.waiting or bag.running or bag.blocked):
                states = [] if ended else UNFINISHED
                for view in all_tasks(self._reader.get, bag.id, states):
                    job = job_of(view, self.now)
                    if job is not None:
                        yield job
