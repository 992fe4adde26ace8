"""What a request takes from this machine, or why it can never have it."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from adaptor.resources import TaskSize
from adaptor.units import counted, format_size
from backends.base import PilotOrder, SubmitRefused
from backends.local.devices import devices
from backends.local.planning import Share


class Machine(msgspec.Struct, frozen=True):
    """What the local site has."""

    processors: int
    memory: int
    """Bytes."""
    devices: tuple[str, ...] = ()
    """The ids of its GPUs."""

    @property
    def share(self) -> Share:
        return Share(self.processors, self.memory, len(self.devices))


class Admission(msgspec.Struct, frozen=True):
    """What a job takes, and what its worker may use."""

    holds: Share
    memory: int
    """Bytes: what it holds, or of a job that does not say, as much as goes with its processors."""


def usable_processors() -> int:
    """Those of this machine that we may run on."""
    return len(os.sched_getaffinity(0))


def this_machine(processors: int | None, gpus: int | Sequence[int | str] | None = None) -> Machine:
    """This machine, with as many processors as the user says; None: as many as we may run on.

    Args:
        gpus: see `backends.local.devices.devices`.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(processors or usable_processors(), memory, devices(gpus))


def admit(order: PilotOrder, machine: Machine) -> Admission:
    """What the order's tasks need together.

    Raises:
        SubmitRefused: the request is larger than the machine, or no request at all.
    """
    p, tr, task = order.request.p, order.request.tr, order.task
    if p < 1 or tr < 1:
        raise SubmitRefused(f"a request of {p} processors for {tr} s: both must be 1 or more")
    tasks = p // task.processors
    needs = Share(p, tasks * (task.memory or 0), task.gpus_for(tasks) if task.gpus else 0)
    problem = _too_large(task, needs, machine)
    if problem:
        raise SubmitRefused(problem)
    return Admission(needs, needs.memory or machine.memory * p // machine.processors)


def _too_large(task: TaskSize, needs: Share, machine: Machine) -> str:
    """Why the machine can never give this, with the way out; empty where it can."""
    if task.nodes > 1:
        return f"each task needs {task.nodes} nodes, and the local site is one machine; use another site"
    if needs.processors > machine.processors:
        return (
            f"{needs.processors} processors were asked for, but the local site has {machine.processors}; "
            "lower `limits.max_proc`, or raise `processors` of the site"
        )
    if needs.memory > machine.memory:
        return (
            f"{format_size(needs.memory)} of memory were asked for, but this machine has "
            f"{format_size(machine.memory)}; use fewer processors, or less memory per task (`mem`)"
        )
    if needs.gpus and task.gpu_type:
        return f"{task.gpu_type} GPUs were asked for, but the local site does not know types: leave it out"
    if needs.gpus > len(machine.devices):
        return (
            f"{counted(needs.gpus, 'GPU')} were asked for, but the local site has {len(machine.devices)}; "
            "use fewer processors, or set `gpus` of the site"
        )
    return ""
