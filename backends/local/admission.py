"""What a request takes from this machine, or why it can never have it."""

from __future__ import annotations

import os

import msgspec

from adaptor.units import format_size
from backends.base import PilotOrder, SubmitRefused


class Machine(msgspec.Struct, frozen=True):
    """What the local site has."""

    processors: int
    memory: int
    """Bytes."""


class Share(msgspec.Struct, frozen=True):
    """What a job takes."""

    held: int
    """Processors."""
    memory: int
    """Bytes."""


def usable_processors() -> int:
    """Those of this machine that we may run on."""
    return len(os.sched_getaffinity(0))


def this_machine(processors: int | None) -> Machine:
    """This machine, with as many processors as the user says; None: as many as we may run on."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(processors or usable_processors(), memory)


def admit(order: PilotOrder, machine: Machine) -> Share:
    """A share of the memory goes with each processor; who needs more memory holds more processors.

    Raises:
        SubmitRefused: the request is larger than the machine, or no request at all.
    """
    p, tr = order.request.p, order.request.tr
    if p < 1 or tr < 1:
        raise SubmitRefused(f"a request of {p} processors for {tr} s: both must be 1 or more")
    if p > machine.processors:
        raise SubmitRefused(
            f"{p} processors were asked for, but the local site has {machine.processors}; "
            "lower `limits.max_proc`, or raise `processors` of the site"
        )
    needed = (p // order.processors_per_task) * (order.memory_per_task or 0)
    if needed > machine.memory:
        raise SubmitRefused(
            f"{format_size(needed)} of memory were asked for, but this machine has "
            f"{format_size(machine.memory)}; use fewer processors, or less memory per task (`mem`)"
        )
    held = max(p, -(-needed * machine.processors // machine.memory))  # rounded up
    return Share(held, machine.memory * held // machine.processors)
