"""Bags: submitted, shown and changed."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from adaptor.api.forecasts import ForecastView
from adaptor.api.question import KeyAccess, Meaning, Question, Seconds, Time
from adaptor.api.tasks import ClientKey, TaskInput, TaskNumber
from adaptor.bag_spec import AtLeast0, BagSpec, ExitCode, Option, Priority
from adaptor.forecast.record import Record
from adaptor.guard_rails import EarlySignal, MostFails, TimeLimit
from adaptor.option_kinds import CREDITS
from adaptor.resources import OwnNeeds


class BagInput(msgspec.Struct, frozen=True, kw_only=True):
    """A new bag."""

    spec: BagSpec
    budget: Annotated[
        float | None, Option("credits that the bag may cost at most", CREDITS, section="Cost")
    ] = None
    tasks: list[TaskInput]
    file: str = ""  # name of the file of its tasks, for messages; empty: they are of none
    lines: dict[str, int] = {}
    """Lines of the file that set options, by field of BagSpec or BagInput."""


class Open(Question[int], frozen=True):
    """Open a bag without tasks; the number of the bag that this key has published before, else 0.

    No question shows it, and nothing of it runs, until Publish. Without Publish it is forgotten an hour after
    its last tasks came.
    """

    for_keys = KeyAccess.CHANGE
    writes = True

    key: ClientKey
    spec: BagSpec
    budget: float | None = None  # as in BagInput
    taken: tuple[TaskNumber, ...] = ()
    """Numbers that the bag does not get: its output folder would be another user's
    (`outputs.names.numbers_of_others`)."""
    owner: Annotated[str, msgspec.Meta(max_length=64)] = ""
    """The key with a grant whose bag it is; the daemon says it, whatever the client does. Empty: none."""
    file: str = ""  # as in BagInput


class TakenOver(msgspec.Struct, frozen=True):
    """Tasks of a new bag that an earlier one has."""

    bag: int
    done: int
    to_run: int  # they wait there, or run


class Submitted(msgspec.Struct, frozen=True):
    bag: int  # 0: nothing was left to run, so there is no new bag
    taken_over: list[TakenOver] = []
    refused: int = 0  # tasks that failed at once, since nothing can ever run them
    reasons: list[str] = []  # of the first of them, with the number of the task or the line of its file


class Publish(Question[Submitted], frozen=True):
    """Publish the bag that was opened with this key, with all tasks that were added: it runs from now on."""

    for_keys = KeyAccess.CHANGE
    writes = True

    key: ClientKey
    open: bool = False  # whether more tasks may be added, until Close
    resume: bool = False
    """Whether tasks that earlier bags of this name have done, or still have to run, are left out."""


class Close(Question[list[int]], frozen=True):
    """Close these bags: they take no more tasks."""

    writes = True

    bags: list[TaskNumber]


BagState = Annotated[Literal["open", "running", "done", "failed", "cancelled"], Meaning.STATE]
"""`open`: no task is left, and more may be appended; `failed`: ended, and some tasks have no result."""


class ErrorExample(msgspec.Struct, frozen=True):
    """An attempt whose standard error tells why its bag is halted."""

    task: int
    attempt: int
    stderr: str | None = None  # the file, if a batch script names it


class BagView(msgspec.Struct, frozen=True, kw_only=True):
    """One bag in `adaptor status`."""

    id: int
    name: str
    state: BagState
    sites: list[str]
    tasks: int
    waiting: int
    running: int
    done: int
    failed: int
    cancelled: int
    retried: int  # attempts that failed and were tried again
    submitted: Time
    ended: Time | None
    cpus: int
    mean_runtime: Seconds | None  # of the finished tasks; None before the first
    output: str  # the folder of the tasks' output
    open: bool = False  # whether tasks may still be appended
    close_idle: Seconds = 0.0  # as in `BagSpec`
    shell: str = ""  # what runs its lines, as in `BagSpec`; empty: the usual shell
    events: int = 0  # the number of its last event (see BagEvents)
    blocked: int = 0  # tasks that wait for other tasks or bags
    awaits: list[int] = []  # bags that must end before its blocked tasks start
    output_files: str = "each"  # `each`, `packed` or `none`, as in `BagSpec`
    paused: str = ""  # empty, or why nothing is started or bought for it, and what makes it go on
    held_off: str = ""
    """Why a site gets no request for its waiting tasks now, where requests have failed; empty: none has."""
    halted: bool = False  # whether it has paused by itself until its user lets it go on
    evidence: ErrorExample | None = None
    """One failed task of a halted bag; its standard error tells more."""
    jobs: bool = False  # whether its tasks are jobs of `adaptor.shims`
    forecast: ForecastView | None = None
    """Forecast of a running bag, from the first look at the queue on; its cost, if the bag pays, a little
    later."""


class BagCounts(msgspec.Struct, frozen=True):
    """Bags that an answer leaves out, by what they do."""

    running: int = 0  # a task of it is with a worker, or has ended
    waiting: int = 0
    ended: int = 0
    failed: int = 0  # of those that have ended: with tasks that have no result


class Bags(msgspec.Struct, frozen=True):
    bags: list[BagView]
    record: Record | None = None  # of all bags; None: it was not asked for
    others: int = 0  # bags that the selector leaves out
    left_out: BagCounts = BagCounts()  # the same by what they do, where that was asked for


class GetBags(Question[Bags], frozen=True):
    """Bags by a selector: `last`, `all`, `recent`, `7`, `1-10`, `1,3,5-7`, or a name."""

    for_keys = KeyAccess.READ
    kept = True
    nothing = Bags([])

    selector: str = "all"
    record: bool = False  # whether the record of the forecasts is wanted too


class GetLatestBags(Question[Bags], frozen=True):
    """Bags that have not ended, at most `running`, and the last `ended` that have.

    Those of which tasks run come first, then those of which tasks have ended, then the newest.
    """

    kept = True
    nothing = Bags([])

    running: int = 50
    ended: int = 20


class Pause(Question[list[int]], frozen=True):
    """Start no more tasks of these bags."""

    writes = True

    bags: list[int]


class Resume(Question[list[int]], frozen=True):
    """Let these paused bags go on."""

    writes = True

    bags: list[int]


class OptionChanges(msgspec.Struct, frozen=True, omit_defaults=True):
    """Options of a bag that replace those that it has; what is left out stays."""

    priority: Priority | None = None
    max_running: AtLeast0 | None = None  # 0: no limit any more
    retries: AtLeast0 | None = None
    max_fails: MostFails | None = None
    time: float | None = None  # seconds that a task is expected to take
    timeout: TimeLimit | None = None
    deadline: float | None = None  # epoch seconds
    sites: tuple[str, ...] | None = None
    notify: tuple[str, ...] | None = None
    budget: float | None = None  # credits, including what is used
    begin: float | None = None  # epoch seconds
    signal: EarlySignal | None = None
    requeue_on: tuple[ExitCode, ...] | None = None
    on_oom: float | None = None  # factor of memory


class ChangeOptions(Question[list[int]], frozen=True, omit_defaults=True):
    """Change options of these bags, which have not ended."""

    writes = True

    bags: list[int]
    options: OptionChanges = OptionChanges()
    needs: OwnNeeds | None = None
    """Needs that replace those of all unfinished tasks; running tasks keep what they have."""


class Retry(Question[int], frozen=True):
    """Put the failed and cancelled tasks of these bags back, with fresh retries."""

    writes = True
    takes_time = True

    bags: list[int]
    tasks: list[TaskNumber] | None = None  # only these tasks
    needs: OwnNeeds | None = None  # needs in place of theirs; None in it: as before
    options: OptionChanges = OptionChanges()  # of their bags


class Forget(Question[int], frozen=True):
    """Remove these bags, which have ended, from the journal."""

    writes = True

    bags: list[int]
