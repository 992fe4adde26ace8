"""How long one step of the host estimators takes, however many tasks the bag has. Target: 1 ms.

Run as `python -m bench.host_estimator`.
"""

from __future__ import annotations

import time

from adaptor.budget.estimation.runtime_sums import Sums
from adaptor.budget.provisioning.hosts import Hosts, HostTerms
from adaptor.budget.provisioning.pacing import Course, advise
from adaptor.budget.provisioning.presets import PREFERENCES

TASKS, GROUPS, STEPS = 100_000, 100, 200


def milliseconds(prefer: str) -> float:
    """The mean of a step with so many groups of hosts."""
    finished = TASKS - STEPS
    course = Course(
        now=0.0,
        tasks=TASKS,
        sums=Sums(finished=finished, total=220.0 * finished, squares=220.0**2 * finished),
        hosts=[Hosts(50, 300.0, 3600.0 + group) for group in range(GROUPS)],
        terms=HostTerms(unit=3600.0, startup=300.0),
        hint=220.0,
        prefer=prefer,
    )
    began = time.perf_counter()
    for _ in range(STEPS):
        advise(course)
    return (time.perf_counter() - began) / STEPS * 1000


def main() -> None:
    for prefer in PREFERENCES:
        print(f"{prefer:9} {milliseconds(prefer):.3f} ms with {TASKS:,} tasks and {GROUPS} groups of hosts")


if __name__ == "__main__":
    main()
