"""Tasks: appended, shown, followed, cancelled and tried again."""

from __future__ import annotations

from typing import Annotated

import msgspec

from adaptor.api.question import Bytes, KeyAccess, Question, Seconds, StateName, Time
from adaptor.resources import OwnNeeds


class TaskInput(msgspec.Struct, frozen=True, array_like=True):
    """One task of a new bag."""

    command: str | list[str]  # a shell line, or the arguments of a program that is started without a shell
    name: str | None = None
    cwd: str | None = None
    environment: dict[str, str] | None = None
    id: str | None = None  # by which other tasks of the bag name it in `after`
    after: tuple[int | str, ...] = ()
    """Numbers or ids of tasks of the bag that must be done before it starts; if one of them fails or is
    cancelled, so is this task."""
    after_any: tuple[int | str, ...] = ()  # the same of tasks that must have ended, however
    call: bytes | None = None
    """A pickled call in place of the command, which is then its name for people (`protocol.calls`)."""
    needs: OwnNeeds | None = None  # needs in place of those of its bag; None: none
    line: int = 0  # the line of its file, if something may be wrong with this task alone; 0: not told

    def shown(self, number: int, file: str = "") -> str:
        """The task as its user finds it: `tasks.jsonl:3`, or by its number in the bag."""
        if not self.line:
            return f"task {number}"
        return f"{file}:{self.line}" if file else f"line {self.line}"


ClientKey = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
"""A name that a client gives to what it sends, so that it counts once however often it is sent."""


TaskNumber = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Added(msgspec.Struct, frozen=True):
    first: int  # the number of the first of the tasks in the bag
    tasks: int
    refused: int = 0
    """Tasks that failed at once, since nothing can ever run them; not told again of a repeated part."""
    reasons: list[str] = []  # of the first of them, as in Submitted


class Add(Question[Added], frozen=True):
    """Add tasks to an open bag, or to the one that this key has opened (then `Publish` says what is refused).

    Each client numbers its own: a part that is repeated counts once, one after a gap is refused. A bag with
    the calls of a program takes tasks only by the key that has opened it. They may start before they are on
    the disk, as no other client can get their numbers; the answer waits for the disk.
    """

    for_keys = KeyAccess.CHANGE
    writes = True

    bag: TaskNumber  # 0: the one that was opened with this key
    key: ClientKey
    first: TaskNumber  # tasks that this client has added by this key before
    tasks: list[TaskInput]
    file: str = ""  # name of the file in which they are written, for messages; empty: none


class JobView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task as a job of Slurm's commands."""

    number: int
    array: int | None = None  # the number of its array; None: it is no element of one
    index: str | None = None  # in its array
    submitted: Time
    cpus: int
    limit: Seconds | None
    cwd: str


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """One task in `adaptor results`."""

    bag: int
    task: int
    name: str | None
    state: StateName  # waiting, running, done, failed or cancelled
    command: str
    attempts: int  # attempts that were started, replicas among them
    replicas: int = 0
    """Attempts in addition to the one that counts: a second one on an idle processor, or one thought to be
    lost."""
    attempt: int = 0  # the one that the rest is about: its result, else its newest; 0: none has begun
    retries: int  # failed attempts that were charged
    exit_code: int | None
    signal: int | None
    error: str | None  # why it failed, in words, where exit code and signal do not say it
    wall: Seconds | None
    cpu: Seconds | None
    peak_memory: Bytes | None
    started: Time | None
    ended: Time | None
    node: str | None
    peak_gpu_memory: Bytes | None  # bytes on all its GPUs together; None: it had none, or nothing measured it
    stdout: str | None = None
    """Path of its file, or of the archive that holds it; None where the task wrote nothing. The command line
    looks for it: the daemon asks no file system."""
    stderr: str | None = None
    job: JobView | None = None  # None: it is no job of `adaptor.shims`, and was not asked for by its number


class GetTasks(Question[list[TaskView]], frozen=True):
    """Tasks of one bag with a number above `after`, at most `limit`, in order of their numbers."""

    for_keys = KeyAccess.READ
    kept = True

    bag: int
    states: list[str] = msgspec.field(default_factory=list)
    """Words of `TaskView.state`; empty: all. Waiting ones that a worker holds are among the running."""
    after: int = -1
    limit: int = 2_000
    numbers: list[int] | None = None  # only these; None: all


class TaskEvent(msgspec.Struct, frozen=True, array_like=True):
    """The last event of a task: it ended, or its user put it back."""

    task: int
    event: int  # its number among the events of the bag
    state: str  # a word of `TaskState`; of a task that was put back its present state
    attempt: int
    """The attempt that is its result, else the newest; 0: none. Its output is in `<task>.out`, `<task>.err`,
    from the second attempt on in `<task>.<attempt>.out`, `<task>.<attempt>.err`."""
    exit_code: int | None
    signal: int | None
    error: str | None  # why it failed, in words, where exit code and signal do not say it
    started: Time | None
    wall: float | None
    node: str | None
    answer: bytes | None = None  # the result of a call (`protocol.calls`)


class BagEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Changes in a bag since an event."""

    bag: int
    last: int  # the event to go on after
    more: bool  # whether there are more events by now: ask again
    open: bool
    ended: bool  # whether all tasks have ended and the bag is closed
    total: int  # its tasks by now, and how many of them are done, have failed, were cancelled
    done: int
    failed: int
    cancelled: int
    output: str  # the folder of the tasks' output
    tasks: list[TaskEvent]  # in the order of the events; each task once, with its last event


LONGEST_POLL = 30.0  # seconds


class GetEvents(Question[list[BagEvents]], frozen=True):
    """Ask for changes in bags; answered at once if there are any, or if all bags have ended."""

    for_keys = KeyAccess.READ
    kept = True
    takes_time = True

    since: Annotated[dict[TaskNumber, TaskNumber], msgspec.Meta(min_length=1, max_length=1000)]
    """Last known event of each bag; 0: none."""
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_POLL)] = 0.0  # seconds to wait for an event
    most: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000  # tasks in the answer, at most
    follow: bool = False  # whether more answers come as more happens, until one has nothing `after` it

    def after(self, answer: list[BagEvents]) -> GetEvents | None:
        """The question that goes on behind an answer; None: all bags have ended, and no events are left."""
        if all(told.ended and not told.more for told in answer):
            return None
        return msgspec.structs.replace(self, since={told.bag: told.last for told in answer})


class Cancel(Question[int], frozen=True):
    """Cancel the unfinished tasks of these bags, which take no more tasks."""

    for_keys = KeyAccess.CHANGE
    writes = True
    takes_time = True

    bags: list[int]
    tasks: list[TaskNumber] | None = None  # only these tasks, and an open bag stays open
    unstarted: bool = False  # only those of them that have not started
    enough: bool = False  # what they have done is all that is wanted of them: they are done


class RuntimeBin(msgspec.Struct, frozen=True, array_like=True):
    """Attempts that became results whose runtime is in [low, high)."""

    low: float
    high: float
    count: int


class DoneStep(msgspec.Struct, frozen=True, array_like=True):
    """Tasks with a result by `time`."""

    time: float
    done: int


class FailureView(msgspec.Struct, frozen=True, kw_only=True):
    """Failed tasks of a bag that ended alike, with the newest as the example."""

    exit_code: int | None
    signal: int | None
    error: str | None
    count: int
    task: int
    attempt: int
    ended: float | None
    node: str | None
    stderr: str | None  # the file, if a batch script names it


class TaskSums(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a bag in sums."""

    bag: int
    runtimes: list[RuntimeBin]
    progress: list[DoneStep]
    failures: list[FailureView]  # the most frequent ones
    other_failures: int  # failed tasks that are in none of `failures`


class GetTaskSums(Question[TaskSums], frozen=True):
    """The runtimes, the progress and the failures of a bag."""

    for_keys = KeyAccess.READ
    kept = True

    bag: int
