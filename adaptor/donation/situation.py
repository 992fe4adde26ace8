"""Facts on which the donation at a site decides, and its decisions. Frozen types, no behaviour.

Transparent allocation (De Rose et al. 2008, §3): bags use the nodes that local users leave idle, and give
them back the moment a local job wants them. Times are epoch seconds (in replay: of the trace), durations
seconds.
"""

from __future__ import annotations

import enum
import math
from typing import Literal

import msgspec

from adaptor.model import Allocation as Allocation
from adaptor.resources import Gpus, TaskSize

Choice = Literal["likely", "all"]
"""Idle nodes that are used: those on which a waiting task is likely to finish, or all (De Rose §3)."""


class Hours(msgspec.Struct, frozen=True):
    """A part of each day, in seconds since local midnight; one that ends before it begins spans midnight."""

    begin: float
    end: float


class DonationRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of the operator, or of the user, of a site."""

    choose: Choice = "likely"
    """`all` is the paper's own rule: neither what is planned on a node nor how long nodes stay idle
    counts, so `useful_time`, `fit`, `last_fit` and `patience` are without effect."""
    max_nodes: int | None = None
    """Nodes used at any instant; None: as many as there are."""
    reserve_nodes: int = 0
    """Idle nodes that are never used, so that a small local job finds one untouched."""
    useful_time: float = 600.0
    """A node that is planned for a job within this number of seconds is not used."""
    hours: tuple[Hours, ...] = ()
    """Hours in which idle nodes may be used; empty: always."""
    fit: float = 0.5
    """Least probability with which a task must finish before its node is taken, to be started there."""
    last_fit: float = 0.1
    """Least probability for tasks that have no other place (bags with `allocation: transparent`): to be tried
    ten times at the most, in expectation."""
    patience: int = 3
    """A task that was preempted so often waits for a pilot of a formal request, or for the end of its bag."""


class NodeUse(enum.Enum):
    """Use of a node by local users and the operator; our own use does not count."""

    IDLE = "idle"
    TAKEN = "taken"
    """A local job runs there, starts there or waits for us to leave."""
    AWAY = "away"
    """Down, drained, reserved or unknown: nothing may run there."""


class NodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """A node as the scheduler shows it."""

    name: str
    processors: int
    memory: int | None = None
    """Bytes; None: the scheduler does not say."""
    gpus: Gpus = ()
    use: NodeUse
    """Use by others than our leases."""
    planned: float = math.inf
    """Epoch seconds at which a waiting job is planned to start there, or a reservation begins; `math.inf`:
    never."""


class DonatedUse(msgspec.Struct, frozen=True, kw_only=True):
    """Our use of a donated node."""

    since: float
    busy: int = 0
    """Processors of it on which tasks run."""


class NodeView(NodeReport, frozen=True, kw_only=True):
    """A node as the scheduler shows it now, with what is known of it here."""

    since: float = 0.0
    """Epoch seconds since which it has been idle: free of local jobs."""
    donated: DonatedUse | None = None
    avoided: str = ""
    """Why it is not used although it is idle: what went wrong there lately. It counts as taken then."""


class DonationDemand(msgspec.Struct, frozen=True, kw_only=True):
    """Waiting tasks of one kind that may run on donated nodes.

    Tasks of a `mixed` bag that are held for formal requests (`fitting.held`) are a demand of their own, if a
    request is waited for.
    """

    waiting: int
    task: TaskSize = TaskSize()
    needs: float = 0.0
    """Estimated seconds of the shortest of them; 0 while nothing is known."""
    allocation: Allocation = "mixed"
    held_until: float | None = None
    """Predicted start of the request for which they are held, epoch seconds; None: they are not held."""


class DonationState(msgspec.Struct, frozen=True, kw_only=True):
    """All that one step of the donation decides on."""

    now: float
    nodes: tuple[NodeView, ...] | None
    """The nodes; None: the scheduler does not answer, so no node is taken into use, and none is left."""
    rules: DonationRules
    demands: tuple[DonationDemand, ...] = ()
    midnight: float = 0.0
    """Epoch seconds of some local midnight, from which the hours of the day are counted."""


class UseNodes(msgspec.Struct, frozen=True):
    """Use these idle nodes."""

    nodes: tuple[str, ...]
    until: float
    """Epoch seconds at which they are planned for a job, or the hours end; `math.inf`: not known."""
    reason: str


class LeaveNodes(msgspec.Struct, frozen=True):
    """End the use of these nodes, at once; what runs there is aborted and waits again."""

    nodes: tuple[str, ...]
    reason: str


class UseNoMore(msgspec.Struct, frozen=True):
    """Use no more nodes for now although tasks wait."""

    reason: str


DonationDecision = UseNodes | LeaveNodes | UseNoMore
