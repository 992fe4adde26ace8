"""The sampling phase (slide "Runtime Estimation"): what it teaches, does of the bag, and costs.

"This might be costly and/or time consuming": the machines of the sample are paid from the user's money by
whole hours, the sampled tasks are done, and the time that is paid when the menu is shown serves the rest.
"""

from __future__ import annotations

import copy
import heapq
import math
import random
from collections.abc import Iterable, Sequence

import msgspec

from adaptor.budget.provisioning.quoting import compact_samples, learn, sample_size
from adaptor.budget.provisioning.task_time import TaskTime
from adaptor_experiments.bats.design import SAMPLERS, SITES, UNIT

IDLE = -1


class Machine:
    """One machine, charged by the hour, that runs one task at a time; `task` is IDLE where it has none."""

    __slots__ = ("end", "paid_until", "replica", "site", "started", "task")

    def __init__(self, site: int, now: float) -> None:
        self.site = site
        self.paid_until = now + UNIT
        self.task = IDLE
        self.started = 0.0
        self.end = 0.0  # when its task really ends
        self.replica = False

    def start(self, task: int, runtime: float, now: float, replica: bool = False) -> None:
        self.task, self.started, self.end, self.replica = task, now, now + runtime, replica


class Fleet:
    """The machines that are held, and what was charged for them."""

    def __init__(self) -> None:
        self.machines: list[Machine] = []
        self.spent = 0.0

    def buy(self, site: int, number: int, now: float) -> None:
        self.machines.extend(Machine(site, now) for _ in range(number))
        self.spent += number * SITES[site].price

    def renew(self, machine: Machine) -> None:
        machine.paid_until += UNIT
        self.spent += SITES[machine.site].price

    def idle(self) -> list[Machine]:
        return [machine for machine in self.machines if machine.task == IDLE]

    def next_event(self) -> float:
        """Time at which a task ends or paid time is over."""
        return min(
            machine.paid_until if machine.task == IDLE else min(machine.paid_until, machine.end)
            for machine in self.machines
        )

    def leave(self, gone: Iterable[Machine]) -> None:
        away = {id(machine) for machine in gone}
        self.machines = [machine for machine in self.machines if id(machine) not in away]

    def copy(self) -> Fleet:
        twin = Fleet()
        twin.machines, twin.spent = [copy.copy(machine) for machine in self.machines], self.spent
        return twin


class Sampled(msgspec.Struct, frozen=True):
    """State of a bag when its menu is shown, which is at 0 s."""

    known: dict[str, TaskTime]
    done: frozenset[int]
    """Tasks that have a result."""
    fleet: Fleet
    """The machines of the sample whose hours are not over, and what all of them have cost."""

    @property
    def cost(self) -> float:
        """Credits."""
        return self.fleet.spent


def sample(times: Sequence[Sequence[float]], draw: random.Random) -> Sampled:
    """Run a compact sample. `times` are the runtimes by site, then by task."""
    tasks = len(times[0])
    names = [site.name for site in SITES]
    drawn = compact_samples(tasks, names, sample_size(tasks), draw.randrange(2**32))
    places = {name: (*drawn.everywhere, *drawn.spread[name]) for name in names}
    ends = [_ends([own[task] for task in places[name]]) for name, own in zip(names, times, strict=True)]
    return Sampled(
        known=learn(
            {name: {task: own[task] for task in places[name]} for name, own in zip(names, times, strict=True)}
        ),
        done=frozenset(task for of_site in places.values() for task in of_site),
        fleet=_fleet(ends),
    )


def _ends(runtimes: Sequence[float]) -> list[float]:
    """Time at which each machine of a site has done its part: each task goes to the first free machine."""
    machines = [0.0] * SAMPLERS
    for runtime in runtimes:
        heapq.heappush(machines, heapq.heappop(machines) + runtime)
    return machines


def _fleet(ends: Sequence[Sequence[float]]) -> Fleet:
    """The machines that are there when the last sample ends; those idle at the end of an hour have left."""
    fleet = Fleet()
    shown = max(end for of_site in ends for end in of_site)
    for site, of_site in enumerate(ends):
        for end in of_site:
            units = math.ceil(end / UNIT)
            fleet.spent += units * SITES[site].price
            if units * UNIT > shown:
                machine = Machine(site, 0.0)
                machine.paid_until = units * UNIT - shown
                fleet.machines.append(machine)
    return fleet
