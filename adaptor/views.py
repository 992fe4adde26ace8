"""What a user is shown, as frozen types: the command line prints them, `--json` encodes them.

Times are epoch seconds (the command line prints local time, `--json` ISO 8601 in UTC), durations
seconds, areas processor-seconds.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from adaptor.resources import TaskSize

INSTANT = "instant"
DURATION = "duration"
Time = Annotated[float, INSTANT]
"""Epoch seconds; `--json` prints ISO 8601 in UTC."""
Duration = Annotated[int, DURATION]
"""Whole seconds; `--json` prints a float, as of all durations."""
BagState = Literal["open", "running", "done", "failed", "cancelled"]
"""`open`: no task is left, and more may be appended; `failed`: ended, and some tasks have no result."""


class ForecastView(msgspec.Struct, frozen=True, kw_only=True):
    """When a bag will end, and what it will cost; each lies in its interval with probability 0.9."""

    cost: float | None
    """Credits in the end; None: it does not pay, or too little is known yet."""
    cost_low: float | None
    cost_high: float | None
    end: Time | None
    """None while nothing is there or asked for that could end it."""
    end_low: Time | None
    end_high: Time | None
    """None: it may take for ever, as far as is known."""
    deadline: Time | None
    in_file_order: bool = False
    """Whether the tasks that have run are no random sample of the bag."""


class ShareView(msgspec.Struct, frozen=True, kw_only=True):
    """How many forecasts held, and which share of all such forecasts that suggests."""

    held: int
    value: float
    """Of those that are counted, 0 to 1."""
    low: float
    """Of the 95 % confidence interval."""
    high: float


class ForecastRecordView(msgspec.Struct, frozen=True, kw_only=True):
    """How often the first forecasts of bags held that have ended here."""

    bags: int
    """Those that are counted."""
    cost: ShareView | None
    """None: no bag is counted."""
    end: ShareView | None
    not_counted: dict[str, int]
    """Ended bags with a forecast that are not counted, by reason."""


class FirstForecastView(msgspec.Struct, frozen=True, kw_only=True):
    """The first forecast of a bag, which is judged, and what came."""

    made: Time
    finished: int
    """Tasks with a result by then."""
    tasks: int
    """Tasks that had a result by then, or could still get one."""
    cost: float | None
    """Credits in the end; None: the bag does not pay."""
    cost_low: float | None
    cost_high: float | None
    end: Time
    end_low: Time
    end_high: Time
    final_cost: float | None
    """None until the bag has ended and its pilots are settled."""
    final_end: Time | None
    """None while the bag runs."""
    cost_held: bool | None
    """None: that is not known yet, or the bag does not count."""
    end_held: bool | None
    not_counted: str
    """Why the bag does not count; empty: it does."""


class PlannedRequestView(msgspec.Struct, frozen=True, kw_only=True):
    """A request that would be made now."""

    site: str
    p: int
    tr: Duration
    start: Time | None
    reason: str


class PlainArrayView(msgspec.Struct, frozen=True, kw_only=True):
    """What an array of one plain job per task would come to."""

    site: str
    limit: float
    """Of each job, seconds."""
    limit_of: str
    """Who says so: `scheduler` (its default), `initial_tr` of the site, or `time`, what the user expects."""
    end: Time
    end_low: Time
    end_high: Time | None


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of a bag if it were submitted now; intervals hold with probability 0.9."""

    now: Time
    tasks: int
    requests: list[PlannedRequestView]
    withheld: dict[str, str]
    """By site: why it would make no request now."""
    end: Time | None
    """None: no end can be seen."""
    end_low: Time | None
    end_high: Time | None
    work: float
    """Processor-seconds of all tasks."""
    work_low: float
    work_high: float
    credits: float | None
    """For that work; None: nobody has set a price or a budget."""
    credits_low: float | None
    credits_high: float | None
    arrays: list[PlainArrayView]
    earlier: list[str] = []
    """What earlier bags of the same kinds say, a sentence each."""
    problems: dict[str, str]
    """By site: why its queue could not be read."""


class Evidence(msgspec.Struct, frozen=True):
    """An attempt whose standard error tells why its bag is halted."""

    task: int
    attempt: int
    stderr: str | None = None
    """The file, if a batch script names it."""


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
    retried: int
    """Attempts that failed and were tried again."""
    submitted: Time
    ended: Time | None
    cpus: int
    mean_runtime: float | None
    """Of the finished tasks; None before the first."""
    output: str
    """The folder of the tasks' output."""
    open: bool = False
    """Whether tasks may still be appended."""
    events: int = 0
    """The number of its last event (see BagEvents)."""
    blocked: int = 0
    """Tasks that wait for other tasks or bags."""
    output_files: str = "each"
    """`each`, `packed` or `none`, as in `BagSpec`."""
    paused: str = ""
    """Empty, or why nothing is started or bought for it, and what makes it go on."""
    halted: bool = False
    """Whether it has paused by itself until its user lets it go on."""
    evidence: Evidence | None = None
    """Where it is halted: one of its failed tasks, whose standard error tells more."""
    forecast: ForecastView | None = None
    """Of a running bag, from the first look at the queue on; its cost, where it pays, a little later."""


class TaskEvent(msgspec.Struct, frozen=True, array_like=True):
    """The last event of a task: it ended, or its user put it back."""

    task: int
    event: int
    """Its number among the events of the bag."""
    state: str
    """A word of `TaskState`; of a task that was put back its present state."""
    attempt: int
    """The attempt that is its result, else the newest; 0: none. Its output is in `<task>.out`, `<task>.err`,
    from the second attempt on in `<task>.<attempt>.out`, `<task>.<attempt>.err`."""
    exit_code: int | None
    signal: int | None
    error: str | None
    """Why it failed, in words, where exit code and signal do not say it."""
    started: Time | None
    wall: float | None
    node: str | None
    answer: bytes | None = None
    """What a call came to (`protocol.calls`)."""


class BagEvents(msgspec.Struct, frozen=True, kw_only=True):
    """What has changed in a bag since an event."""

    bag: int
    last: int
    """The event to go on after."""
    more: bool
    """Whether there are more events by now: ask again."""
    open: bool
    ended: bool
    """Whether all tasks have ended and the bag is closed."""
    total: int
    """Its tasks by now, and how many of them are done, have failed, were cancelled."""
    done: int
    failed: int
    cancelled: int
    output: str
    """The folder of the tasks' output."""
    tasks: list[TaskEvent]
    """In the order of the events; each task once, with its last event."""


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """One task in `adaptor results`."""

    bag: int
    task: int
    name: str | None
    state: str
    """waiting, running, done, failed or cancelled."""
    command: str
    attempts: int
    attempt: int = 0
    """The one that the rest is about: its result, else its newest; 0: none has begun."""
    retries: int
    """Failed attempts that were charged."""
    exit_code: int | None
    signal: int | None
    error: str | None
    """Why it failed, in words, where exit code and signal do not say it."""
    wall: float | None
    cpu: float | None
    peak_memory: int | None
    started: Time | None
    ended: Time | None
    node: str | None
    peak_gpu_memory: int | None
    """Bytes on all its GPUs together; None: it had none, or nothing measured it."""
    stdout: str | None = None
    """Path of its file, or of the archive that holds it; None where the task wrote nothing. The command line
    looks for it: the daemon asks no file system."""
    stderr: str | None = None


class PilotRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One request and what became of it: `adaptor pilot list`, `adaptor report`."""

    id: int
    site: str
    job: str | None
    """The scheduler's id."""
    state: str
    """A word of `PilotState`."""
    p: int
    tr: Duration
    node: str
    """The donated node; empty: a formal request."""
    partition: str = ""
    """In which it was submitted, by its name at the site; empty: the site has only one."""
    submitted: Time
    predicted_start: Time | None
    started: Time | None
    ended: Time | None
    reclaim_time: float | None
    """Seconds until a donated node was free for a local job; None: no reclaim, or not known."""
    reason: str
    """Why it was issued."""
    end_reason: str
    """Why it was withdrawn, refused, or ended, where that is known."""
    used: float
    """Processor-seconds of attempts that were recorded as a result."""
    wasted: float
    """Processor-seconds that it held without that."""
    workers: int
    """Workers connected now."""
    note: str
    """What the user should know of it now, for instance that no worker has reached the daemon."""


ExplanationKind = Literal[
    "issued",
    "divided",
    "withheld",
    "withdrawn",
    "reshaped",
    "refused",
    "ended",
    "state",
    "problem",
    "removed",
    "suspects",
    "paused",
    "memory",
    "needs",
    "earlier",
]
"""What a line of `adaptor why` is about."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `adaptor why`."""

    time: Time
    site: str
    subject: str
    """`pilot 12`, `bag 3` or the site's name."""
    kind: ExplanationKind
    text: str
    """One sentence with the numbers."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of a report."""

    requests: int
    donations: int = 0
    """Nodes that were donated, without a formal request."""
    paid: float
    """Processor-seconds held by pilots."""
    used: float
    wasted: float
    turnaround: float | None
    """From submission to the last result; None while the bag runs."""
    first_result: float | None
    """From submission to the first result."""
    gpu_paid: float = 0.0
    """GPU-seconds held by pilots."""


class CreditLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a bag, a site, or a site in a calendar period has cost, in credits."""

    bag: int | None = None
    site: str | None = None
    period: str = ""
    """`2026-11`, `2026-W47`, …; empty: since the journal began."""
    budget: float | None = None
    """None: it is only counted."""
    used: float
    """Charged for pilots that have ended."""
    wasted: float | None = None
    """Of what is used: idle slots, killed attempts, losing replicas. None: not told apart."""
    reserved: float
    """The most that pilots queued and running can cost."""
    left: float | None = None


class SitePrice(msgspec.Struct, frozen=True, kw_only=True):
    """What a site's time costs."""

    site: str
    explicit: float
    """Credits per processor-hour of formal requests."""
    donated: float
    """Of preemptible time on idle nodes."""
    charging_unit: int
    """Seconds; a begun one counts whole."""
    gpu: float = 0.0
    """Per GPU-hour of formal requests, beside the processors."""


class RemovedPilotView(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that is not settled, of a site that the configuration no longer has."""

    pilot: int
    site: str
    reserved: float
    """Credits."""
    submitted: Time
    started: Time | None
    """None: it is not known to have started."""
    due: Time
    """When it has certainly ended, and is settled."""


class CreditsView(msgspec.Struct, frozen=True, kw_only=True):
    """`adaptor credits`."""

    sites: list[CreditLine]
    bags: list[CreditLine]
    prices: list[SitePrice]
    """Known to the running daemon only."""
    removed: list[RemovedPilotView] = []
    """Known to the running daemon only."""
    in_use: bool = True
    """Whether somebody has set a price or a budget; else credits only count processor-hours."""


class DonationView(msgspec.Struct, frozen=True, kw_only=True):
    """Donated nodes of a site, or of a bag, and what they were used for."""

    nodes: int
    """Donated now."""
    donations: int
    """Since the journal began, or for a bag; a node counts each time that it is donated."""
    held: float
    """Processor-seconds: of a site all that donated nodes held, of a bag what its tasks held there."""
    used: float
    """Of attempts that were recorded as a result."""
    lost: float
    """Of attempts that were aborted because their node was wanted."""
    reclaims: int
    """Donations that ended because a local job needed the node."""
    latency: float | None
    """Seconds until such a node was free, the median; None: no reclaim, or not known."""
    slowest: float | None
    """The longest of these times, seconds."""
    idle: int | None = None
    """Idle nodes that are not donated, as last seen; None: not known."""
    reason: str = ""
    """Why no more nodes are donated although tasks wait; empty: no task waits, or nothing prevents it."""


class MeasuredView(msgspec.Struct, frozen=True, kw_only=True):
    """What the tasks of a bag were given, and what those with a result used.

    Tasks with needs of their own, or that ran out of memory, are left out.
    """

    task: TaskSize
    """What each was given."""
    sites: list[str]
    """On which they may run; empty: any."""
    done: int
    wall: float
    """Of all results together."""
    longest: float
    cpu: float
    """Of all results together."""
    memory: int
    """Bytes, the largest of all; 0: not known."""
    first_tr: float | None
    """Of the first formal request that ran any; None: there was none, or tasks differ in what they need."""
    paid: float
    """Processor-seconds of its pilots."""
    used: float


class BagReport(msgspec.Struct, frozen=True, kw_only=True):
    """`adaptor report BAG`: every request that ran its tasks or was issued for it."""

    bag: BagView
    requests: list[PilotRecord]
    totals: Totals
    credits: CreditLine | None = None
    """None: it has cost nothing yet and has no budget."""
    donation: DonationView | None = None
    """None: none of its tasks ever ran on a donated node."""
    first_forecast: FirstForecastView | None = None
    """None: none was made, as for all bags that share their pilots."""
    forecast_record: ForecastRecordView | None = None
    """Of all bags; None: this one has no forecast."""
    advice: list[str] = []
    """What would have been better to ask for, where that was asked."""


class GpuCount(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs of one type on the nodes of a site that are in service."""

    type: str
    """Empty: the scheduler gives them no type."""
    total: int
    free: int
    """Held by no running job; a request may get them only with processors of the same node."""


class PartitionView(msgspec.Struct, frozen=True, kw_only=True):
    """One of the partitions of a site among which requests choose."""

    name: str
    max_pending_requests: int | None
    max_proc: int | None
    max_tr: float | None
    queued: int = 0
    """Own requests queued, and running."""
    running: int = 0
    held: int = 0
    """Processors of own requests that run."""
    processors: int | None = None
    """In service; None while its queue was never read."""
    closed: str = ""
    """Why it starts no jobs now; empty: it does."""


class SiteView(msgspec.Struct, frozen=True, kw_only=True):
    """One site in `adaptor site list`."""

    name: str
    backend: str
    heuristic: str
    max_pending_requests: int | None
    max_proc: int | None
    max_tr: float | None
    queued: int
    """Own requests queued, and running."""
    running: int
    processors: int | None
    """In service at the site; None while its queue was never read."""
    gpus: list[GpuCount] = []
    observed: Time | None
    """When the queue was last read; it is, while tasks wait."""
    problem: str
    """Empty, or why the site cannot be used now."""
    since: Time | None = None
    """Since when it has not answered; None: it does, or is not asked."""
    held: int = 0
    """Processors of own requests that run."""
    late: float | None = None
    """Seconds by which requests have lately started later than predicted; None before the first."""
    partitions: list[PartitionView] = []
    """Those among which requests choose; empty: the site has only one."""
    donation: DonationView | None = None
    """None: no node was ever donated there, and none is to be."""


class FreeStep(msgspec.Struct, frozen=True):
    """So many processors are free from this time on."""

    time: Time
    processors: int


class SlotView(msgspec.Struct, frozen=True, kw_only=True):
    """A free slot, and the largest request that takes it without delaying anyone."""

    start: Time
    end: Time | None
    """None: it has no end."""
    processors: int
    p: int | None
    """None where no request fits into it."""
    tr: Duration | None
    tasks: int | None = None
    """That run in that request at the same time; None: for no task in particular."""


class SlotsView(msgspec.Struct, frozen=True, kw_only=True):
    """One site in `adaptor site slots`."""

    site: str
    partition: str = ""
    """By its name at the site, where requests choose one; empty: the site has only one."""
    observed: Time | None
    """When its queue was read; None where it could not be."""
    processors: int
    """In service at the site."""
    gpus: list[GpuCount] = []
    task: TaskSize | None = None
    """For tasks of which size the slots are; None: of one processor."""
    no_room: str = ""
    """Empty, or why no node of the site can ever run such a task."""
    free: list[FreeStep]
    """Free processors over time, beside all running and planned jobs; the last step has no end."""
    slots: list[SlotView]
    """All maximal ones by their start; they overlap, so the requests are choices and not a plan."""
    problem: str
    """Empty, or why the queue could not be read."""


class JournalView(msgspec.Struct, frozen=True, kw_only=True):
    """The journal's size and age."""

    size: int
    """Bytes of the file, and of what is not yet written into it."""
    bags: int
    """Those that are kept."""
    oldest: Time | None
    """When the oldest of them was submitted, epoch seconds."""
    keep: float | None
    """Seconds for which bags are kept after their end; None: until they are forgotten."""
    compacting: bool
    """Whether rows of forgotten bags are still being removed."""


class RatesView(msgspec.Struct, frozen=True, kw_only=True):
    """What the daemon did and took in the last seconds, an hour at most."""

    seconds: float
    results: int
    """Attempts that ended."""
    journal_growth: int
    """Bytes; below 0: it shrank."""
    scheduler_commands: int
    cpu: float
    """CPU seconds of the daemon and of the commands that it ran."""
    memory: int
    """Bytes of the daemon that are in memory now."""


class DaemonView(msgspec.Struct, frozen=True, kw_only=True):
    """`adaptor daemon status`."""

    pid: int
    host: str
    version: str
    started: Time
    state_directory: str
    addresses: list[str]
    workers: int
    stalled: str
    """Empty, or why nothing can be written down now (a full disk)."""
    config_file: str = ""
    """Of the configuration; empty: there was none."""
    config_digest: str = ""
    """Of its content when it was loaded; empty: there was none."""
    config_problem: str = ""
    """Why the last reload failed after all, so that the one before it goes on; empty: it did not."""
    journal: JournalView
    rates: RatesView
