"""A²HA: how many hosts to buy for a bag whose task runtimes are not known (Silva et al. 2008, 2011)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.budget.estimation.runtime_sums import Runtimes, Sums
from adaptor.budget.provisioning import work_bound
from adaptor.budget.provisioning.hosts import Advice, Hosts, Terms, Verdict
from adaptor.budget.provisioning.presets import Preset
from adaptor.units import format_duration


class EstimatorState(msgspec.Struct, frozen=True):
    """All that a `HostEstimator` has learned."""

    sums: Sums
    ratio: float
    hinted: int


class HostEstimator:
    """Decides how many hosts a bag's heuristic may buy, and which go on into another unit.

    Call `runtimes.start`, `finish` and `stop` as tasks do so; `step` whenever a task finished, and
    every few minutes with `periodic` (§3.4: 5 minutes). A step costs as much as there are groups of hosts,
    whatever the number of tasks. Tasks must be taken in random order (§3.2).
    """

    def __init__(self, tasks: int, terms: Terms, preset: Preset, state: EstimatorState | None = None) -> None:
        self._tasks, self._terms, self._preset = tasks, terms, preset
        self.runtimes = Runtimes(state.sums if state else None)
        self._ratio = state.ratio if state else preset.creation_ratio
        self._hinted = state.hinted if state else 0

    @property
    def state(self) -> EstimatorState:
        return EstimatorState(self.runtimes.sums, self._ratio, self._hinted)

    @property
    def remaining(self) -> int:
        """Tasks without a result, running ones included."""
        return self._tasks - self.runtimes.finished

    @property
    def waiting(self) -> int:
        return self.remaining - self.runtimes.running

    def first(self, hosts: int | None = None) -> Advice:
        """With what to begin: one host, or as a hint on the runtimes says, corrected by the ratio (§6)."""
        if hosts is None:
            frugal = self._preset.certainty is not None
            bought = min(self._tasks, work_bound.samples(self._tasks) if frugal else 1)
            return Advice(bought, 1, "the first hosts find out how long the tasks take")
        bought = max(1, min(self._tasks, math.ceil(hosts * self._ratio)))
        self._hinted = bought
        return Advice(bought, 1, f"{bought} of the {hosts} hosts that the hint asks for")

    def step(self, now: float, hosts: Sequence[Hosts], periodic: bool = False) -> Advice:
        """What to buy now (2011: Figs 3, 5 and 7, §3.6; 2008: Fig. 3)."""
        average = self.runtimes.corrected_mean(now) if periodic else self.runtimes.mean
        there = sum(each.count for each in hosts)
        if not self.remaining:
            return Advice(0, 0, "all tasks are finished")
        if not average:
            return Advice(0 if there else 1, 1, "no task has finished yet")
        wanted = self._wanted(now, average, hosts)
        if not there:
            wanted = max(1, wanted)
        return self._within_half(wanted, there, average)

    def _wanted(self, now: float, average: float, hosts: Sequence[Hosts]) -> int:
        if self._preset.certainty is not None:
            uncovered = work_bound.overflow(self.runtimes, self.waiting, hosts, now, self._preset.certainty)
            return min(self.waiting, work_bound.necessary(self.runtimes, uncovered, self._terms))
        possible = sum(each.count * int(each.time_left(now) / average) for each in hosts)
        missing = round((self.remaining - possible) * average / self._terms.usable)
        if missing < 0:
            return 0
        wanted = self._corrected(missing)
        self._ratio += (1 - self._ratio) * self._preset.increase_ratio
        return wanted

    def _corrected(self, missing: int) -> int:
        if self._ratio == 1.0:
            return missing
        if self._preset.rounding == "plus one":
            return int(missing * self._ratio) + 1
        return math.ceil(missing * self._ratio)

    def _within_half(self, wanted: int, there: int, average: float) -> Advice:
        """Never more hosts than half the tasks: each runs two at least, for more units if need be (§3.6)."""
        limit = max(1, (self._tasks + self._hinted * self._preset.beside_hint) // 2)
        allowed = max(0, limit - there)
        bought = min(wanted, self.waiting, allowed)
        reason = (
            f"{self.remaining} of {self._tasks} tasks remain, of {format_duration(average)} each: "
            f"hosts there {there}, more to buy {bought}"
        )
        if allowed < min(wanted, self.waiting):
            reason += f", not {wanted}, so that each runs two tasks at least"
        elif self.waiting < wanted:
            reason += f", not {wanted}, because no more tasks wait"
        return Advice(bought, self._units(average), reason)

    def _units(self, average: float) -> int:
        if average <= self._terms.usable / 2:
            return 1
        return math.ceil((self._terms.startup + 2 * average) / self._terms.unit)

    def verdict(self, now: float, ran: float, others: Sequence[Hosts]) -> Verdict:
        """Whether a host whose paid time is over goes on with its task, which ran for so many seconds (§3.5).

        `others` are the hosts without this one. A task that is cut starts anew elsewhere.
        """
        average = self.runtimes.mean
        longest = max((each.time_left(now) for each in others if each.count), default=0.0)
        if not longest:
            return Verdict(True, "no other host is left")
        if self._preset.certainty is not None:
            return self._worth_a_unit(now, ran, others, longest)
        if not average or average > self._terms.usable:
            return Verdict(True, f"tasks of {format_duration(average)} need more than one charging unit")
        if ran >= average:
            return Verdict(True, f"its task has run for {format_duration(ran)}, longer than the average")
        return Verdict(False, f"its task has run for {format_duration(ran)} only: it starts anew elsewhere")

    def _worth_a_unit(self, now: float, ran: float, others: Sequence[Hosts], longest: float) -> Verdict:
        needed = ran + self.runtimes.residual
        if needed > longest:
            return Verdict(True, f"no other host has the {format_duration(needed)} left that its task needs")
        uncovered = ran + work_bound.overflow(
            self.runtimes, self.waiting, others, now, self._preset.certainty or 0
        )
        if uncovered > 0:
            return Verdict(True, f"the other hosts have no time for {format_duration(uncovered)} of the work")
        return Verdict(False, f"the other hosts have {format_duration(-uncovered)} to spare")
