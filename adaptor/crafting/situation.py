"""The inputs and decisions of the planner. Frozen types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from adaptor.crafting.futures.run_shares import RunShares
from adaptor.crafting.heuristics import is_narrow
from adaptor.crafting.multisite.waits import WaitLearner
from adaptor.crafting.submissions import SubmissionsLeft, submission_of
from adaptor.model import CraftedRequest, Limits, PilotState, PriceKind, QueueState, Request
from adaptor.resources import AS_ASKED, PerProcessor, Room, TaskSize
from adaptor.runtimes.known import KnownRuntimes
from adaptor.units import round_up

USUAL = 64_800.0
"""The max_tr of De Rose et al. (2008, §4.4), with which times in seconds that follow the queue were found."""
PREPAID = 0.5  # of its part of a budget with which a pilot begins; the rest goes to those that need more


class SiteRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for the shape of requests at a site. Times in seconds."""

    limits: Limits
    time_resolution: int = 1
    """`tr` is a multiple of it (Slurm: 60)."""
    slot_margin: int = 0
    """The scheduler starts a request in a free slot that is longer by this margin (seconds)."""
    shrink_margin: int | None = None
    """Seconds of a free slot that a request with a least time does not get: the scheduler starts it with what
    the slot holds. None: the scheduler starts every request with its whole tr."""
    ours_alone: bool = False
    """Whether no job of others can come before a request that is made later."""
    pad: float = 0.0
    """Seconds of a pilot without tasks: its start-up, and its last seconds."""
    least_tr: int = 0
    """`tr` is at least this where the free slot lasts that long."""
    granularity: int = 1
    """`p` is a multiple of it: the processors per node where the site allocates whole nodes."""
    held_each: float = 1.0
    """The most processors that pilots have got for each that they asked for: an option, a default or a submit
    plugin of the site may add some, which they pay for too."""
    max_submissions: int | None = None
    """Requests that may be sent in any hour; None: no bound."""
    max_withdrawals: int | None = None
    """Queued requests that may be withdrawn in any hour; None: no bound."""
    may_withdraw: bool = True
    """Whether a request may be withdrawn, or ended, in order to make a better one."""
    most_in_array: int = 1
    """Equal pilots that the scheduler takes by one submission; 1: it knows no arrays."""
    may_reshape: bool = False
    """Whether a queued request may be changed in its place, and the scheduler does that."""
    backfilled: int | None = None
    """Our waiting requests that backfilling looks at, the first ones; None: all."""

    def in_partition(self, name: str) -> SiteRules:
        """The rules for requests in a partition; those of the site where it has only one."""
        limits = self.limits.partitions.get(name)
        return self if limits is None else msgspec.structs.replace(self, limits=limits)

    @property
    def margin(self) -> int:
        """Seconds of a free slot in addition to the largest tr in it."""
        return self.slot_margin if self.shrink_margin is None else self.shrink_margin

    @property
    def longest_task(self) -> float:
        """Seconds of the longest task that a request can hold."""
        return max(1.0, self.limits.max_tr - self.pad)

    @property
    def usual_share(self) -> float:
        """The factor for times found with `USUAL`: where requests last an hour the queue moves in minutes."""
        return min(1.0, self.limits.max_tr / USUAL)


TaskShape = tuple[TaskSize, int | None]  # the size of a task, and its bag if that has its own pilots

ShapeAt = tuple[TaskShape, str]
"""A shape of task, and the partition in which requests for such tasks go; empty: the site has only one."""


class PilotView(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot in the system, as the planner sees it. Times are epoch seconds."""

    id: int
    state: PilotState
    request: Request
    job: str | None = None
    """The scheduler's id; None while it is not known."""
    leaving: str = ""
    """Why it got the order to end; empty: it did not."""
    started: float | None = None
    """Epoch seconds; None while it is queued."""
    ends: float | None = None
    """The latest end of a running pilot."""
    processors: int | None = None
    """Processors of the workers that are still connected; None: unknown."""
    submitted: float | None = None
    """Epoch seconds."""
    reshaped: float | None = None
    """Epoch seconds of the last change of its request; None: there was none."""
    fixed: bool = False
    """Whether the scheduler has refused to change its request."""
    predicted_start: float | None = None
    """The predicted start when the request was crafted; None: the heuristic ignores the queue."""
    bag: int | None = None
    """The only bag that it serves; None: all bags that share pilots."""
    shape: TaskShape | None = None
    """Shape of the tasks for which it was made; None: not known."""
    partition: str = ""
    """Partition of its site, by name; empty: the site has only one."""
    rooms: tuple[Room, ...] = ()
    """Resources of its workers that take tasks, as they are when nothing runs there; empty: not known."""

    @property
    def queued_as(self) -> str:
        """The name of its request in the queue; `pilot 7` before the scheduler shows it."""
        return f"pilot {self.id}" if self.job is None else self.job

    def lateness(self, now: float) -> float:
        """Seconds since its predicted start while it is queued, else 0."""
        if self.state is not PilotState.QUEUED or self.predicted_start is None:
            return 0.0
        return max(0.0, now - self.predicted_start)


class Largest(msgspec.Struct, frozen=True):
    """The largest request to make, where the scheduler does not take or start larger ones."""

    p: int
    tr: int
    why: str = ""
    """Why no larger one; empty: nothing speaks against one."""
    worked: bool = False
    """Whether such a request has started since."""


class Funds(msgspec.Struct, frozen=True, kw_only=True):
    """Funds that a budget, or a limit of the scheduler, leaves for requests that are made now."""

    work: float
    """Processors times seconds."""
    unit: int = 1
    """Seconds: begun ones are charged as a whole."""
    grace: int = 0
    """Seconds after its walltime that a request may last."""
    in_parts: bool = False
    """Whether a request may be paid in parts, the first before it is made, the others while it runs."""

    @property
    def endless(self) -> bool:
        return math.isinf(self.work)

    def cost(self, p: int, tr: float) -> float:
        """The most that a request can cost."""
        return p * self.paid(tr + self.grace)

    def paid(self, seconds: float) -> int:
        """Seconds that are charged for these, in whole units."""
        return round_up(seconds, self.unit)

    def longest(self, p: int) -> int:
        """The longest walltime of a request; not above 0: there is none."""
        return int(self.work / p // self.unit) * self.unit - self.grace

    def after(self, p: int, tr: float, paid: int | None = None) -> Funds:
        """Funds that such a request leaves for others. `paid`: seconds of it that are paid for at first."""
        cost = self.cost(p, tr) if paid is None else p * self.paid(paid)
        return msgspec.structs.replace(self, work=self.work - cost)


class Threat(msgspec.Struct, frozen=True, kw_only=True):
    """Running tasks of a bag without waiting ones, of which any slot with enough time would start a copy."""

    tasks: int = 0
    """Number of tasks that the end of their pilot is likely to cut."""
    enough: float = 0.0
    """Seconds that a pilot must last for a copy of one of them."""


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of one size that a site may run."""

    task: TaskSize = TaskSize()
    waiting: int = 0
    """Tasks without a worker."""
    formal_only: int = 0
    """Tasks among them that wait for a formal request: they were preempted on donated nodes too often."""
    running: int = 0
    """Tasks that a worker holds, at any site."""
    coming: int = 0
    """Number of further tasks that programs are expected to append, as these end."""
    runtime: float
    """The estimated runtime in seconds of the longest of the waiting tasks."""
    shortest: float = 0.0
    """The estimated runtime in seconds of the shortest of the waiting tasks."""
    bag: int | None = None
    """Their bag, if it has its own pilots; None: bags that share pilots."""
    alone: bool = False
    """True if each of the waiting tasks must have its worker for itself: a wide request would stand empty."""
    most: float = math.inf
    """The most processors to request now; infinite: only the site's limits apply."""
    why_most: str = ""
    """Why not more than `most`, in one sentence with the numbers."""
    withheld: bool = False
    """Whether the scheduler lets nothing start for them now, so that withdrawing others makes no room."""
    hosts_counted: bool = False
    """Whether a rule on hosts has counted the pilots in the system: they stay as long as tasks wait."""
    least_tr: int = 0
    """Least seconds of each request where its slot lasts that long."""
    together: int | None = None
    """The most of these tasks that may run at the same time, wherever they run; None: all of them."""
    payers: Mapping[int, float] = {}
    """Number of these tasks by bag, by which the bags share the cost of a request."""
    priority: int = 0
    """Demands with a larger one get their requests first."""
    longest: int | None = None
    """The longest request to make now (seconds), in addition to max_tr: work after a deadline has no use."""
    paced: bool = False
    """Whether aims of their bag say how many processors it gets, and for how long."""
    funds: Funds = Funds(work=math.inf)
    """Funds of all requests that are made now. Known where all requests are narrow."""
    largest: tuple[tuple[str, Largest], ...] = ()
    """Largest request to make in each partition where larger ones have failed (empty: the site has only
    one)."""
    times: KnownRuntimes = msgspec.field(default_factory=KnownRuntimes)
    """Runtimes of the tasks, as far as they are known at the site."""
    threat: Threat = Threat()
    """Tasks that pilots may cut, if none of them waits."""

    def at_most(self, processors: int, why: str) -> Demand:
        """The demand with no more processors than these to request now."""
        if self.most <= processors:
            return self
        return msgspec.structs.replace(self, most=processors, why_most=why)

    def withhold(self, why: str) -> Demand:
        """The demand without a request, as the scheduler lets none start for such tasks now."""
        return msgspec.structs.replace(self, most=0, why_most=why, withheld=True)

    @property
    def wants_pilots(self) -> bool:
        """Whether tasks wait, or are likely to be cut."""
        return self.waiting > 0 or self.threat.tasks > 0

    def largest_in(self, partition: str) -> Largest | None:
        """The largest request to make in a partition; None: no larger one has failed there."""
        return next((largest for name, largest in self.largest if name == partition), None)

    @property
    def shape(self) -> TaskShape:
        """Key by which the demands of a site differ."""
        return self.task, self.bag


class Member(NamedTuple):
    """A request that runs, waits or may be made."""

    start: float
    """Seconds from now to its start; 0: it runs, or starts now."""
    length: float
    """Seconds that are left of it."""
    slots: float
    age: float = 0.0
    """Mean seconds for which its present tasks have run; 0: none runs in it yet."""


Elsewhere = Mapping[int, Member]  # by pilot of the other sites: what it does for the tasks of a demand


class TaskGroup(msgspec.Struct, frozen=True):
    """Tasks of one shape that may run at the same sites."""

    waiting: int
    at: dict[str, Demand]
    """Demand at each site at which they may run."""
    held: Mapping[str, int] = {}
    """Attempts that the workers of each site hold, replicas included."""


class SiteState(msgspec.Struct, frozen=True, kw_only=True):
    """A site at an instant, as its planner, the division and forecasts see it."""

    now: float
    name: str = ""
    rules: SiteRules
    heuristic: str
    """A key of `adaptor.crafting.heuristics.HEURISTICS`."""
    queue: QueueState | None
    """The queue as last read, however long ago; None: it was never read, or may not be used."""
    requests: tuple[PilotView, ...] = ()
    """The pilots of formal requests in the system."""
    demands: tuple[Demand, ...] = ()
    """Tasks for which requests are made now."""
    closed: str = ""
    """Why no request at all may be made now; empty: one may."""
    avoided: Mapping[ShapeAt, str] = {}
    """Partitions in which no request for such tasks is made now, after failures, and why; the empty name: in
    none of the site."""
    submissions: SubmissionsLeft = SubmissionsLeft()
    """Requests that may still be sent now (`SiteRules.max_submissions`)."""
    waits: WaitLearner = msgspec.field(default_factory=WaitLearner)
    jobs: RunShares = msgspec.field(default_factory=RunShares)
    """Shares of their time limits that local jobs run."""
    poll: float = 15.0
    """Seconds between two looks at its queue."""

    @property
    def narrow(self) -> bool:
        """Whether many narrow pilots are made for bags that do not pay for their own."""
        return is_narrow(self.heuristic, self.rules.limits.in_system)

    @property
    def limit_left(self) -> int:
        """Requests that max_pending_requests leaves."""
        in_system = sum(pilot.state.in_system for pilot in self.requests)
        return max(0, self.rules.limits.in_system - in_system)

    @property
    def requests_left(self) -> int:
        """Requests that may be made now: max_submissions counts too."""
        if self.closed:
            return 0
        left = self.submissions.left
        if left is None or (self.narrow and left):
            return self.limit_left  # equal ones are one submission
        return min(self.limit_left, left)

    @property
    def next_request(self) -> float:
        """Epoch seconds from which the next request may be sent."""
        return self.submissions.again if self.submissions.left == 0 else self.now

    def delay(self, processors: int, now: float, tr: float | None = None) -> float:
        """Expected lateness of a request of this width (seconds): learned or present, the larger one.

        `tr`: its time in seconds, where that is known.
        """
        waiting = max((pilot.lateness(now) for pilot in self.requests), default=0.0)
        return max(waiting, self.waits.lateness(processors, now, tr))

    def heard_of(self) -> SiteState:
        """The site when its scheduler has been silent for too long: only pilots whose workers still send
        messages count."""
        running = [pilot for pilot in self.requests if pilot.state is PilotState.RUNNING]
        return msgspec.structs.replace(self, requests=tuple(pilot for pilot in running if pilot.processors))

    def work_left(self, partition: str) -> float:
        """Processors times seconds that the scheduler lets requests in a partition take which are made now,
        besides those that are queued."""
        if self.queue is None:
            return math.inf
        left = self.queue.in_partition(partition).allowed.work_left.value
        waiting = (pilot for pilot in self.requests if pilot.state is not PilotState.RUNNING)
        return left - sum(pilot.request.area for pilot in waiting) if left < math.inf else left


class SubmitRequest(msgspec.Struct, frozen=True):
    """Submit a request.

    After a refused one no other of the same step is submitted for tasks of its shape, and none at all where
    the scheduler failed.
    """

    crafted: CraftedRequest
    demand: Demand
    """The shape of the tasks that it is for."""
    node: str = ""
    """The idle node that it is for; empty: a formal request."""
    per: PerProcessor = AS_ASKED
    """Resources for which the pilot is charged with each processor."""

    @property
    def kind(self) -> PriceKind:
        """Kind of price at which it is paid."""
        return "donated" if self.node else "explicit"

    @property
    def alike(self) -> tuple[object, ...]:
        """Key that is equal for pilots that one submission may ask for, if they stand next to each other."""
        payers = tuple(sorted(self.demand.payers.items()))
        same = submission_of(self.crafted, self.demand.shape)
        return (*same, payers, self.node, self.per)


class Withdraw(msgspec.Struct, frozen=True):
    """Cancel a pilot, unless it has started meanwhile."""

    pilot: int
    reason: str
    recraft: bool = False
    """Whether something waits for it, and it is withdrawn in order to make a better request."""


class Reshape(msgspec.Struct, frozen=True):
    """Change the request of a queued pilot in its place, unless it has started meanwhile."""

    pilot: int
    crafted: CraftedRequest
    """The request after the change; its reason says why, in one sentence."""
    demand: Demand
    """Demand of the shape for which the pilot was made."""


class Withhold(msgspec.Struct, frozen=True):
    """Make no request now, although tasks wait."""

    reason: str
    demand: Demand | None = None
    """Demand whose tasks wait; None: all those at the site."""


PlannedAction = SubmitRequest | Withdraw | Reshape | Withhold
