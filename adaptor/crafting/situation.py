"""What a heuristic is told, and what the planner is told. Frozen types, no behaviour."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from adaptor.model import CraftedRequest, Limits, PilotState, QueueState, Request


class SiteRules(msgspec.Struct, frozen=True, kw_only=True):
    """How requests are shaped at a site."""

    limits: Limits
    time_resolution: int = 1
    """`tr` is a multiple of it (Slurm: 60)."""
    slot_margin: int = 0
    """Seconds by which a request must be shorter than a free slot to be started in it."""
    pad: float = 0.0
    """Seconds of a pilot that no task can use: start-up and the end of its tasks."""
    granularity: int = 1
    """`p` is a multiple of it: the processors of a node where only whole nodes are given."""


class CraftingSituation(msgspec.Struct, frozen=True, kw_only=True):
    """What a heuristic decides on (De Rose §4.3)."""

    queue: QueueState
    rules: SiteRules
    in_system: int
    """Own requests queued or running: the paper's actualPendingRequests."""
    remaining_tasks: int
    """Tasks that no request in the system is expected to take."""
    runtime: float
    """The estimated task runtime in seconds (§4.3.1)."""
    processors_per_task: int = 1

    @property
    def allowed_requests(self) -> int:
        return max(0, self.rules.limits.max_pending_requests - self.in_system)


Heuristic = Callable[[CraftingSituation], list[CraftedRequest]]


class PilotView(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot in the system, as the planner sees it."""

    id: int
    state: PilotState
    request: Request
    started: float | None = None
    """Epoch seconds; None while it is queued."""
    ends: float | None = None
    """When a running pilot ends at the latest."""
    processors: int | None = None
    """Processors whose workers are still there; None while that is not known."""
    submitted: float | None = None
    """Epoch seconds."""
    predicted_start: float | None = None
    """As it was forecast when the request was crafted; None where that does not look at the queue."""
    bag: int | None = None
    """The only bag that it serves; None: all that have no pilots of their own."""


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of one shape (processors and memory per task) that a site may run."""

    processors_per_task: int = 1
    memory_per_task: int | None = None
    waiting: int = 0
    """Tasks that no worker holds."""
    running: int = 0
    """Tasks that some worker holds."""
    runtime: float
    """The estimated runtime in seconds of the longest of the waiting tasks."""
    shortest: float = 0.0
    """The estimated runtime in seconds of the shortest of the waiting tasks."""
    bag: int | None = None
    """Their bag, where it has pilots of its own; None: bags that share theirs."""
    most: int | None = None
    """Processors that may be asked for now; None: as many as the limits allow."""
    why_most: str = ""
    """Why no more than `most`, in one sentence with the numbers."""
    longest: int | None = None
    """Seconds that a request may be long now, beside max_tr: what begins after a deadline is of no use."""


class TaskGroup(msgspec.Struct, frozen=True):
    """Tasks of one shape that may run at the same sites."""

    waiting: int
    at: dict[str, Demand]
    """As each of these sites sees them, by its name; `running` counts those that run there."""


class PlanningView(msgspec.Struct, frozen=True, kw_only=True):
    """All that one planning step of one site decides on."""

    now: float
    queue: QueueState | None
    """None while the scheduler does not answer: nothing is issued then."""
    rules: SiteRules
    heuristic: str
    """A key of `adaptor.crafting.planner.HEURISTICS`."""
    pilots: tuple[PilotView, ...] = ()
    """Those in the system."""
    demands: tuple[Demand, ...] = ()


class Issue(msgspec.Struct, frozen=True):
    """Submit this request for tasks of this shape."""

    crafted: CraftedRequest
    demand: Demand


class Withdraw(msgspec.Struct, frozen=True):
    """Take a queued pilot back."""

    pilot: int
    reason: str


class Withhold(msgspec.Struct, frozen=True):
    """Nothing is issued for now although tasks wait."""

    reason: str


Decision = Issue | Withdraw | Withhold
