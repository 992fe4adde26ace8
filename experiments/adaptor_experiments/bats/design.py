"""Design of the experiment: bags, sites, budgets and ways to end a bag.

The slides give the kinds of bags, their number and the ways; they give no parameters. Those below are
ours, with the hour as charging unit and two kinds of machines as in the slides' examples.
"""

from __future__ import annotations

import zlib
from typing import Literal, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.task_time import TaskTime

Floats = npt.NDArray[np.float64]
Kind = Literal["normal", "levy", "multi-modal"]
BudgetName = Literal["minimal +10 %", "fastest"]
Way = Literal["none", "random", "stochastic", "daemon", "perfect", "migration", "nothing lost"]
"""Way to end a bag: `daemon` as for every bag of a user, the others as the slides compare them.

`nothing lost` is `migration` of tasks that go on where they were, which no machine can do: it shows what
migration loses by killing a task.
"""

KINDS: tuple[Kind, ...] = get_args(Kind)
BUDGETS: tuple[BudgetName, ...] = get_args(BudgetName)
EVERY_WAY: tuple[Way, ...] = get_args(Way)
WAYS = EVERY_WAY[:-1]
MIGRATING: tuple[Way, ...] = ("migration", "nothing lost")
CASES: tuple[tuple[Kind, BudgetName], ...] = tuple((kind, budget) for kind in KINDS for budget in BUDGETS)

UNIT = 3600.0  # seconds of the charging unit (ATU)
INTERVAL = 300.0  # seconds between two re-evaluations (slide "Progress Monitoring")
SAMPLERS = 5
"""Machines of each kind that run the sample: about an hour for it, and few that are paid too long."""
THRESHOLD = 30
"""Waiting tasks, from which on migration begins: the size of the sample (slide "Tail Phase (2/2)")."""


class Site(msgspec.Struct, frozen=True):
    """A kind of machine."""

    name: str
    machines: int
    price: float
    """Credits per machine and hour."""
    speed: float
    """A task of the bag takes its runtime divided by this."""

    def offer(self, task: TaskTime) -> SiteOffer:
        return SiteOffer(
            name=self.name, price=self.price, processors=self.machines, task=task, charging_unit=UNIT
        )


SITES = (Site("slow", 32, 1.0, 1.0), Site("fast", 32, 2.5, 2.0))


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    seed: int = 1
    bags: int = 30
    """Bags of each kind."""
    runs: int = 30
    """Runs of each bag, in different orders."""
    tasks: int = 1000


def bag(kind: Kind, settings: Settings, number: int) -> Floats:
    """Runtimes in seconds on a machine of speed 1."""
    draw = np.random.default_rng([settings.seed, number, zlib.crc32(kind.encode())])
    if kind == "normal":
        return np.maximum(1.5, draw.normal(15.0, 2.24, settings.tasks)) * 60
    if kind == "levy":
        return _levy(draw, settings.tasks)
    return _multi_modal(draw, settings.tasks)


def _levy(draw: np.random.Generator, tasks: int) -> Floats:
    """Heavy-tailed: Lévy with a scale of 6 minutes, what is above 90 minutes drawn again."""
    found = np.empty(0)
    while len(found) < tasks:
        values = 6.0 / draw.normal(0.0, 1.0, 2 * tasks) ** 2
        found = np.concatenate((found, values[values <= 90.0]))
    return found[:tasks] * 60


def _multi_modal(draw: np.random.Generator, tasks: int) -> Floats:
    """Four kinds of tasks in one bag, around 3, 10, 20 and 50 minutes."""
    means = np.array([3.0, 10.0, 20.0, 50.0])
    mode = draw.choice(4, size=tasks, p=[0.35, 0.35, 0.2, 0.1])
    values = draw.normal(means[mode], 0.1 * means[mode])
    return np.maximum(0.5, values) * 60
