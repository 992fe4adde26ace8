"""The messages between the command line and the daemon (msgpack over TLS).

One question, one answer. `Failure` answers any question that could not be served.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from adaptor import page_views, views
from adaptor.bag_spec import AtLeast0, BagSpec, Option, Priority
from adaptor.guard_rails import MostFails
from adaptor.option_kinds import CREDITS
from adaptor.protocol.decoding import decoded
from adaptor.resources import OwnNeeds, TaskSize


class TaskInput(msgspec.Struct, frozen=True, array_like=True):
    """One task of a new bag."""

    command: str | list[str]
    """A shell line, or the arguments of a program that is started without a shell."""
    name: str | None = None
    cwd: str | None = None
    environment: dict[str, str] | None = None
    id: str | None = None
    """By which other tasks of the bag name it in `after`."""
    after: list[int | str] = []
    """Numbers or ids of tasks of the bag that must be done before it starts; if one of them fails or is
    cancelled, so is this task."""
    after_any: list[int | str] = []
    """The same of tasks that must have ended, however."""
    call: bytes | None = None
    """A pickled call in place of the command, which is then its name for people; see `protocol.calls`."""
    needs: OwnNeeds | None = None
    """What it needs in place of what its bag says; None: nothing."""
    line: int = 0
    """Of its file, where that is not told by its number; 0: it is."""


class BagInput(msgspec.Struct, frozen=True, kw_only=True):
    """A new bag."""

    spec: BagSpec
    budget: Annotated[float | None, Option("credits that the bag may cost at most", CREDITS)] = None
    tasks: list[TaskInput]


ClientKey = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
"""A name that a client gives to what it sends, so that it counts once however often it is sent."""
TaskNumber = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Submit(msgspec.Struct, frozen=True, tag=True):
    """A new bag; answered by Submitted."""

    bag: BagInput
    open: bool = False
    """Whether tasks may be appended later."""
    key: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """As ClientKey; empty: none."""
    resume: bool = False
    """Whether tasks that earlier bags of this name have done, or still have to run, are left out."""


class Append(msgspec.Struct, frozen=True, tag=True):
    """More tasks of an open bag; answered by Appended, also if they were appended before."""

    bag: TaskNumber
    key: ClientKey
    tasks: list[TaskInput]


class Appended(msgspec.Struct, frozen=True, tag=True):
    first: int
    """The number of the first of the tasks."""
    tasks: int
    refused: int = 0
    """Tasks that failed at once, since nothing can ever run them; not told again of a repeated append."""
    reasons: list[str] = []
    """Of the first of them, as in Submitted."""


class Close(msgspec.Struct, frozen=True, tag=True):
    """These bags take no more tasks; answered by Closed."""

    bags: list[TaskNumber]


class Closed(msgspec.Struct, frozen=True, tag=True):
    bags: list[int]
    """Those that were open."""


LONGEST_POLL = 30.0
"""Seconds."""


class GetEvents(msgspec.Struct, frozen=True, tag=True):
    """What has changed in bags; answered by Events, at once if anything has, or if all bags have ended."""

    since: Annotated[dict[TaskNumber, TaskNumber], msgspec.Meta(min_length=1, max_length=1000)]
    """By bag: the last event that is known; 0: none."""
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_POLL)] = 0.0
    """Seconds to wait for an event."""
    most: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000
    """Tasks in the answer, at most."""


class Events(msgspec.Struct, frozen=True, tag=True):
    bags: list[views.BagEvents]


class TakenOver(msgspec.Struct, frozen=True):
    """Tasks of a new bag that an earlier one has."""

    bag: int
    done: int
    to_run: int
    """They wait there, or run."""


class Submitted(msgspec.Struct, frozen=True, tag=True):
    bag: int
    """0: nothing was left to run, so there is no new bag."""
    taken_over: list[TakenOver] = []
    refused: int = 0
    """Tasks that failed at once, since nothing can ever run them."""
    reasons: list[str] = []
    """Of the first of them, with the number of the task or the line of its file."""


class GetBags(msgspec.Struct, frozen=True, tag=True):
    """Bags by a selector: `last`, `all`, `recent`, `7`, `1-10`, `1,3,5-7`."""

    selector: str = "all"
    record: bool = False
    """Whether the record of the forecasts is wanted too."""


class Bags(msgspec.Struct, frozen=True, tag=True):
    bags: list[views.BagView]
    record: views.ForecastRecordView | None = None
    """Of all bags; None: it was not asked for."""
    others: int = 0
    """Bags that the selector leaves out."""


class GetTasks(msgspec.Struct, frozen=True, tag=True):
    """Tasks of one bag with a number above `after`, at most `limit`, in order of their numbers."""

    bag: int
    states: list[str] = []
    """Words of `TaskView.state`; empty: all. Waiting ones that a worker holds are among the running."""
    after: int = -1
    limit: int = 10_000


class Tasks(msgspec.Struct, frozen=True, tag=True):
    tasks: list[views.TaskView]


class GetPilots(msgspec.Struct, frozen=True, tag=True):
    ended: bool = False
    """Whether the ended ones are wanted too."""
    since: float = 0.0
    """Of the ended ones only those that ended at this time or later, epoch seconds."""


class Pilots(msgspec.Struct, frozen=True, tag=True):
    pilots: list[views.PilotRecord]


class GetReport(msgspec.Struct, frozen=True, tag=True):
    bag: int


class Report(msgspec.Struct, frozen=True, tag=True):
    report: views.BagReport


class GetAdvice(msgspec.Struct, frozen=True, tag=True):
    """What a bag would have better asked for."""

    bag: int


class Advice(msgspec.Struct, frozen=True, tag=True):
    measured: views.MeasuredView
    lines: list[str]
    """Empty where no daemon has computed them: `adaptor.advice`."""


class GetWhy(msgspec.Struct, frozen=True, tag=True):
    """Explanations: of a bag, of a pilot, or (neither given) the newest of all sites."""

    bag: int | None = None
    pilot: int | None = None
    limit: int = 20
    kinds: list[str] = []
    """Of `ExplanationKind`; empty: all."""
    after: int = 0
    """Only decisions that were written after the one of this number."""


class Why(msgspec.Struct, frozen=True, tag=True):
    lines: list[views.Explanation]
    last: int = 0
    """The number of the newest line."""


class GetSites(msgspec.Struct, frozen=True, tag=True):
    pass


class Sites(msgspec.Struct, frozen=True, tag=True):
    sites: list[views.SiteView]


class GetSlots(msgspec.Struct, frozen=True, tag=True):
    """The free slots of these sites' queues, read now; empty: of all."""

    sites: list[str] = []
    task: TaskSize | None = None
    """For tasks of this size; None: of one processor."""


class Slots(msgspec.Struct, frozen=True, tag=True):
    sites: list[views.SlotsView]


class GetPlan(msgspec.Struct, frozen=True, tag=True):
    """What would become of a bag of so many tasks; the queues are read now, and nothing is submitted."""

    spec: BagSpec
    tasks: int
    budget: float | None = None


class Plan(msgspec.Struct, frozen=True, tag=True):
    plan: views.PlanView


class GetDaemon(msgspec.Struct, frozen=True, tag=True):
    pass


class Daemon(msgspec.Struct, frozen=True, tag=True):
    daemon: views.DaemonView


class Cancel(msgspec.Struct, frozen=True, tag=True):
    """Cancel the unfinished tasks of these bags, which take no more tasks."""

    bags: list[int]
    tasks: list[TaskNumber] | None = None
    """Only these tasks, and an open bag stays open."""
    unstarted: bool = False
    """Only those of them that have not started."""


class Retry(msgspec.Struct, frozen=True, tag=True):
    """Put the failed and cancelled tasks of these bags back, with fresh retries."""

    bags: list[int]
    tasks: list[TaskNumber] | None = None
    """Only these tasks."""
    needs: OwnNeeds | None = None
    """What replaces theirs; None in it: as before."""


class Pause(msgspec.Struct, frozen=True, tag=True):
    """Start no more tasks of these bags; answered by ChangedBags."""

    bags: list[int]


class Resume(msgspec.Struct, frozen=True, tag=True):
    """Let these paused bags go on; answered by ChangedBags."""

    bags: list[int]


class ChangeOptions(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Change options of these bags; what is left out stays. Answered by ChangedBags."""

    bags: list[int]
    priority: Priority | None = None
    max_running: AtLeast0 | None = None
    """0: no limit any more."""
    retries: AtLeast0 | None = None
    max_fails: MostFails | None = None


class ChangedBags(msgspec.Struct, frozen=True, tag=True):
    """The bags that were changed; the others had ended, or had nothing to be changed."""

    bags: list[int]


class Forget(msgspec.Struct, frozen=True, tag=True):
    """Remove these bags, which have ended, from the journal; answered by Forgotten."""

    bags: list[int]


class Forgotten(msgspec.Struct, frozen=True, tag=True):
    bags: int


class Changed(msgspec.Struct, frozen=True, tag=True):
    """The answer to Cancel and Retry."""

    tasks: int


class GetCredits(msgspec.Struct, frozen=True, tag=True):
    """What sites and bags have cost. `bags` is a selector."""

    bags: str = "all"


class Credits(msgspec.Struct, frozen=True, tag=True):
    credits: views.CreditsView


class GetLatestBags(msgspec.Struct, frozen=True, tag=True):
    """All bags that have not ended, at most `running` of the newest, and the last `ended` that have;
    answered by Bags."""

    running: int = 50
    ended: int = 5


class GetPicture(msgspec.Struct, frozen=True, tag=True):
    """What the daemon last observed of the queues, has learned of the bags, and knows to run; no scheduler
    is asked."""


class Picture(msgspec.Struct, frozen=True, tag=True):
    queues: list[page_views.QueuePicture]
    learned: list[page_views.LearnedRuntime]
    running: list[page_views.Span]
    """Those that have run longest, at most 2,000."""


class GetActivity(msgspec.Struct, frozen=True, tag=True):
    """What attempts did in these pilots that have ended: one by one, or where there are more than `most`,
    in `bins` parts of each pilot's time."""

    pilots: list[int]
    most: int = 2000
    bins: int = 200


class Activity(msgspec.Struct, frozen=True, tag=True):
    spans: list[page_views.Span]
    """Empty if there are more than were asked for."""
    busy: list[page_views.BusyTime]
    """Empty if `spans` has them one by one."""


class GetTaskSums(msgspec.Struct, frozen=True, tag=True):
    """The runtimes, the progress and the failures of a bag."""

    bag: int


class TaskSums(msgspec.Struct, frozen=True, tag=True):
    sums: page_views.TaskSums


class SetBudget(msgspec.Struct, frozen=True, tag=True):
    """Set or change the budget of a bag; answered by its Credits."""

    bag: int
    credits: float


class SettleSite(msgspec.Struct, frozen=True, tag=True):
    """Settle the pilots of a site that the configuration no longer has; answered by Settled."""

    site: str
    ended: float | None = None
    """When they ended, epoch seconds; None: by what the daemon knows."""


class Settled(msgspec.Struct, frozen=True, tag=True):
    pilots: int


class Stop(msgspec.Struct, frozen=True, tag=True):
    """End the daemon. `pilots`: cancel its pilots too; otherwise they go on and are met again."""

    pilots: bool = False


class Stopping(msgspec.Struct, frozen=True, tag=True):
    pass


class Reload(msgspec.Struct, frozen=True, tag=True):
    """Take the configuration over as its file is now; answered by Reloading once it was checked."""


class Reloading(msgspec.Struct, frozen=True, tag=True):
    """What changes; the daemon is away for a moment, unless nothing does."""

    file: str
    digest: str
    added: list[str]
    """Sites."""
    removed: list[str]
    changed: list[str]
    others: list[str]
    """Other sections of the file."""

    @property
    def any(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.others)


class Failure(msgspec.Struct, frozen=True, tag=True):
    """Why a question was not served."""

    message: str
    usage: bool = False
    """Whether the question itself was at fault (exit code 2)."""


Question = (
    Submit
    | Append
    | Close
    | GetEvents
    | GetBags
    | GetTasks
    | GetPilots
    | GetReport
    | GetAdvice
    | GetWhy
    | GetSites
    | GetSlots
    | GetPlan
    | GetDaemon
    | Cancel
    | Retry
    | Pause
    | Resume
    | ChangeOptions
    | Forget
    | GetCredits
    | GetLatestBags
    | GetPicture
    | GetActivity
    | GetTaskSums
    | SetBudget
    | SettleSite
    | Stop
    | Reload
)
Answer = (
    Submitted | Appended | Closed | Events
    | Bags | Tasks | Pilots | Report | Why | Sites | Slots | Plan | Daemon | Changed | ChangedBags
    | Forgotten | Credits | Picture | Activity | TaskSums | Settled | Stopping | Reloading | Advice
    | Failure
)  # fmt: skip

_encoder = msgspec.msgpack.Encoder()
_question: msgspec.msgpack.Decoder[Question] = msgspec.msgpack.Decoder(Question)
_answer: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def encode(message: Question | Answer) -> bytes:
    return _encoder.encode(message)


def decode_question(data: bytes) -> Question:
    """Raises msgspec.DecodeError (or its subclass ValidationError) on anything else."""
    return decoded(_question.decode, data)


def decode_answer(data: bytes) -> Answer:
    """Raises msgspec.DecodeError (or its subclass ValidationError) on anything else."""
    return decoded(_answer.decode, data)
