"""The facts about a bag that decisions on requests and credits use. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.model import TaskState
from adaptor.runtimes.known import EarlierTasks, KnownRuntimes
from adaptor.runtimes.learner import RuntimeLearner
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.state import SchedulingState


class BagFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A bag with its own pilots, at one instant. Times are epoch seconds, durations seconds."""

    id: int
    spec: BagSpec
    tasks: int
    """Tasks that have a result or may still get one, except those that wait for others."""
    waiting: int
    known: KnownRuntimes
    """Runtimes of its tasks at all sites; of a running one the first attempt counts."""
    attempts: dict[str, tuple[float, ...]]
    """Start of each running attempt by site, replicas included."""
    by_pilot: dict[int, tuple[float, ...]]
    """Starts of the running attempts of each pilot."""
    learned: dict[str, RuntimeLearner]
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

    @property
    def finished(self) -> int:
        return self.known.finished

    def known_at(self, site: str) -> KnownRuntimes:
        """Runtimes of its tasks at all sites, and what earlier bags say of a site."""
        return msgspec.structs.replace(self.known, earlier=self.earlier.get(site))

    def elapsed(self, site: str, now: float) -> list[float]:
        """Seconds since the start of each running attempt at a site."""
        return [max(0.0, now - start) for start in self.attempts.get(site, ())]


def facts_of(state: SchedulingState, bag: Bag) -> BagFacts:
    """The bag as it is now."""
    sample = state.sample(bag.id)
    blocked = bag.count(TaskState.BLOCKED)
    starts, attempts, by_pilot, bounds = _running(state, bag.id)
    learned = {site: state.learner(bag.id, site).copy() for site in filter(bag.spec.allows, state.sites)}
    cut = {task: ran for each in learned.values() for task, ran in each.cuts.items()}
    return BagFacts(
        id=bag.id,
        spec=bag.spec,
        tasks=bag.total - bag.count(TaskState.FAILED) - bag.count(TaskState.CANCELLED) - blocked,
        waiting=bag.count(TaskState.WAITING),
        known=KnownRuntimes(
            finished=bag.count(TaskState.DONE),
            total=bag.runtime,
            squares=bag.squares,
            running=len(starts),
            starts=sum(starts.values()),
            first_start=min(starts.values(), default=None),
            told=bag.spec.time,
            ended_after=bag.spec.ended_after,
        ),
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
