"""The possible requests for tasks of one kind at a site: the arithmetic of p, tr, slots and rounds."""

from __future__ import annotations

import math

import msgspec

from adaptor.crafting.placing import placeable
from adaptor.crafting.situation import CraftingSituation, Demand, SiteRules
from adaptor.model import QueueState
from adaptor.units import round_down, round_up

TINY = 1e-6
"""Differences in seconds or shares below this are rounding errors."""


def task_slots(processors: int, processors_per_task: int, granularity: int = 1) -> int:
    """Tasks that run at the same time on `processors`; a task never spans two nodes."""
    if processors_per_task >= granularity:
        return processors // processors_per_task
    nodes, rest = divmod(processors, granularity)
    return nodes * (granularity // processors_per_task) + rest // processors_per_task


def rounds_within(seconds: float, runtime: float, pad: float) -> int:
    """Tasks that one slot can run one after another in `seconds` of a pilot."""
    return max(0, math.floor((seconds - pad + TINY) / runtime))


class RequestShape(msgspec.Struct, frozen=True, kw_only=True):
    """The possible requests for tasks of one size and runtime, at a site with these rules."""

    rules: SiteRules
    site_processors: int
    """On which such tasks can run at the same time (`placeable`)."""
    processors_per_task: int
    runtime: float

    @classmethod
    def of(cls, situation: CraftingSituation) -> RequestShape:
        return cls.for_demand(situation.rules, situation.queue, situation)

    @classmethod
    def for_demand(
        cls, rules: SiteRules, queue: QueueState | None, demand: Demand | CraftingSituation
    ) -> RequestShape:
        """`queue` is None where the size of the site is not known yet."""
        return cls(
            rules=rules,
            site_processors=placeable(queue, demand.processors_per_task, demand.memory_per_task)
            if queue
            else 0,
            processors_per_task=demand.processors_per_task,
            runtime=demand.runtime,
        )

    @property
    def unit(self) -> int:
        """p is a multiple of it: whole nodes where the site allocates whole nodes, else whole tasks."""
        if self.processors_per_task <= self.rules.granularity:
            return self.rules.granularity
        return math.lcm(self.processors_per_task, self.rules.granularity)

    @property
    def widest(self) -> int:
        """The largest possible p; 0 if no task fits."""
        if self.processors_per_task > self.rules.granularity > 1:
            return 0  # a task runs on one node
        return self.fit(min(self.rules.limits.max_proc, self.site_processors))

    def fit(self, processors: int) -> int:
        """The largest valid p up to `processors`."""
        return processors // self.unit * self.unit

    def slots(self, processors: int) -> int:
        """Tasks that run at the same time in a request of p = `processors`."""
        return task_slots(processors, self.processors_per_task, self.rules.granularity)

    def processors_for(self, tasks: int) -> int:
        """The least p on which `tasks` run at the same time, regardless of the limits."""
        return math.ceil(tasks / self.slots(self.unit)) * self.unit

    def rounds(self, tr: float) -> int:
        """Tasks that each slot of a request can run one after another in tr seconds."""
        return rounds_within(tr, self.runtime, self.rules.pad)

    def longest_tr(self, duration: float) -> int:
        """The largest tr for a free slot of `duration` seconds (may be `math.inf`)."""
        max_tr = self.rules.limits.max_tr
        usable = duration - self.rules.slot_margin
        if usable >= round_up(max_tr, self.rules.time_resolution):
            return max_tr
        return min(max_tr, max(0, round_down(usable + TINY, self.rules.time_resolution)))

    def tr_for(self, rounds: int, longest: int) -> int:
        """The tr in which each slot runs `rounds` tasks, in the scheduler's resolution, at most `longest`."""
        needed = max(rounds * self.runtime + self.rules.pad, self.rules.least_tr)
        return min(longest, round_up(needed - TINY, self.rules.time_resolution))
