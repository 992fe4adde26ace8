"""Sites: their queues, free slots and donated nodes."""

from __future__ import annotations

import msgspec

from adaptor.api.question import Question, Seconds, Time, WholeSeconds
from adaptor.resources import TaskSize


class DonationView(msgspec.Struct, frozen=True, kw_only=True):
    """Donated nodes of a site, or of a bag, and what they were used for."""

    nodes: int  # donated now
    donations: int  # since the journal began, or for a bag; a node counts each time that it is donated
    held: float
    """Processor-seconds: of a site all that donated nodes held, of a bag what its tasks held there."""
    used: float  # of attempts that were recorded as a result
    lost: float  # of attempts that were aborted because their node was wanted
    reclaims: int  # donations that ended because a local job needed the node
    latency: float | None  # seconds until such a node was free, the median; None: no reclaim, or not known
    slowest: float | None  # the longest of these times, seconds
    idle: int | None = None  # idle nodes that are not donated, as last seen; None: not known
    reason: str = ""
    """Why no more nodes are donated although tasks wait; empty: no task waits, or nothing prevents it."""


class GpuTotals(msgspec.Struct, frozen=True, kw_only=True):
    """GPUs of one type on the nodes of a site that are in service."""

    type: str  # empty: the scheduler gives them no type
    total: int
    free: int  # held by no running job; a request may get them only with processors of the same node


class PartitionView(msgspec.Struct, frozen=True, kw_only=True):
    """One of the partitions of a site among which requests choose."""

    name: str
    max_in_system: int | None  # own pilots, queued and running; None: not known yet
    max_proc: int | None
    max_tr: Seconds | None
    queued: int = 0  # own pilots queued, and running
    running: int = 0
    held: int = 0  # processors of own pilots that run
    processors: int | None = None  # in service; None while its queue was never read
    closed: str = ""  # why it starts no jobs now; empty: it does


class SiteView(msgspec.Struct, frozen=True, kw_only=True):
    """One site in `adaptor status --sites`."""

    name: str
    backend: str
    heuristic: str
    max_in_system: int | None  # own pilots, queued and running; None: not known yet
    max_proc: int | None
    max_tr: Seconds | None
    pad: Seconds  # of each request, beyond the work of its tasks
    queued: int  # own pilots queued, and running
    running: int
    processors: int | None  # in service, or held by own pilots; None while its queue was never read
    gpus: list[GpuTotals] = []
    observed: Time | None  # time of the last reading of the queue; it is read while tasks wait
    problem: str  # empty, or why the site cannot be used now
    since: Time | None = None  # since when it has not answered; None: it does, or is not asked
    held: int = 0  # processors of own pilots that run
    late: Seconds | None = None
    """Seconds by which requests have lately started later than predicted; None before the first."""
    partitions: list[PartitionView] = []  # partitions to choose among; empty: the site has only one
    donation: DonationView | None = None  # None: no node was ever donated there, and none is to be
    policy: str = ""  # policy of the operator of the login node; empty: none


class GetSites(Question[list[SiteView]], frozen=True):
    pass


class FreeStep(msgspec.Struct, frozen=True):
    """The processors that are free from this time on."""

    time: Time
    processors: int


class SlotView(msgspec.Struct, frozen=True, kw_only=True):
    """A free slot, and the largest request that takes it without delaying anyone."""

    start: Time
    end: Time | None  # None: it has no end
    processors: int
    p: int | None  # None where no request fits into it
    tr: WholeSeconds | None
    tasks: int | None = None  # tasks at the same time in that request; None: for no task in particular


class SlotsView(msgspec.Struct, frozen=True, kw_only=True):
    """One site in `adaptor site slots`."""

    site: str
    partition: str = ""  # by its name at the site, where requests choose one; empty: the site has only one
    observed: Time | None  # time of the reading of its queue; None: it could not be read
    processors: int  # in service at the site
    gpus: list[GpuTotals] = []
    task: TaskSize | None = None  # for tasks of which size the slots are; None: of one processor
    in_system: int | None = None
    """Jobs of the user that the scheduler allows in the system, queued and running; None: any number."""
    waiting: int = 0  # jobs of all users that wait
    no_room: str = ""  # empty, or why no node of the site can ever run such a task
    free: list[FreeStep]
    """Free processors over time, next to all running and planned jobs; the last step has no end."""
    slots: list[SlotView]
    """All maximal ones by their start; they overlap, so the requests are choices and not a plan."""
    problem: str  # empty, or why the queue could not be read


class GetSlots(Question[list[SlotsView]], frozen=True):
    """The free slots of these sites' queues, read now; empty: of all."""

    takes_time = True

    sites: list[str] = msgspec.field(default_factory=list)
    task: TaskSize | None = None  # for tasks of this size; None: of one processor
