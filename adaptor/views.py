"""What a user is shown, as frozen types: the command line prints them, `--json` encodes them.

Times are epoch seconds (the command line prints local time, `--json` ISO 8601 in UTC), durations
seconds, areas processor-seconds.
"""

from __future__ import annotations

from typing import Literal

import msgspec

BagState = Literal["running", "done", "failed", "cancelled"]
"""`failed`: ended, and some tasks have no result."""


class ForecastView(msgspec.Struct, frozen=True, kw_only=True):
    """What a bag will cost and when it will end; each lies in its interval with probability 0.9."""

    cost: float
    """Credits in the end."""
    cost_low: float
    cost_high: float
    end: float | None
    """None while nothing is there or asked for that could end it."""
    end_low: float | None
    end_high: float | None
    deadline: float | None
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

    made: float
    finished: int
    """Tasks with a result by then."""
    tasks: int
    """Tasks that had a result by then, or could still get one."""
    cost: float
    """Credits in the end."""
    cost_low: float
    cost_high: float
    end: float
    end_low: float
    end_high: float
    final_cost: float | None
    """None until the bag has ended and its pilots are settled."""
    final_end: float | None
    """None while the bag runs."""
    cost_held: bool | None
    """None: that is not known yet, or the bag does not count."""
    end_held: bool | None
    not_counted: str
    """Why the bag does not count; empty: it does."""


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
    submitted: float
    ended: float | None
    cpus: int
    mean_runtime: float | None
    """Of the finished tasks; None before the first."""
    output: str
    """The folder of the tasks' output."""
    paused: str = ""
    """Empty, or why nothing is bought for it and what it would need."""
    forecast: ForecastView | None = None
    """Of a running bag with a budget, a deadline or a preference, once enough is known."""


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """One task in `adaptor results`."""

    bag: int
    task: int
    name: str | None
    state: str
    """A word of `TaskState`."""
    command: str
    attempts: int
    retries: int
    """Failed attempts that were charged."""
    exit_code: int | None
    signal: int | None
    error: str | None
    """Why it failed, in words, where exit code and signal do not say it."""
    wall: float | None
    cpu: float | None
    peak_memory: int | None
    started: float | None
    ended: float | None
    node: str | None
    stdout: str | None
    """Path; None where the task wrote nothing."""
    stderr: str | None


class PilotRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One request and what became of it: `adaptor pilot list`, `adaptor report`."""

    id: int
    site: str
    job: str | None
    """The scheduler's id."""
    state: str
    """A word of `PilotState`."""
    p: int
    tr: int
    node: str
    """The donated node; empty: a formal request."""
    submitted: float
    predicted_start: float | None
    started: float | None
    ended: float | None
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
    "refused",
    "ended",
    "state",
    "problem",
    "removed",
    "suspects",
]
"""What a line of `adaptor why` is about."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `adaptor why`."""

    time: float
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


class RemovedPilotView(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot that is not settled, of a site that the configuration no longer has."""

    pilot: int
    site: str
    reserved: float
    """Credits."""
    submitted: float
    started: float | None
    """None: it is not known to have started."""
    due: float
    """When it has certainly ended, and is settled."""


class CreditsView(msgspec.Struct, frozen=True, kw_only=True):
    """`adaptor credits`."""

    sites: list[CreditLine]
    bags: list[CreditLine]
    prices: list[SitePrice]
    """Known to the running daemon only."""
    removed: list[RemovedPilotView] = []
    """Known to the running daemon only."""


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
    observed: float | None
    """When the queue was last read; it is, while tasks wait."""
    problem: str
    """Empty, or why the site cannot be used now."""
    since: float | None = None
    """Since when it has not answered; None: it does, or is not asked."""
    held: int = 0
    """Processors of own requests that run."""
    late: float | None = None
    """Seconds by which requests have lately started later than predicted; None before the first."""
    donation: DonationView | None = None
    """None: no node was ever donated there, and none is to be."""


class FreeStep(msgspec.Struct, frozen=True):
    """So many processors are free from this time on."""

    time: float
    processors: int


class SlotView(msgspec.Struct, frozen=True, kw_only=True):
    """A free slot, and the largest request that takes it without delaying anyone."""

    start: float
    end: float | None
    """None: it has no end."""
    processors: int
    p: int | None
    """None where no request fits into it."""
    tr: int | None


class SlotsView(msgspec.Struct, frozen=True, kw_only=True):
    """One site in `adaptor site slots`."""

    site: str
    observed: float | None
    """When its queue was read; None where it could not be."""
    processors: int
    """In service at the site."""
    free: list[FreeStep]
    """Free processors over time, beside all running and planned jobs; the last step has no end."""
    slots: list[SlotView]
    """All maximal ones by their start; they overlap, so the requests are choices and not a plan."""
    problem: str
    """Empty, or why the queue could not be read."""


class DaemonView(msgspec.Struct, frozen=True, kw_only=True):
    """`adaptor daemon status`."""

    pid: int
    host: str
    version: str
    started: float
    state_directory: str
    addresses: list[str]
    workers: int
    stalled: str
    """Empty, or why nothing can be written down now (a full disk)."""
