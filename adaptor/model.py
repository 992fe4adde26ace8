"""The nouns of the request adaptor as frozen types; nothing else lives here.

The words are those of De Rose et al. 2008, §2 and §4. Every point in time is seconds since the
epoch (in replay: since the start of the trace), every duration is seconds.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Literal

import msgspec

from adaptor.resources import Need, Node, Part

Allocation = Literal["explicit", "transparent", "mixed"]
"""Places where the tasks of a bag may run: formal requests, donated nodes, or both."""

PriceKind = Literal["explicit", "donated"]
"""Explicit: formal requests. Donated: preemptible time on idle nodes (De Rose §3, §4)."""

Preference = Literal["cheap", "balanced", "fast"]  # aggressiveness in buying processors for a bag

UserChange = Literal[
    "budget changed", "cancelled", "retried", "paused", "resumed", "options changed", "pilots cancelled"
]
"""Changes of a bag by a user between its submission and its end."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a site for one user (De Rose §4.3, items 1 to 3)."""

    max_pending_requests: int
    """Requests in the system at any instant, queued or running (§4.2)."""
    max_proc: int
    """Processors of one request."""
    max_tr: int
    """Seconds of one request."""
    max_pilots: int = 0
    """Pilots in the system at any instant, for a heuristic that makes many narrow ones; they count instead of
    max_pending_requests. 0: max_pending_requests counts."""
    max_work: float = math.inf
    """Processors times seconds of one request."""
    partitions: Mapping[str, Limits] = {}
    """Limits in each partition of a site where requests choose one; the limits above are then those of all
    requests together, and the most that any partition allows."""

    def longest(self, queue: QueueState) -> int:
        """Seconds of one request that the scheduler lets be, however few processors it has."""
        return int(min(self.max_tr, max(min(known.max_tr, known.max_work) for known in queue.allowances)))

    def within(self, queue: QueueState) -> Limits:
        """The limits that the scheduler allows at the instant of a queue state, in each partition too."""
        places = queue.partitions
        each = {
            name: limits.within(places[name]) if name in places else limits
            for name, limits in self.partitions.items()
        }
        allowed = queue.allowances
        in_system, work = (max(getattr(known, key) for known in allowed) for key in ("in_system", "max_work"))
        return msgspec.structs.replace(
            self,
            max_pending_requests=int(min(self.max_pending_requests, in_system)),
            max_pilots=int(min(self.max_pilots, in_system)),
            max_proc=int(min(self.max_proc, max(known.max_proc for known in allowed))),
            max_tr=self.longest(queue),
            max_work=work,
            partitions=each,
        )

    def for_work(self, least: int, seconds: float) -> Limits:
        """Limits by which no request takes more than `max_work`: processors and time lose the same share of
        it.

        Args:
            least: processors of a request at least.
            seconds: of a request of use; it gets less only where `least` processors leave less.
        """
        p, tr = self.max_proc, self.max_tr
        if p * tr <= self.max_work:
            return self
        p = max(1, min(int(p * math.sqrt(self.max_work / (p * tr))), int(self.max_work / max(1.0, seconds))))
        p = min(self.max_proc, max(p, least))
        return msgspec.structs.replace(self, max_proc=p, max_tr=min(tr, int(self.max_work / p)))

    @property
    def in_system(self) -> int:
        """Pilots that may be in the system at any instant, queued or running."""
        return self.max_pilots or self.max_pending_requests

    @property
    def in_system_key(self) -> str:
        """The key of the configuration that `in_system` comes from."""
        return "max_pilots" if self.max_pilots else "max_pending_requests"


class Request(msgspec.Struct, frozen=True):
    """A request `(p, tr)`: p processors for tr seconds, before it is submitted (§2)."""

    p: int
    tr: int
    least: int | None = None
    """Seconds, fewer than tr: the scheduler may start it with any time from these to tr. None: with tr."""

    def lasting(self, tr: int) -> Request:
        """The request with another tr; its least time stays if that is fewer."""
        shrinks = self.least is not None and self.least < tr
        return Request(self.p, tr, self.least if shrinks else None)

    @property
    def area(self) -> int:
        """Processors times seconds."""
        return self.p * self.tr


class FreeSlot(msgspec.Struct, frozen=True):
    """A rectangle of the availability profile that a request can take without delaying anyone."""

    start: float
    duration: float
    """Seconds; may be `math.inf`."""
    processors: int

    @property
    def end(self) -> float:
        return self.start + self.duration


class RunningJob(msgspec.Struct, frozen=True, gc=False):
    """Processors in use until `end` at the latest (the time limit); `math.inf` where there is none."""

    id: str
    processors: int
    end: float
    parts: tuple[Part, ...] = ()
    """Amounts that the job holds of each node; empty: not known."""


class PendingJob(msgspec.Struct, frozen=True, gc=False):
    """A job of the queue that waits for processors."""

    id: str
    processors: int
    tr: float
    """Time limit in seconds; `math.inf`: none."""
    planned_start: float | None = None
    """Start as the scheduler plans it; None: it does not say."""
    parts: tuple[Part, ...] = ()
    """Amounts that the job will hold of each node from its planned start on; empty: the scheduler does not
    say."""
    need: Need | None = None
    """Resources of the job by node; None: the processors may be on any nodes."""
    new: bool = False
    """Whether it is a request of ours that the scheduler may not show yet."""


class EndedJob(msgspec.Struct, frozen=True):
    """A job of anyone that has ended, as the scheduler remembers it."""

    owner: str
    """User of the job; never shown, never written down."""
    limit: float
    """Time limit in seconds."""
    ran: float
    """Seconds."""


class SharedBound(msgspec.Struct, frozen=True, kw_only=True):
    """Processors that the jobs of a user, an account or a QOS may hold together at any instant."""

    most: int
    held: tuple[tuple[float, int], ...] = ()
    """End and number of processors of each running job that counts, on any nodes."""
    waiting: frozenset[str] = frozenset()
    """Ids of the jobs that count once they start; new requests of the site count in addition."""
    source: str = ""
    """Source for people: `GrpTRES of account lab`."""


class Bound(msgspec.Struct, frozen=True, order=True):
    """A limit and, for people, where it comes from: `GrpTRES=cpu of account lab`."""

    value: float
    source: str


UNLIMITED, FROM_NOTHING = Bound(math.inf, "no limit"), Bound(0, "no limit")


class Allowed(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds by the scheduler on the requests of a site at the instant of a queue state."""

    max_proc: float = math.inf
    """Processors of one request."""
    max_tr: float = math.inf
    """Seconds of one request."""
    in_system: float = math.inf
    """Requests in the system, queued or running."""
    max_work: float = math.inf
    """Processors times seconds of one request."""
    work_left: Bound = UNLIMITED
    """Processors times seconds of all requests together that start now, in addition to those that run."""
    max_memory: Bound = UNLIMITED
    """Bytes of one request."""
    max_gpus: Bound = UNLIMITED
    """GPUs of one request."""
    min_memory: Bound = FROM_NOTHING
    min_gpus: Bound = FROM_NOTHING
    """Least GPUs of one request."""
    min_proc: int = 1
    """Processors of one request at least."""
    min_parts: int = 1
    """Parts of one request at least, each on one node: the scheduler spreads it on as many nodes."""
    together: tuple[SharedBound, ...] = ()
    """Bounds on what runs at the same time."""


class QueueState(msgspec.Struct, frozen=True, kw_only=True):
    """The queue that a site's scheduler shows at the instant `now` (§4.3, item 4)."""

    now: float
    processors: int
    """Processors that the site's requests may use and that are in service, in use or not."""
    running: tuple[RunningJob, ...] = ()
    pending: tuple[PendingJob, ...] = ()
    """Waiting jobs in the order in which the scheduler considers them."""
    nodes: tuple[Node, ...] = ()
    """Nodes of the site in the order in which the scheduler fills them, those out of service included; empty:
    not known, and then only processors are counted."""
    default_memory: int | None = None
    """Bytes for each processor that a request gets whose tasks name no memory; None: it is not counted."""
    partitions: Mapping[str, QueueState] = {}
    """The state in each partition of a site where requests choose one; all other fields are then those of the
    partition with the most processors in service."""
    closed: Mapping[str, str] = {}
    """The partitions that start no jobs at the moment, with the scheduler's reason."""
    owners: Mapping[str, str] = {}
    """User of each job by its id, if the scheduler names one. Never shown, never written down."""
    limits: Mapping[str, float] = {}
    """Time limit in seconds of each running job by its id, if the scheduler names it and its end follows from
    it."""
    memory_step: int = 1
    """Bytes: the memory of a request is counted in multiples of it for each processor (Slurm: 1 MiB)."""
    processor_step: int = 1
    """A request gets a multiple of these processors of each node: the threads of a core."""
    most_memory: int | None = None
    """Bytes for each processor of a request at most: one that needs more gets more processors. None: no
    bound."""
    allowed: Allowed = Allowed()
    unknown: tuple[str, ...] = ()
    """A sentence for each kind of answer that the backend does not know, and what it counts as."""

    def in_partition(self, name: str) -> QueueState:
        """The queue as requests in a partition meet it; that of the site where it has only one."""
        return self.partitions.get(name, self)

    @property
    def allowances(self) -> list[Allowed]:
        """Bounds in each partition; of a site without a choice, those of the site."""
        return [place.allowed for place in self.partitions.values()] or [self.allowed]


class CraftedRequest(msgspec.Struct, frozen=True):
    """A request that a heuristic wants issued, with its forecast and its reason."""

    request: Request
    predicted_start: float | None
    """Predicted start, epoch seconds; None: the heuristic does not look at the queue."""
    tasks: int
    """Tasks that the request is expected to finish."""
    reason: str
    partition: str = ""
    """Partition in which it is to run, by its name at the site; empty: the site has only one."""
    paid: int | None = None
    """Seconds of its tr that are paid for at first, and more while it runs; None: all."""


class PilotState(enum.Enum):
    """The life of a pilot, a request that was submitted. `PILOT_TRANSITIONS` says what follows what."""

    SUBMITTING = "submitting"
    """The intent is written down; whether the scheduler has it is not yet known."""
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    """All workers left by themselves."""
    WALLTIME = "walltime"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    """Ended while it ran, by the user, an operator or the adaptor."""
    WITHDRAWN = "withdrawn"
    """Taken back by the adaptor before it started."""
    NODE_FAILED = "node_failed"
    FAILED = "failed"
    """Ended with an error of its own: the script, its prologue or all of its workers."""
    REFUSED = "refused"
    """The scheduler did not take it, or had not taken it."""
    VANISHED = "vanished"
    """The scheduler no longer knows it and has no record of its end."""

    @property
    def in_system(self) -> bool:
        """Whether the pilot counts towards `max_pending_requests`."""
        return self in (PilotState.SUBMITTING, PilotState.QUEUED, PilotState.RUNNING)


IN_SYSTEM = tuple(state for state in PilotState if state.in_system)
"""The states that count towards `max_pending_requests`."""

_ENDS_OF_RUNNING = frozenset(
    {
        PilotState.COMPLETED,
        PilotState.WALLTIME,
        PilotState.PREEMPTED,
        PilotState.CANCELLED,
        PilotState.NODE_FAILED,
        PilotState.FAILED,
        PilotState.VANISHED,
    }
)

PILOT_TRANSITIONS: dict[PilotState, frozenset[PilotState]] = {
    # A pilot may be found running, or ended, when it is first seen again after an outage.
    PilotState.SUBMITTING: _ENDS_OF_RUNNING
    | {PilotState.QUEUED, PilotState.RUNNING, PilotState.WITHDRAWN, PilotState.REFUSED},
    PilotState.QUEUED: _ENDS_OF_RUNNING | {PilotState.RUNNING, PilotState.WITHDRAWN},
    # A preempted pilot that the scheduler puts back into its queue is queued again.
    PilotState.RUNNING: _ENDS_OF_RUNNING | {PilotState.QUEUED},
    **{end: frozenset() for end in (*_ENDS_OF_RUNNING, PilotState.WITHDRAWN, PilotState.REFUSED)},
}


class TaskState(enum.Enum):
    """The life of a task. `TASK_TRANSITIONS` says what follows what."""

    __hash__ = object.__hash__  # Enum's own is Python, and felt where a million tasks change

    WAITING = "waiting"
    LEASED = "leased"
    """A worker holds at least one attempt."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    BLOCKED = "blocked"
    """The task waits for other tasks or bags to end."""

    @property
    def ended(self) -> bool:
        return self in (TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED)


TASK_TRANSITIONS: dict[TaskState, frozenset[TaskState]] = {
    # From waiting straight to an end: an attempt that was given up for lost has a result after all.
    TaskState.WAITING: frozenset({TaskState.LEASED, TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED}),
    TaskState.LEASED: frozenset({TaskState.WAITING, TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED}),
    TaskState.DONE: frozenset(),
    # `adaptor retry` puts a task back that ended without a result.
    TaskState.FAILED: frozenset({TaskState.WAITING, TaskState.BLOCKED}),
    TaskState.CANCELLED: frozenset({TaskState.WAITING, TaskState.BLOCKED}),
    # What it waited for has ended; straight to done: an attempt from before it was put back has a result.
    TaskState.BLOCKED: frozenset({TaskState.WAITING, TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED}),
}


class AttemptOutcome(enum.Enum):
    """Outcome of one execution of a task."""

    DONE = "done"
    FAILED = "failed"
    """The task's own failure."""
    TIMED_OUT = "time-out"
    """The worker ended it after the time that its bag allows a task."""
    REQUEUED = "requeued"
    """The task said that it has checkpointed, and goes on in its next attempt."""
    OUT_OF_MEMORY = "out_of_memory"
    """The task ran out of memory, and is tried again with more."""
    RETURNED = "returned"
    """Handed back by the worker before it was started."""
    LOST = "lost"
    """The worker fell silent or died."""
    WALLTIME = "walltime"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    """The bag or the pilot was cancelled."""
    SUPERSEDED = "superseded"
    """Another attempt of the same task finished first."""

    @property
    def useful(self) -> bool:
        """Whether its work is part of a result."""
        return self in USEFUL


USEFUL = (AttemptOutcome.DONE, AttemptOutcome.REQUEUED)  # outcomes of attempts whose work is part of a result

REPORTED = (
    AttemptOutcome.DONE,
    AttemptOutcome.FAILED,
    AttemptOutcome.TIMED_OUT,
    AttemptOutcome.REQUEUED,
    AttemptOutcome.OUT_OF_MEMORY,
    AttemptOutcome.SUPERSEDED,
)
"""Outcomes that a worker has reported as the end of an attempt: no other result of it can follow."""


_ROUNDING = 1e-6  # the smallest part of a credit, and less than any clock resolves of a second


class Estimate(msgspec.Struct, frozen=True):
    """A figure with the interval in which it lies with 90 % probability; `value` is as often too
    high as too low."""

    low: float
    value: float
    high: float

    def holds(self, figure: float) -> bool:
        """Whether the interval holds what the figure came to, up to a rounding error."""
        return self.low - _ROUNDING <= figure <= self.high + _ROUNDING
