"""The paper's allocation and two variants of the daemon's, as controllers of a simulated production."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adaptor.budget.accounting.tariffs import HOUR
from adaptor.budget.provisioning.milp import CONFIDENCE
from adaptor.budget.provisioning.site_offers import HeldSlots, SiteOffer
from adaptor.budget.provisioning.steering import Aim, Progress
from adaptor.budget.provisioning.task_shares import DAEMON, INTERVAL, Caution, CostSplit, split_tasks
from adaptor.runtimes.sums import RuntimeSums
from adaptor.runtimes.task_time import learned_time
from adaptor_experiments.ricciardi import equations as paper
from adaptor_experiments.ricciardi.design import Resource, Target
from adaptor_experiments.ricciardi.production import State

LATE = 3
"""Δt before the end `EvenOddsController` decides more often, so that the last tasks are placed well."""
SHORT = 0.25
"""Of Δt."""


class PaperController:
    """The paper's: means of the finished tasks, remaining tasks, time and credits (eq. 11 and 12)."""

    def __init__(self, resources: Sequence[Resource], target: Target, delta: float) -> None:
        self._offers = [each.offer for each in resources]
        self._target, self._delta = target, delta
        self._seen = [RuntimeSums() for _ in self._offers]

    def finished(self, site: int, runtime: float) -> None:
        self._seen[site].add(runtime)

    def decide(self, state: State) -> tuple[list[int], float]:
        offers = [
            msgspec.structs.replace(each, task=learned_time(each.task, 0, seen))
            for each, seen in zip(self._offers, self._seen, strict=True)
        ]
        tasks = state.waiting + len(state.running)
        if self._target.goal == "time":
            counts = paper.for_time(tasks, offers, self._target.seconds - state.now)
            counts = counts or [each.processors for each in offers]
        else:
            counts = paper.for_cost(tasks, offers, self._target.credits - state.spent)
            counts = counts or _only_cheapest(offers)
        return counts, state.now + self._delta


def _only_cheapest(offers: Sequence[SiteOffer]) -> list[int]:
    least = min(each.cost_per_task for each in offers)
    return [each.processors if each.cost_per_task == least else 0 for each in offers]


class DaemonController:
    """`split_tasks` as the daemon asks it, with what is known of the running tasks."""

    caution = DAEMON

    def __init__(self, resources: Sequence[Resource], target: Target, delta: float) -> None:
        self._offers = [each.offer for each in resources]
        self._goal, self._delta, self._target = target.goal, delta, target
        self._seen_at = [RuntimeSums() for _ in self._offers]

    def finished(self, site: int, runtime: float) -> None:
        self._seen_at[site].add(runtime)

    def decide(self, state: State) -> tuple[list[int], float]:
        offers = [self._seen(site, state) for site in range(len(self._offers))]
        progress = Progress(
            now=state.now,
            waiting=state.waiting,
            spent=state.spent,
            committed=sum(
                offers[each.site].task.remaining(state.now - each.started) * offers[each.site].price / HOUR
                for each in state.running
            ),
        )
        found = self._parted(progress, offers)
        return [found.slots(each.name) for each in offers], state.now + self._step(found.seconds)

    def _seen(self, site: int, state: State) -> SiteOffer:
        elapsed = [state.now - each.started for each in state.running if each.site == site]
        held = (HeldSlots(len(elapsed)),) if elapsed else ()
        offer = self._offers[site]
        task = learned_time(offer.task, offer.processors, self._seen_at[site], elapsed)
        return msgspec.structs.replace(offer, task=task, held=held)

    def _parted(self, progress: Progress, offers: Sequence[SiteOffer]) -> CostSplit:
        if self._goal == "time":
            aim = Aim(deadline=self._target.seconds, prefer="cheap")
        else:
            aim = Aim(budget=self._target.credits, prefer="fast")
        return split_tasks(aim, progress, {each.name: (each,) for each in offers}, self.caution)

    def _step(self, _left: float) -> float:
        return INTERVAL


class EvenOddsController(DaemonController):
    """The same function with the paper's Δt: a target is met as often as missed, and nothing is wasted."""

    caution = Caution(name="even odds", certainty=CONFIDENCE, reserve=0.0)

    def _step(self, left: float) -> float:
        return self._delta if left > LATE * self._delta else SHORT * self._delta
