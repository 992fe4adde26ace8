"""Forecasts of bags and requests, and their accuracy; intervals hold with 90 %."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from adaptor.api.question import Bytes, KeyAccess, Question, Seconds, Time, TimeInterval, WholeSeconds
from adaptor.bag_spec import BagSpec
from adaptor.budget.provisioning.menu_line import Line
from adaptor.forecast.asked import AskedRequest
from adaptor.forecast.kept_starts import KeptStarts
from adaptor.model import Estimate
from adaptor.resources import OwnNeeds


class ForecastView(msgspec.Struct, frozen=True, kw_only=True):
    """The forecast of a bag's end and cost."""

    cost: Estimate | None  # credits in the end; None: it does not pay, or too little is known yet
    end: TimeInterval | None  # None while nothing is there or asked for that could end it
    blind: bool = False  # whether too little is known of its tasks to plan by the end
    deadline: Time | None
    in_file_order: bool = False  # whether the tasks that have run are no random sample of the bag
    budget: float | None = None  # credits that it may cost; None: it has no limit
    paid: int | None = None  # tasks for which its budget is likely to do; None: for all, as far as is known


class FirstForecastView(msgspec.Struct, frozen=True, kw_only=True):
    """The first forecast of a bag, which is judged, and what came."""

    made: Time
    finished: int  # tasks with a result by then
    tasks: int  # tasks that had a result by then, or could still get one
    cost: Estimate | None  # credits in the end; None: the bag does not pay
    end: TimeInterval
    final_cost: float | None  # None until the bag has ended and its pilots are settled
    final_end: Time | None  # None while the bag runs
    cost_held: bool | None  # None: that is not known yet, or the bag does not count
    end_held: bool | None
    not_counted: str  # why the bag does not count; empty: it does


class PlannedRequest(msgspec.Struct, frozen=True):
    """A request that would be made now."""

    site: str
    p: int
    tr: WholeSeconds
    start: Time | None  # start by the time limits; None: the heuristic does not look
    reason: str


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """The forecast of a bag as if it were submitted now."""

    now: Time
    tasks: int
    requests: list[PlannedRequest]
    withheld: dict[str, str]  # by site: why it would make no request now
    end: TimeInterval | None  # None: no end can be seen
    work: Estimate  # processor-seconds of all tasks
    credits: Estimate | None  # for that work; None: no price and no budget is set
    choices: list[Line] = []
    """Choices of a quote, from the cheapest slots to the fastest. Empty: no price is set, or no runtimes are
    known."""
    known: bool = False  # whether earlier bags tell enough for a quote without a sample
    earlier: list[str] = []  # facts from earlier bags of the same kinds, a sentence each
    problems: dict[str, str]  # by site: why its queue could not be read
    refused: int = 0  # tasks that nothing can ever run; the forecast leaves them out
    reasons: dict[int, str] = {}  # of the first of them, by their place in the bag


class GetPlan(Question[PlanView], frozen=True):
    """Ask for the forecast of a bag of `tasks` tasks; the queues are read now, and nothing is submitted."""

    for_keys = KeyAccess.PUBLIC
    takes_time = True

    spec: BagSpec
    tasks: int
    budget: float | None = None
    needs: dict[int, OwnNeeds] = msgspec.field(default_factory=dict)
    """Needs of tasks that differ from those of the bag, by their place in it."""


JobStanding = Literal["waits", "held", "running", "ended", "unknown"]


class StartChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A smaller request that starts sooner."""

    processors: int
    tr: Seconds
    planned: Time
    start: TimeInterval


class StartRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Accuracy of earlier forecasts of starts at a site."""

    starts: int  # jobs of anyone that were seen to wait and to start; or own requests
    held: int
    """Starts within their interval; of own requests, within 10 minutes of their plan."""
    error: Seconds  # the median distance from the expected, or the planned, start
    own: bool = False  # whether it is of own requests, as too few other starts were seen
    right: bool = True  # whether it agrees with the 90 % that intervals are meant to hold


class StartMap(msgspec.Struct, frozen=True, kw_only=True):
    """Forecast starts of requests of any size at one place, from one reading of its queue."""

    processors: list[int]
    walltimes: list[Seconds]
    starts: list[list[TimeInterval | None]]
    """A list for each walltime, with an entry for each of the processors; None: never, or not foreseen."""


class StartView(msgspec.Struct, frozen=True, kw_only=True):
    """The forecast start of a request, or of a job, at one place."""

    site: str
    partition: str = ""  # by its name at the site, where requests choose one; empty: the site has only one
    observed: Time | None  # time of the reading of its queue; None: it could not be read
    at: Time | None = None  # time of the request; None: of a job that is there already
    processors: int | None = None
    tr: Seconds | None = None
    memory: Bytes | None = None  # of each node
    job: str = ""  # the job that was asked for; empty: it is a request
    standing: JobStanding | None = None  # of that job
    started: Time | None = None  # of a job that runs or has ended; None: not known
    planned: Time | None = None
    """Start if all jobs run to their limits, and none that comes later starts before it; None: never."""
    start: TimeInterval | None = None  # None: no start can be foreseen
    scheduler: Time | None = None  # the scheduler's own estimate of a job's start; None: it has none
    reason: str = ""  # why it starts then, one sentence
    choices: list[StartChoice] = []  # a shorter and a narrower request that start sooner
    remarks: list[str] = []  # facts that the answer leaves out
    record: StartRecord | None = None  # None: too little is known
    map: StartMap | None = None  # None: it was not asked for, or there is nothing to draw
    never: str = ""  # empty, or why no such request can ever start there
    problem: str = ""  # empty, or why the queue could not be read

    @property
    def place(self) -> str:
        """`hpc/long`, or the site alone."""
        return f"{self.site}/{self.partition}" if self.partition else self.site


class GetStart(Question[list[StartView]], frozen=True, kw_only=True):
    """Ask for the start of a request at each place, the earliest first; or for that of a waiting job."""

    for_keys = KeyAccess.PUBLIC
    takes_time = True

    request: AskedRequest | None = None  # None: `job` is asked for
    job: str = ""
    site: str = ""  # empty: all
    partition: str = ""  # empty: all of the site
    at: Time | None = None  # time of the request; None: now
    map: bool = False  # instead of a request or a job: all sizes and walltimes


class SiteStarts(msgspec.Struct, frozen=True):
    """Starts of jobs of anyone that the daemon saw at a site."""

    site: str
    seen: KeptStarts


class GetSeenStarts(Question[list[SiteStarts]], frozen=True):
    """Ask for the judged forecasts of starts and the past waits of each site."""

    kept = True
    nothing: ClassVar[list[SiteStarts]] = []
