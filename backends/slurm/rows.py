"""Rows that the parsers make of Slurm's answers: one frozen type per kind of line."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec


class QueueRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of squeue; `id` may stand for several elements of a job array."""

    id: str
    state: str
    start: float | None
    """Epoch seconds of the job's start; of a waiting job, of its planned start."""
    end: float | None
    """Epoch seconds of the end by its time limit; of an ended job, of its real end."""
    partitions: tuple[str, ...]
    """A waiting job may name several."""
    processors: int
    node_count: int
    limit: float
    """Seconds; may be `math.inf`."""
    nodes: tuple[str, ...]
    """Nodes of the job; empty while it waits."""
    planned_nodes: tuple[str, ...]
    """Nodes on which a waiting job is planned to start; empty: it is not planned."""
    reason: str
    priority: int
    name: str = ""
    """Name of the job. It may hold anything, line breaks included, as may account, wckey and comment."""
    account: str = ""
    wckey: str = ""
    comment: str = ""
    """Comment of our user's jobs."""
    gpus_per_job: str = ""
    """The job's GPUs, as Slurm prints generic resources (`backends.slurm.placing.gres`); so do the next
    three."""
    gpus_per_node: str = ""
    gpus_per_task: str = ""
    memory_per_gpu: str = ""


class NodeRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of `sinfo -N`: one node in one partition."""

    partition: str
    default: bool
    """Whether that partition is the default."""
    available: str
    """`up`, `down`, `drain` or `inact`: the partition's state."""
    node: str
    state: str
    """State in lower case, without the flags."""
    flags: str
    allocated: int
    idle: int
    other: int
    """Processors that are neither: the node is down or drained."""
    memory: int
    """Memory in MiB."""


class AccountingRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of sacct."""

    id: str
    name: str
    state: str
    start: float | None
    end: float | None
    nodes: tuple[str, ...]
    processors: int
    """Processors that the job held; 0: it waits."""


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """One partition of `scontrol show partition`."""

    name: str
    default: bool
    state: str
    max_time: float
    """Seconds; may be `math.inf`."""
    max_nodes: int | None
    processors: int
    nodes: int
    tier: int
    """Jobs of a partition with a higher tier are considered first."""
    exclusive: str
    """Unit that its jobs do not share, `NODE`: whole nodes (`backends.slurm.placing.exclusivity` has all)."""
    shared_by: int
    """Jobs that it may put on one processor at the same time."""
    qos: str
    """The partition's own QOS; empty where there is none."""
    preempt_mode: str
    """Fate of its jobs when others want their nodes: `OFF`, `CANCEL`, `REQUEUE`, `SUSPEND`, …"""
    grace: float
    """Seconds from the call to make room to the end."""
    default_memory: str = ""
    """MiB for each processor, or `UNLIMITED`; empty: as the cluster says."""
    most_memory: str = ""
    most_node_memory: str = ""
    """MiB that one job may have of a node, or `UNLIMITED`."""
    node_processors: float = math.inf
    """Processors that all its jobs together may have of a node."""
    socket_processors: float = math.inf
    min_nodes: int = 1
    """Nodes of one job at least."""
    only_accounts: frozenset[str] = frozenset()
    """Accounts whose jobs it takes, with those of accounts below them; empty: all."""
    only_qos: frozenset[str] = frozenset()
    no_accounts: frozenset[str] = frozenset()
    no_qos: frozenset[str] = frozenset()
    billing: float = 1.0
    """Counted for each processor; 0: what is counted follows from other things."""


def find_partition(partitions: Iterable[Partition], name: str | None) -> Partition | None:
    """The partition of this name, or the default one; None: there is none."""
    return next((each for each in partitions if (each.name == name if name else each.default)), None)
