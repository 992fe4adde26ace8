"""The worker's part of its node, besides what its pilot asked for there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from adaptor.processes.devices import devices_of
from adaptor.shortfalls import Shortfall, ShortfallSign
from adaptor.worker.binding import affinity_of_process
from adaptor.worker.memory import memory_limit

_ROUNDING = 1 << 20  # bytes: schedulers count whole MiB or kB, and the kernel whole pages


class AskedOfNode(NamedTuple):
    """Resources that the pilot asked for on one node."""

    processors: int
    memory: int | None  # bytes; None: the pilot asked for none
    gpus: int


class NodeBounds(NamedTuple):
    """Resources that this process may use; None: nothing says so."""

    affinity: int | None  # processors of the kernel, where they are fewer than those online
    step: int | None  # processors of the job step, in the scheduler's words
    memory: int | None  # bytes: the tightest limit of its cgroups
    gpus: int  # GPUs that its environment names


class GivenByNode(NamedTuple):
    """Resources that the worker offers to tasks; memory in bytes."""

    processors: int
    memory: int
    shortfalls: tuple[Shortfall, ...]


def given(asked: AskedOfNode, bounds: NodeBounds, machine: int) -> GivenByNode:
    """The worker offers no more than it has. `machine`: the memory of the node, bytes.

    A pilot's processor is a thread or a core (`binding.units_of`). There are at least as many threads as
    cores, so fewer threads than processors are fewer by either count.
    """
    shortfalls = []
    processors = asked.processors
    sources: tuple[tuple[int | None, ShortfallSign], ...] = (
        (bounds.affinity, "affinity"),
        (bounds.step, "job step"),
    )
    for count, by in sources:
        if count is not None and 0 < count < processors:
            processors = count
            shortfalls = [Shortfall("processors", asked.processors, count, by)]
    limit = machine if bounds.memory is None else min(machine, bounds.memory)
    memory = limit if asked.memory is None else min(asked.memory, limit)
    if asked.memory is not None and bounds.memory is not None and memory + _ROUNDING <= asked.memory:
        shortfalls.append(Shortfall("memory", asked.memory, memory, "cgroup"))
    if bounds.gpus < asked.gpus:
        shortfalls.append(Shortfall("gpus", asked.gpus, bounds.gpus, "devices"))
    return GivenByNode(processors, memory, tuple(shortfalls))


def asked_of(environment: Mapping[str, str]) -> AskedOfNode:
    """Resources that a pilot's script names; one processor if it names nothing readable."""
    memory = _number(environment.get("ADAPTOR_MEMORY"))
    gpus = _number(environment.get("ADAPTOR_GPUS"))
    return AskedOfNode(_number(environment.get("ADAPTOR_PROCESSORS")) or 1, memory, gpus or 0)


def bounds_of(environment: Mapping[str, str]) -> NodeBounds:
    """Bounds of this process. The local site's user says how many processors there are, with any affinity."""
    free = environment.get("ADAPTOR_AFFINITY") == "ignored"
    return NodeBounds(
        affinity=None if free else affinity(),
        step=_number(environment.get("ADAPTOR_STEP_PROCESSORS")),
        memory=memory_limit(),
        gpus=len(devices_of(environment).ids),
    )


def affinity() -> int | None:
    """Processors on which this process may run; None: on all that are online."""
    count = len(affinity_of_process())
    return count if 0 < count < os.sysconf("SC_NPROCESSORS_ONLN") else None


def machine_memory() -> int:
    """Bytes of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 20 else None
