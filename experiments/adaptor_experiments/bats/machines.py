"""Machines that are charged by the hour and run one task at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adaptor_experiments.bats.design import UNIT, Site

IDLE = -1


class Machine:
    """One machine; `task` is IDLE where it has none."""

    __slots__ = ("end", "paid_until", "replica", "site", "started", "task")

    def __init__(self, site: int, now: float) -> None:
        self.site = site
        self.paid_until = now + UNIT
        self.task = IDLE
        self.started = 0.0
        self.end = 0.0
        """When its task really ends."""
        self.replica = False

    def copy(self) -> Machine:
        twin = Machine(self.site, 0.0)
        twin.paid_until, twin.task, twin.replica = self.paid_until, self.task, self.replica
        twin.started, twin.end = self.started, self.end
        return twin

    def start(self, task: int, runtime: float, now: float, replica: bool = False) -> None:
        self.task, self.started, self.end, self.replica = task, now, now + runtime, replica


class Fleet:
    """The machines that are held, and what was charged for them."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self.sites = sites
        self.machines: list[Machine] = []
        self.spent = 0.0

    def buy(self, site: int, number: int, now: float) -> None:
        self.machines.extend(Machine(site, now) for _ in range(number))
        self.spent += number * self.sites[site].price

    def renew(self, machine: Machine) -> None:
        machine.paid_until += UNIT
        self.spent += self.sites[machine.site].price

    def leave(self, gone: Iterable[Machine]) -> None:
        away = {id(machine) for machine in gone}
        self.machines = [machine for machine in self.machines if id(machine) not in away]

    def copy(self) -> Fleet:
        twin = Fleet(self.sites)
        twin.machines = [machine.copy() for machine in self.machines]
        twin.spent = self.spent
        return twin
