"""The facts about a bag that decisions on requests and credits use. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.crafting.situation import EarlierTasks
from adaptor.model import TaskState
from adaptor.runtimes.learner import LearnedRuntimes, RuntimeRule
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.state import SchedulingState


class LearnedAt(msgspec.Struct, frozen=True, kw_only=True):
    """Runtimes that are known of a bag at one site."""

    learned: LearnedRuntimes
    mean: float | None
    """Mean runtime in seconds; None before the first task has finished there."""
    estimate: float
    """The estimated runtime of a task that was never cut, seconds."""
    rule: RuntimeRule
    """Rule by which the learner goes on from here."""


class BagFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A bag with its own pilots, at one instant. Times are epoch seconds, durations seconds."""

    id: int
    spec: BagSpec
    tasks: int
    """Tasks that have a result or may still get one, except those that wait for others."""
    waiting: int
    finished: int
    total: float
    """The sum of the runtimes of finished tasks."""
    squares: float
    """The sum of the squared runtimes."""
    starts: tuple[float, ...]
    """Start of the first attempt of each running task."""
    attempts: dict[str, tuple[float, ...]]
    """Start of each running attempt by site, replicas included."""
    by_pilot: dict[int, tuple[float, ...]]
    """Starts of the running attempts of each pilot."""
    learned: dict[str, LearnedAt]
    """Learned runtimes by site at which the bag may run."""
    runtimes: tuple[float, ...]
    """A sample of the finished tasks: one runtime in `every`."""
    every: int
    growing: bool = False
    """Whether tasks may be appended or wait for others; nothing is forecast then."""
    bounds: dict[int, tuple[float, ...]] = {}
    """Seconds that each task of `by_pilot` ran before it was cut, by pilot; 0: it was not cut."""
    again: tuple[float, ...] = ()
    """Seconds for which waiting tasks ran before they were cut."""
    places: tuple[int, ...] = ()
    """The places in the file of those tasks."""
    earlier: Mapping[str, EarlierTasks] = {}
    """Runtimes of earlier bags of the same kinds, by site."""

    def elapsed(self, site: str, now: float) -> list[float]:
        """Seconds since the start of each running attempt at a site."""
        return [max(0.0, now - start) for start in self.attempts.get(site, ())]


def facts_of(state: SchedulingState, bag: Bag) -> BagFacts:
    """The bag as it is now."""
    sample = state.sample(bag.id)
    blocked = bag.count(TaskState.BLOCKED)
    starts, attempts, by_pilot, bounds = _running(state, bag.id)
    learned = {}
    for site in filter(bag.spec.allows, state.sites):
        learner = state.learner(bag.id, site)
        learned[site] = LearnedAt(
            learned=learner.learned, mean=learner.mean, estimate=learner.estimate, rule=learner.rule
        )
    cut = {task: ran for each in learned.values() for task, ran in each.learned.cut.items()}
    return BagFacts(
        id=bag.id,
        spec=bag.spec,
        tasks=bag.total - bag.count(TaskState.FAILED) - bag.count(TaskState.CANCELLED) - blocked,
        waiting=bag.count(TaskState.WAITING),
        finished=bag.count(TaskState.DONE),
        total=bag.runtime,
        squares=bag.squares,
        starts=tuple(starts.values()),
        attempts={site: tuple(there) for site, there in attempts.items()},
        by_pilot={pilot: tuple(each) for pilot, each in by_pilot.items()},
        bounds={pilot: tuple(cut.get(task, 0.0) for task in bound) for pilot, bound in bounds.items()},
        again=tuple(ran for task, ran in cut.items() if bag.state(task) is TaskState.WAITING),
        learned=learned,
        runtimes=sample.runtimes,
        every=sample.every,
        growing=bag.open or blocked > 0,
        places=sample.places,
        earlier=bag.earlier,
    )


def _running(
    state: SchedulingState, bag: int
) -> tuple[dict[int, float], dict[str, list[float]], dict[int, list[float]], dict[int, list[int]]]:
    """First start by task; starts of all attempts by site and by pilot, as workers report them; and tasks by
    pilot."""
    first: dict[int, float] = {}
    attempts: dict[str, list[float]] = {}
    by_pilot: dict[int, list[float]] = {}
    tasks: dict[int, list[int]] = {}
    for worker in state.workers.values():
        for key, held in worker.held.items():
            if key.bag == bag and held.started is not None and not held.takes_part:
                first[key.task] = min(held.started, first.get(key.task, held.started))
                attempts.setdefault(worker.site, []).append(held.started)
                by_pilot.setdefault(worker.pilot, []).append(held.started)
                tasks.setdefault(worker.pilot, []).append(key.task)
    return first, attempts, by_pilot, tasks
