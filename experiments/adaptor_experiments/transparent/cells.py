"""From outcomes to cells: one kind of bag on one trace under one load, by each strategy."""

from __future__ import annotations

import msgspec
import numpy as np

from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.tariffs import Tariff
from adaptor_experiments.bootstrap import Interval, drawn_means, weights
from adaptor_experiments.tables import Runs
from adaptor_experiments.transparent.design import DONATED, STRATEGIES, Donated, Outcome

HOUR = 3600.0


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a strategy in a cell: means over the samples, in seconds, credits and processor-hours."""

    turnaround: Interval
    cost: Interval
    """Credits."""
    held: float
    used: float
    lost: float
    reclaims: float
    local_jobs: float
    later: float
    delay: float
    """Hours by which local jobs started later, in sum."""
    slower: float
    """Mean bounded slowdown of local jobs over that without the bag; geometric means over the samples."""
    slower_per_processor: float


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    trace: str
    load: float
    offered: float
    tasks: int
    mean: int
    samples: int
    by: dict[str, Share]
    explicit: dict[Donated, Interval]
    """Mean turnaround by the better of static and adaptive, over that on donated nodes alone."""
    mixed: Interval
    """Mean turnaround by the better of adaptive and transparent, over that by mixed."""
    cheaper: Interval
    """Mean cost by adaptive, over that by mixed."""

    @property
    def dearer(self) -> float:
        """Mean cost by mixed, over that by transparent."""
        return self.by["mixed"].cost.value / self.by["transparent"].cost.value

    @property
    def level(self) -> str:
        """Level of the load. The paper has no bounds; these put the traces as they are on both sides."""
        return "low" if self.offered < 0.6 else "medium" if self.offered < 0.8 else "heavy"


def summarise(outcomes: Runs[Outcome], seed: int, tariff: Tariff) -> list[Cell]:
    """Intervals are percentiles of a bootstrap over the submission times (95 %)."""
    groups = outcomes.by("trace", "load", "tasks", "mean")
    return [_cell(group, seed, tariff) for group in groups.values()]


def cost(outcome: Outcome, tariff: Tariff) -> float:
    """Credits for all that a bag has held, whether a task ran there, and whether it finished, or not."""
    return in_credits(tariff.charge("explicit", 1, outcome.held) + tariff.charge("donated", 1, outcome.used))


def _cell(group: Runs[Outcome], seed: int, tariff: Tariff) -> Cell:
    ordered = Runs(sorted(group, key=lambda outcome: outcome.sample)).by("strategy")
    samples = len(ordered["transparent"])
    again = weights(samples, seed)
    times = {name: drawn_means(ordered[name].values("turnaround"), again) for name in STRATEGIES}
    costs = {
        name: drawn_means(ordered[name].values(lambda each: cost(each, tariff)), again) for name in STRATEGIES
    }
    explicit = times["static"].through(np.minimum, times["adaptive"])
    best = times["adaptive"].through(np.minimum, times["transparent"])
    first = group[0]
    return Cell(
        trace=first.trace,
        load=first.load,
        offered=first.offered,
        tasks=first.tasks,
        mean=first.mean,
        samples=samples,
        by={
            name: Share(
                turnaround=times[name].interval,
                cost=costs[name].interval,
                **{what: ordered[name].mean(what) / HOUR for what in ("held", "used", "lost", "delay")},
                **{what: ordered[name].mean(what) for what in ("reclaims", "local_jobs", "later")},
                **{what: ordered[name].geometric(what) for what in ("slower", "slower_per_processor")},
            )
            for name in STRATEGIES
        },
        explicit={name: (explicit / times[name]).interval for name in DONATED},
        mixed=(best / times["mixed"]).interval,
        cheaper=(costs["adaptive"] / costs["mixed"]).interval,
    )
