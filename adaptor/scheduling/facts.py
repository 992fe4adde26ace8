"""The facts about a bag, from the state of the broker. Pure."""

from __future__ import annotations

from adaptor.bag_spec import BagSpec
from adaptor.forecast.bag_facts import BagFacts
from adaptor.forecast.other_bags import OtherBags
from adaptor.model import TaskState
from adaptor.runtimes.known import KnownRuntimes
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.state import SchedulingState


def facts_of(state: SchedulingState, bag: Bag) -> BagFacts:
    """The bag as it is now."""
    sample, alone = state.sample(bag.id), bag.id in state.alone
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
            longest=max((each.seen.longest for each in learned.values()), default=0.0),
            told=bag.told,
            ended_after=bag.spec.ended_after,
        ).running_since(starts.values()),
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
        alone=alone,
        others=OtherBags() if alone else other_bags(state, bag.spec, bag.id),
    )


def other_bags(state: SchedulingState, spec: BagSpec, number: float) -> OtherBags:
    """The bags that take turns with one of this number in the pilots that it shares."""
    first, older, younger = 0, list[int](), list[int]()
    for other in state.bags.values():
        tasks, priority = other.startable, other.spec.priority
        if (
            not tasks
            or other.id == number
            or other.id in state.alone
            or priority < spec.priority
            # Both may run at the same site.
            or not any(spec.allows(site) and other.spec.allows(site) for site in state.sites)
            # Else its tasks have pilots of their own, whose processors this bag gets when they end.
            or not other.spec.task.covers(spec.task)
        ):
            continue
        if priority > spec.priority:
            first += tasks
        else:
            (older if other.id < number else younger).append(tasks)
    return OtherBags(first, tuple(older), tuple(younger))


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
