"""The possible requests for tasks of one kind at a site: the arithmetic of p, tr, slots and rounds."""

from __future__ import annotations

import math

import msgspec

from adaptor.crafting.placing import placeable
from adaptor.crafting.situation import CraftingSituation, Demand, SiteRules
from adaptor.crafting.unit import RequestUnit, on_nodes, unit_of
from adaptor.model import QueueState
from adaptor.resources import Need, TaskSize
from adaptor.units import round_down, round_up

TINY = 1e-6
"""Differences in seconds or shares below this are rounding errors."""


def rounds_within(seconds: float, runtime: float, pad: float) -> int:
    """Tasks that one slot can run one after another in `seconds` of a pilot."""
    return max(0, math.floor((seconds - pad + TINY) / runtime))


class RequestShape(msgspec.Struct, frozen=True, kw_only=True):
    """The possible requests for tasks of one size and runtime, at a site with these rules."""

    rules: SiteRules
    site_processors: int
    """On which such tasks can run at the same time (`placeable`)."""
    task: TaskSize
    unit: RequestUnit
    chunk: Need | None
    """What a unit asks of the nodes; None: these are not known."""
    runtime: float

    @classmethod
    def of(cls, situation: CraftingSituation) -> RequestShape:
        return cls.for_demand(situation.rules, situation.queue, situation)

    @classmethod
    def for_demand(
        cls, rules: SiteRules, queue: QueueState | None, demand: Demand | CraftingSituation
    ) -> RequestShape:
        """`queue` is None where the size of the site is not known yet."""
        unit = unit_of(rules, queue, demand.task)
        return cls(
            rules=rules,
            site_processors=placeable(queue, demand.task) if queue else 0,
            task=demand.task,
            unit=unit,
            chunk=on_nodes(unit, rules, queue, demand.task) if queue and queue.nodes else None,
            runtime=demand.runtime,
        )

    @property
    def widest(self) -> int:
        """The largest possible p; 0 if no task fits."""
        if self.task.nodes == 1 and self.task.processors > self.rules.granularity > 1:
            return 0  # a task runs on one node
        return self.fit(min(self.rules.limits.max_proc, self.site_processors))

    def fit(self, processors: int) -> int:
        """The largest valid p up to `processors`."""
        return processors // self.unit.processors * self.unit.processors

    def slots(self, processors: int) -> int:
        """Tasks that run at the same time in a request of p = `processors`."""
        return self.unit.slots(processors)

    def processors_for(self, tasks: int) -> int:
        """The least p on which `tasks` run at the same time, regardless of the limits."""
        return math.ceil(tasks / self.unit.tasks) * self.unit.processors

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
