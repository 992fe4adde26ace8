"""Time of one step of the host estimators, for any number of tasks in the bag.

Alone: `python -m bench.host_estimator`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from adaptor.budget.provisioning.hosts import Hosts, HostTerms
from adaptor.budget.provisioning.pacing import Course, advise
from adaptor.budget.provisioning.presets import PREFERENCES
from adaptor.model import Preference
from adaptor.runtimes.known import KnownRuntimes
from bench.table import Row, show, timed

TASKS, GROUPS, STEPS = 100_000, 100, 200
TARGET = 0.001


def seconds(prefer: Preference) -> float:
    """The mean of a step with so many groups of hosts."""
    finished = TASKS - STEPS
    known = KnownRuntimes(finished=finished, total=220.0 * finished, squares=220.0**2 * finished, told=220.0)
    course = Course(
        now=0.0,
        tasks=TASKS,
        known=known,
        hosts=[Hosts(50, 300.0, 3600.0 + group) for group in range(GROUPS)],
        terms=HostTerms(unit=3600.0, startup=300.0),
        preset=PREFERENCES[prefer],
        assumed=220.0,
    )
    began = time.perf_counter()
    for _ in range(STEPS):
        advise(course)
    return (time.perf_counter() - began) / STEPS


def rows() -> Iterator[Row]:
    for prefer in PREFERENCES:
        yield timed(f"{prefer}: {TASKS:,} tasks, {GROUPS} groups of hosts", seconds(prefer), TARGET)


if __name__ == "__main__":
    show("One step of the host estimators", rows())
