"""What the parsers make of Grid Engine's answers: one frozen type per kind of record."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec


class GridJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job, one running task of an array, or those tasks of an array that wait."""

    number: str
    task: str = ""
    """Of an array: `3`, or of waiting ones `5-9:2` or `1,3`."""
    name: str
    owner: str
    state: str
    """Letters, as qstat prints them: `qw`, `hqw`, `r`, `dr`, `Eqw`, `z`, …"""
    priority: float = 0.0
    """By which waiting jobs are ordered; the highest first."""
    slots: int = 1
    """That it asks for at least, or that it has since it started."""
    pe: str = ""
    """Its parallel environment; empty: one slot without any."""
    limit: float = math.inf
    """Seconds of its `h_rt`; `math.inf`: it names none."""
    memory: int = 0
    """Bytes of its `h_vmem`, for each slot; 0: none is counted."""
    start: float | None = None
    wants: tuple[str, ...] = ()
    """Patterns of queues, or `queue@host`, one of which it must have; empty: any."""
    parts: Mapping[tuple[str, str], int] = {}
    """By queue and host the slots that it has there."""

    @property
    def id(self) -> str:
        return f"{self.number}.{self.task}" if self.task and self.parts else self.number


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """A queue on one host."""

    queue: str
    host: str
    slots: int
    used: int
    states: str = ""
    """Letters of what is wrong: `d` disabled, `u` unreachable, `E` error, …"""
    host_free: int | None = None
    """Slots that all queues of the host can still have together; None: the host sets no such limit."""
    memory_free: int | None = None
    """Bytes of `h_vmem` that jobs can still have there; None: it is not counted."""

    @property
    def in_service(self) -> bool:
        """Whether it takes new work. A load that is too high at the moment (`a`, `A`) does not count: most
        often that is the load of jobs which will end."""
        return not set(self.states) & set("uEdDsSCco")


class GridQueue(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster queue (queue_conf(5))."""

    name: str
    seconds: float = math.inf
    """The longest run time of its jobs (`h_rt`)."""
    pes: tuple[str, ...] = ()
    """Names of the parallel environments of its jobs."""


class Pe(msgspec.Struct, frozen=True, kw_only=True):
    """A parallel environment (sge_pe(5))."""

    name: str
    slots: int
    """Of all its jobs together."""
    rule: str
    """How slots are given: `$pe_slots` (on one host), `$fill_up`, `$round_robin`, or a number a host."""
    controls: bool = False
    """Whether `qrsh -inherit` may start processes on its hosts."""

    @property
    def per_host(self) -> int | None:
        """Slots on each host; None where that is not fixed."""
        return int(self.rule) if self.rule.isdecimal() and self.rule.strip("0") else None


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """What is configured, and changes rarely."""

    queues: Mapping[str, GridQueue]
    pes: Mapping[str, Pe]
    max_jobs: float = math.inf
    """Jobs of one user (`max_u_jobs`), running ones included."""
    default_memory: int | None = None
    """Bytes of `h_vmem` for each slot of a job that names none; None: it is not given as slots are."""


class EndedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record of qacct. Times in epoch seconds, 0 where it never ran."""

    number: str
    name: str
    owner: str
    host: str
    start: float
    end: float
    failed: int
    """Grid Engine's own code (sge_status(5)); 0: the job ended without help."""
    exit_status: int
    slots: int
    limit: float = math.inf
    """Seconds of its `h_rt`; `math.inf`: it named none."""
