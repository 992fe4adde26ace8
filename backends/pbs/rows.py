"""Rows that the parsers make of PBS's answers: one frozen type per kind of record."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from adaptor.model import Request
from backends.observed.rows import NOTHING, Amounts

WAITING = frozenset("QHWT")  # states of jobs that have not started, or wait to run again


class PbsChunk(msgspec.Struct, frozen=True, kw_only=True):
    """Equal parts of a job, each of which lies on one machine."""

    count: int = 1
    each: Amounts
    traits: tuple[tuple[str, str], ...] = ()
    """Traits that its nodes must have, besides numbers: resource and value (`PbsNode.traits`)."""


class PbsJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job, or one job array (`state` B, `elements` of which still wait)."""

    id: str  # id as the scheduler prints it in full: `12.server`, `3[].server`
    tag: str  # by which we know it again: of our own jobs what `PilotOrder.tag` was, else the job's name
    owner: str  # the user's name, without the host
    state: str  # the scheduler's letter: Q, R, H, W, T, S, U, E, B, F, X, C, M
    substate: int | None = None  # OpenPBS: finer than the letter
    queue: str = ""
    processors: int = 1
    node_count: int = 1  # chunks that it asked for
    exclusive: bool = False  # whether it takes whole nodes
    machines: bool = False  # whether it takes all vnodes of its machines
    chunks: tuple[PbsChunk, ...] = ()  # chunks that it asked for; empty: not told
    placing: Literal["free", "pack", "scatter"] = "free"
    """Chunks go anywhere, all to one machine, or each to a machine of its own."""
    limit: float = math.inf  # seconds of its walltime; `math.inf` where it has none
    request: Request | None = None
    """The job's present request, with the longest walltime if that may shrink; None: not shown."""
    used: float | None = None  # seconds of walltime used, suspensions left out; None while it has not run
    submitted: float | None = None  # epoch seconds at which it became eligible, else of its submission
    start: float | None = None  # epoch seconds of its (last) start; None: it never started
    end: float | None = None  # epoch seconds of its end; None: it has not ended, or its end is not recorded
    planned_start: float | None = None  # the scheduler's plan when it last planned; may be stale
    hosts: tuple[str, ...] = ()  # the machines it holds something of (or held)
    nodes: dict[str, Amounts] = {}  # amounts that it holds (or held) by node, or vnode where nodes are split
    planned_nodes: dict[str, Amounts] = {}
    """Amounts by node on which the scheduler plans to start a waiting job."""
    elements: int = 1  # of an array, how many of its jobs still wait; 1 of any other job
    priority: int = 0  # orders waiting jobs of a queue where the scheduler tells by what; higher goes first
    exit_status: int | None = None
    rerunnable: bool = False  # OpenPBS: whether it may be put back into its queue to run again
    runs: int = 0  # OpenPBS: how often it was started
    comment: str = ""  # the scheduler's own words: why it waits, how it ended


_OUT = frozenset(
    {
        "busy",
        "down",
        "initializing",
        "maintenance",
        "offline",
        "provisioning",
        "resume-pending",
        "sleep",
        "stale",
        "state-unknown",
        "unknown",
        "unresolvable",
        "wait-provisioning",
    }
)
"""States of nodes that take no new work, whether or not jobs still run there (pbs_node_attributes(7B))."""


class PbsNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node, or one vnode where nodes are split."""

    name: str
    host: str  # the machine; vnodes of one machine share it
    states: frozenset[str]
    """States in lower case: `free`, `job-busy`, `job-exclusive`, `down`, `offline`, …; often several."""
    processors: int
    assigned: Amounts = NOTHING  # amounts that jobs hold, and active reservations
    memory: int | None = None  # bytes; None where it is not told
    gpus: int = 0
    gpu_type: str = ""  # empty: not told
    jobs: tuple[str, ...] = ()  # ids of the jobs that hold something of it, each once
    queue: str | None = None  # the only queue whose jobs it takes; None: any
    partition: str = ""  # the partition of the scheduler; only queues of the same one use it
    traits: dict[str, frozenset[str]] = {}
    """Traits for which a queue may ask, besides numbers: resource to values."""
    exclusive: bool = False  # whether jobs get it whole only, whatever they ask for
    reservations: tuple[str, ...] = ()  # ids of the reservations that hold something of it, now or later

    @property
    def has(self) -> Amounts:
        gpus = ((self.gpu_type, self.gpus),) if self.gpus > 0 else ()
        return Amounts(self.processors, self.memory or 0, gpus)

    @property
    def in_service(self) -> bool:
        """Whether it takes new work."""
        return not self.states & _OUT


class PbsLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a queue or the server; `math.inf`: no limit."""

    name: str
    max_processors: float = math.inf  # of one job; as the next three
    max_nodes: float = math.inf
    max_memory: float = math.inf  # bytes
    max_seconds: float = math.inf
    max_queued: float = math.inf  # jobs of one user (us), running ones included
    max_run: float = math.inf  # jobs of one user (us) that run at once
    together: dict[str, float] = {}
    """Processors of jobs that run at once, by who is counted (`backends.pbs.fields.parse_limits`)."""


class PbsQueue(PbsLimits, frozen=True, kw_only=True):
    routes_to: tuple[str, ...] = ()
    """Queues to which a routing queue hands its jobs on; empty: jobs run from here."""
    enabled: bool = True  # takes new jobs
    started: bool = True  # starts (or routes) jobs
    priority: int = 0
    partition: str = ""
    wants: dict[str, str] = {}  # the trait that each node of its jobs must have, by resource
    from_routes_only: bool = False  # takes jobs from routing queues only
    shuts_out: str = ""  # why it takes no jobs of ours, by its access control lists; empty where it does
    submit_hosts: tuple[str, ...] = ()  # the only machines from which it takes jobs, as patterns; empty: any
    min_processors: float = 0  # of one job; as the limit of seconds that follows
    min_seconds: float = 0


class Preemption(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler's settings by which jobs yield to others (`list sched` of qmgr)."""

    order: str  # ways that it tries one after the other: S suspend, C checkpoint, R requeue, D delete
    express_priority: int  # jobs of queues with at least this priority make those of other queues yield


class PbsServer(PbsLimits, frozen=True, kw_only=True):
    """The server itself; its limits hold in every queue."""

    version: str
    default_queue: str | None = None
    scheduling: bool = True  # whether jobs are started at all at the moment
    shows_all_jobs: bool = True  # whether we see the jobs of other users
    history: float = 0.0  # seconds for which ended jobs are remembered; 0: not at all
    formula: str = ""
    """Formula by which waiting jobs are ordered; empty: not told, and most often in the order of
    submission."""
    counts_eligible_time: bool = False  # whether the server counts for how long jobs could have run

    @property
    def loses_age(self) -> bool:
        """Whether a request that is withdrawn and made again loses its place."""
        return not self.formula or ("eligible_time" in self.formula and self.counts_eligible_time)
