"""Design of the experiment: the resources of Tables 1 and 2, the targets, and the draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import msgspec
import numpy as np

from adaptor.budget.accounting.tariffs import HOUR
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.task_time import TaskTime
from adaptor_experiments.ricciardi import equations as paper

Goal = Literal["time", "cost"]
Flavour = Literal["paper", "even odds", "daemon"]
"""Source of the allocation: the paper as printed, or `split_tasks` in one of its variants."""
Change = Literal["task", "period"]
"""Unit for which T_ST is drawn: a task, or all that a resource starts within one Δt. The paper is silent."""
Variation = Literal["printed", "no spread", "more tasks"]
"""Variation: the paper's; or with σ = 0, or with `MORE` times the tasks: it shows why targets are missed."""

GOALS: tuple[Goal, ...] = get_args(Goal)
FLAVOURS: tuple[Flavour, ...] = get_args(Flavour)
CHANGES: tuple[Change, ...] = get_args(Change)
VARIATIONS: tuple[Variation, ...] = get_args(Variation)
COUNTS = (2, 3, 4)  # of resources: the first ones of a table
TASKS = 2000
MORE = 10
LEAST = 0.05  # of the mean: shorter runtimes, which a normal distribution has too, are drawn again
SECOND = 0.01  # the charging unit, in seconds: the paper charges by the second, without rounding


class Resource(msgspec.Struct, frozen=True):
    """A line of Table 1 or 2."""

    name: str
    processors: int
    """N_Rmax."""
    seconds: float
    """T_ST, known at the start."""
    cost: float
    """Credits per processor-second."""
    sigma: float
    """Standard deviation of the normal distribution of T_ST."""

    @property
    def offer(self) -> SiteOffer:
        return SiteOffer(
            name=self.name,
            price=self.cost * HOUR,
            processors=self.processors,
            task=TaskTime(self.seconds, self.sigma),
            charging_unit=SECOND,
        )


STABLE = (
    Resource("Grid", 100, 6.0, 1.5, 1.8),
    Resource("Supercomputer", 80, 4.0, 2.0, 0.1),
    Resource("Cloud1", 40, 5.5, 1.8, 0.6),
    Resource("Cloud2", 20, 4.8, 1.9, 0.4),
)
UNSTABLE = (
    Resource("Grid", 100, 7.0, 1.2, 2.8),
    Resource("Supercomputer", 80, 4.0, 2.0, 1.1),
    Resource("Cloud1", 40, 5.6, 1.6, 1.6),
    Resource("Cloud2", 20, 5.0, 1.8, 1.4),
)
TABLES = {1: STABLE, 2: UNSTABLE}


class Cell(msgspec.Struct, frozen=True, order=True):
    """One bar of Fig. 1 or 2, by one allocation."""

    table: int
    count: int
    goal: Goal
    flavour: Flavour
    change: Change = "task"
    variation: Variation = "printed"

    @property
    def resources(self) -> tuple[Resource, ...]:
        some = TABLES[self.table][: self.count]
        if self.variation == "no spread":
            return tuple(msgspec.structs.replace(each, sigma=0.0) for each in some)
        return some

    def tasks(self, printed: int) -> int:
        """The number of tasks of a run, where the figure has `printed`."""
        return printed * MORE if self.variation == "more tasks" else printed


class Target(msgspec.Struct, frozen=True):
    """The trade-off that is fixed at the start."""

    goal: Goal
    seconds: float
    """The target, or the least time that the paper's own plan promises for the target cost."""
    credits: float
    """The target, or the least cost that the paper's own plan promises for the target time."""


def target(resources: tuple[Resource, ...], goal: Goal, tasks: int) -> Target:
    """The middle of the possible times, or of the possible costs (§4)."""
    offers = [each.offer for each in resources]
    least, soonest = paper.least_cost(tasks, offers), paper.least_seconds(tasks, offers)
    if goal == "time":
        seconds = (soonest + least[1]) / 2
        return Target(goal, seconds, _cost(tasks, offers, paper.for_time(tasks, offers, seconds)))
    credits = (least[0] + paper.cost_of_least_seconds(tasks, offers)) / 2
    counts = paper.for_cost(tasks, offers, credits)
    return Target(goal, _seconds(tasks, offers, counts), credits)


def _seconds(tasks: int, offers: list[SiteOffer], counts: list[int] | None) -> float:
    assert counts is not None  # the middle of what is possible
    return tasks / sum(count / each.task.mean for each, count in zip(offers, counts, strict=True))


def _cost(tasks: int, offers: list[SiteOffer], counts: list[int] | None) -> float:
    """Eq. 8."""
    assert counts is not None  # the middle of what is possible
    rate = sum(count * each.price / HOUR for each, count in zip(offers, counts, strict=True))
    return _seconds(tasks, offers, counts) * rate


class Runtimes:
    """The runtimes that each resource will show, the same for every goal, count and allocation."""

    def __init__(
        self, resources: tuple[Resource, ...], seed: Sequence[int], change: Change, period: float
    ) -> None:
        self._draws = [np.random.default_rng([*seed, place]) for place in range(len(resources))]
        self._resources, self._change, self._period = resources, change, period
        self._drawn: list[list[float]] = [[] for _ in resources]
        self._used = [0 for _ in resources]

    def next(self, site: int, now: float) -> float:
        """Seconds of the task that the resource starts now."""
        if self._change == "task":
            place = self._used[site]
            self._used[site] += 1
        else:
            place = int(now / self._period)
        while len(self._drawn[site]) <= place:
            resource = self._resources[site]
            values = self._draws[site].normal(resource.seconds, resource.sigma, 1000)
            self._drawn[site].extend(values[values >= LEAST * resource.seconds].tolist())
        return self._drawn[site][place]
