"""What this worker has of its node, beside what its pilot asked for there.

Needs the standard library only: the check of a site uses it where nothing else may be installed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from adaptor.shortfalls import Evidence, Shortfall
from adaptor.worker.devices import devices_of

_CGROUPS = Path("/proc/self/cgroup")
_CGROUP_ROOT = Path("/sys/fs/cgroup")
_ROUNDING = 1 << 20
"""Bytes: schedulers count whole MiB or kB, and the kernel whole pages."""


class Asked(NamedTuple):
    """Of one node."""

    processors: int
    memory: int | None
    """Bytes; None: the pilot asked for none."""
    gpus: int


class Bounds(NamedTuple):
    """What this process may use; None: nothing says so."""

    affinity: int | None
    """Processors of the kernel, where they are fewer than those online."""
    step: int | None
    """Processors of the job step, in the scheduler's words."""
    memory: int | None
    """Bytes: the tightest limit of its cgroups."""
    gpus: int
    """Those that its environment names."""


class Given(NamedTuple):
    """What the worker offers to tasks; memory in bytes."""

    processors: int
    memory: int
    shortfalls: tuple[Shortfall, ...]


def given(asked: Asked, bounds: Bounds, machine: int) -> Given:
    """The worker offers no more than it has. `machine`: the memory of the node, bytes.

    A pilot's processor is a thread or a core (`binding.units_of`). There are at least as many threads as
    cores, so fewer threads than processors are fewer by either count.
    """
    shortfalls = []
    processors = asked.processors
    sources: tuple[tuple[int | None, Evidence], ...] = (
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
    return Given(processors, memory, tuple(shortfalls))


def asked_of(environment: Mapping[str, str]) -> Asked:
    """What a pilot's script says; of one that says nothing readable, one processor."""
    memory = _number(environment.get("ADAPTOR_MEMORY"))
    gpus = _number(environment.get("ADAPTOR_GPUS"))
    return Asked(_number(environment.get("ADAPTOR_PROCESSORS")) or 1, memory, gpus or 0)


def bounds_of(environment: Mapping[str, str], node: str) -> Bounds:
    """Of this process. The local site's user says how many processors there are, whatever the affinity."""
    free = environment.get("ADAPTOR_AFFINITY") == "ignored"
    return Bounds(
        affinity=None if free else affinity(),
        step=_number(environment.get("ADAPTOR_STEP_PROCESSORS")),
        memory=memory_limit(),
        gpus=len(devices_of(environment, node).ids),
    )


def affinity() -> int | None:
    """Processors on which this process may run; None: on all that are online."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    count = len(os.sched_getaffinity(0))
    return count if count < os.sysconf("SC_NPROCESSORS_ONLN") else None


def machine_memory() -> int:
    """Bytes of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def memory_limit(cgroups: Path = _CGROUPS, root: Path = _CGROUP_ROOT) -> int | None:
    """Bytes that the tightest cgroup of this process allows, of either version; None: none does."""
    try:
        lines = cgroups.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    limits = []
    for line in lines:
        match = re.fullmatch(r"\d+:([^:]*):(/.*)", line)
        if match is None or "memory" not in (match[1] or "memory").split(","):
            continue
        place, name = (root, "memory.max") if not match[1] else (root / "memory", "memory.limit_in_bytes")
        folder = place / match[2].lstrip("/")
        limits += [_limit(each / name) for each in (folder, *folder.parents) if each.is_relative_to(place)]
    return min((limit for limit in limits if limit is not None), default=None)


def _limit(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    # Version 1 says "no limit" by a number near 2**63.
    return int(text) if text.isdigit() and int(text) < 2**60 else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 20 else None
