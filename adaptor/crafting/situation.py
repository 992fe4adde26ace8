"""The inputs and decisions of the planner, and the input of a heuristic. Frozen types."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from adaptor.model import CraftedRequest, Limits, PilotState, QueueState, Request


class SiteRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules for the shape of requests at a site. Times in seconds."""

    limits: Limits
    time_resolution: int = 1
    """`tr` is a multiple of it (Slurm: 60)."""
    slot_margin: int = 0
    """The scheduler starts a request in a free slot that is longer by this margin (seconds)."""
    pad: float = 0.0
    """Seconds of a pilot without tasks: its start-up, and its last seconds."""
    least_tr: int = 0
    """`tr` is not less where the free slot lasts so long."""
    granularity: int = 1
    """`p` is a multiple of it: the processors per node where the site allocates whole nodes."""

    @property
    def longest_task(self) -> float:
        """Seconds of the longest task that a request can hold."""
        return max(1.0, self.limits.max_tr - self.pad)


class CraftingSituation(msgspec.Struct, frozen=True, kw_only=True):
    """All that a heuristic may look at (De Rose §4.3)."""

    queue: QueueState
    rules: SiteRules
    in_system: int
    """Own requests queued or running: the paper's actualPendingRequests."""
    remaining_tasks: int
    """Waiting tasks that no request in the system covers."""
    runtime: float
    """The estimated task runtime in seconds (§4.3.1)."""
    processors_per_task: int = 1
    memory_per_task: int | None = None
    """Bytes; None: not counted."""

    @property
    def allowed_requests(self) -> int:
        return max(0, self.rules.limits.max_pending_requests - self.in_system)


Heuristic = Callable[[CraftingSituation], list[CraftedRequest]]


class PilotView(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot in the system, as the planner sees it. Times are epoch seconds."""

    id: int
    state: PilotState
    request: Request
    started: float | None = None
    """Epoch seconds; None while it is queued."""
    ends: float | None = None
    """The latest end of a running pilot."""
    processors: int | None = None
    """Processors of the workers that are still connected; None: unknown."""
    submitted: float | None = None
    """Epoch seconds."""
    predicted_start: float | None = None
    """The predicted start when the request was crafted; None: the heuristic ignores the queue."""
    bag: int | None = None
    """The only bag that it serves; None: all bags that share pilots."""


TaskShape = tuple[int, int | None, int | None]
"""Processors and memory of a task, and its bag if that has its own pilots."""


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of one shape (processors and memory per task) that a site may run."""

    processors_per_task: int = 1
    memory_per_task: int | None = None
    waiting: int = 0
    """Tasks without a worker."""
    running: int = 0
    """Tasks that a worker holds."""
    runtime: float
    """The estimated runtime in seconds of the longest of the waiting tasks."""
    shortest: float = 0.0
    """The estimated runtime in seconds of the shortest of the waiting tasks."""
    bag: int | None = None
    """Their bag, if it has its own pilots; None: bags that share pilots."""
    alone: bool = False
    """True if each of the waiting tasks must have its worker for itself: a wide request would stand empty."""
    most: int | None = None
    """The most processors to request now; None: only the site's limits apply."""
    why_most: str = ""
    """Why not more than `most`, in one sentence with the numbers."""
    whole: int | None = None
    """Seconds for which each request is made at least where its slot lasts so long; `most` then takes account
    of all pilots in the system. None: it does not."""
    longest: int | None = None
    """The longest request to make now (seconds), beside max_tr: work after a deadline has no use."""

    @property
    def shape(self) -> TaskShape:
        """What tells the demands of a site apart."""
        return self.processors_per_task, self.memory_per_task, self.bag


class TaskGroup(msgspec.Struct, frozen=True):
    """Tasks of one shape that may run at the same sites."""

    waiting: int
    at: dict[str, Demand]
    """By site at which they may run: the demand there; its `running` counts the tasks running there."""


class PlanningView(msgspec.Struct, frozen=True, kw_only=True):
    """All that one planning step of one site may look at."""

    now: float
    queue: QueueState | None
    """None while the scheduler does not answer: the step then issues no request."""
    rules: SiteRules
    heuristic: str
    """A key of `adaptor.crafting.planner.HEURISTICS`."""
    pilots: tuple[PilotView, ...] = ()
    """The pilots in the system."""
    demands: tuple[Demand, ...] = ()


class Issue(msgspec.Struct, frozen=True):
    """Submit this request for tasks of this shape."""

    crafted: CraftedRequest
    demand: Demand


class Withdraw(msgspec.Struct, frozen=True):
    """Cancel a queued pilot."""

    pilot: int
    reason: str


class Withhold(msgspec.Struct, frozen=True):
    """Issue no request now, although tasks wait."""

    reason: str


Decision = Issue | Withdraw | Withhold
