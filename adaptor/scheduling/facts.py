"""A bag in numbers, as decisions on requests and credits see it. Pure."""

from __future__ import annotations

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.crafting.learning import LearnedRuntimes
from adaptor.model import TaskState
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.state import SchedulingState


class LearnedAt(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a bag's runtimes at one site."""

    learned: LearnedRuntimes
    mean: float | None
    """Seconds; None before the first task has finished there."""
    estimate: float
    """Seconds that a task of which nothing is known is taken to need."""


class BagFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A bag that has pilots of its own, at an instant. Times are epoch seconds, durations seconds."""

    id: int
    spec: BagSpec
    tasks: int
    """Those that have a result or may still have one."""
    waiting: int
    finished: int
    total: float
    """Runtimes of the finished tasks, in sum."""
    squares: float
    """Their squares, in sum."""
    starts: tuple[float, ...]
    """By running task: when its first attempt began."""
    attempts: dict[str, tuple[float, ...]]
    """By site: when each running attempt there began, replicas too."""
    learned: dict[str, LearnedAt]
    """By each site at which the bag may run."""
    runtimes: tuple[float, ...]
    """Of the finished tasks, one in `every`."""
    every: int

    def elapsed(self, site: str, now: float) -> list[float]:
        """For how many seconds each attempt at a site has run."""
        return [max(0.0, now - start) for start in self.attempts.get(site, ())]


def facts_of(state: SchedulingState, bag: Bag) -> BagFacts:
    """The bag as it is now."""
    sample = state.sample(bag.id)
    starts, attempts = _running(state, bag.id)
    return BagFacts(
        id=bag.id,
        spec=bag.spec,
        tasks=bag.total - bag.count(TaskState.FAILED) - bag.count(TaskState.CANCELLED),
        waiting=bag.count(TaskState.WAITING),
        finished=bag.count(TaskState.DONE),
        total=bag.runtime,
        squares=bag.squares,
        starts=tuple(starts.values()),
        attempts={site: tuple(each) for site, each in attempts.items()},
        learned={site: _learned(state, bag.id, site) for site in state.sites if bag.spec.allows(site)},
        runtimes=sample.runtimes,
        every=sample.every,
    )


def _running(state: SchedulingState, bag: int) -> tuple[dict[int, float], dict[str, list[float]]]:
    """By task the first start, and by site the starts of all attempts, as far as workers have told them."""
    first: dict[int, float] = {}
    attempts: dict[str, list[float]] = {}
    for worker in state.workers.values():
        for key, held in worker.held.items():
            if key.bag == bag and held.started is not None:
                first[key.task] = min(held.started, first.get(key.task, held.started))
                attempts.setdefault(worker.site, []).append(held.started)
    return first, attempts


def _learned(state: SchedulingState, bag: int, site: str) -> LearnedAt:
    learner = state.learner(bag, site)
    return LearnedAt(learned=learner.learned, mean=learner.mean, estimate=learner.estimate)
