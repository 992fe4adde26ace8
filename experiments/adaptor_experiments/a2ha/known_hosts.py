"""Equal tasks of a known runtime on a fixed number of hosts: the example of 2008, Fig. 1."""

from __future__ import annotations

import math

import msgspec


class EqualTasks(msgspec.Struct, frozen=True):
    """A bag; the runtime of its tasks in seconds."""

    count: int
    runtime: float


FIVE_MINUTES = EqualTasks(300, 300.0)
"""2008, §1: 25 hours of work."""


def speedup(tasks: EqualTasks, hosts: int) -> float:
    """Over one host, where each host takes the next task when it has ended one."""
    return tasks.count / math.ceil(tasks.count / hosts)


def charged_units(tasks: EqualTasks, hosts: int, unit: float) -> int:
    """Begun units (seconds each) of all hosts: some have run one task more than the others."""
    least, more = divmod(tasks.count, hosts)
    return sum(
        number * math.ceil(run * tasks.runtime / unit)
        for number, run in ((hosts - more, least), (more, least + 1))
    )
