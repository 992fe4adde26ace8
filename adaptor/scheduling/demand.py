"""The demand of the broker's bags at the sites: tasks by shape, with the learned runtimes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from adaptor.crafting.situation import Demand, TaskGroup, TaskShape
from adaptor.donation.situation import DonationDemand
from adaptor.model import TaskState
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.donated_nodes import donation_demands_of
from adaptor.scheduling.state import SchedulingState


class BagDonationDemand(msgspec.Struct, frozen=True):
    """Tasks of one bag that may start on donated nodes."""

    bag: int
    pilots_of: int | None
    """The bag, if it runs only in its own pilots; None: it shares pilots with others."""
    wanted: DonationDemand


def donation_demands(state: SchedulingState, site: str) -> tuple[BagDonationDemand, ...]:
    """The waiting tasks that may start on donated nodes of a site, by bag."""
    return tuple(
        BagDonationDemand(bag.id, _pilots_of(state, bag), wanted)
        for bag in _unfinished(state)
        if bag.spec.allows(site)
        for wanted in donation_demands_of(state, bag, site)
    )


def demands_of(state: SchedulingState, site: str) -> tuple[Demand, ...]:
    """The demand for formal requests at a site: all unfinished bags that may run there, by shape of task."""
    by_shape: dict[TaskShape, list[Bag]] = defaultdict(list)
    for bag in _formal(state):
        if bag.spec.allows(site):
            by_shape[_shape(state, bag)].append(bag)
    return tuple(
        _demand(state, site, bags, running=sum(bag.count(TaskState.LEASED) for bag in bags))
        for bags in by_shape.values()
    )


def shapes_of(state: SchedulingState, site: str) -> set[TaskShape]:
    """The shapes of the tasks in `demands_of`, without their estimates."""
    return {_shape(state, bag) for bag in _formal(state) if bag.spec.allows(site)}


def groups_of(state: SchedulingState) -> tuple[TaskGroup, ...]:
    """The unfinished bags by shape of task and by the sites at which they may run."""
    together: dict[tuple[TaskShape, tuple[str, ...]], list[Bag]] = defaultdict(list)
    for bag in _formal(state):
        together[_shape(state, bag), tuple(site for site in state.sites if bag.spec.allows(site))].append(bag)
    return tuple(
        TaskGroup(
            waiting=_waiting(bags)[0],
            at={site: _demand(state, site, bags, running=_running(state, site, bags)) for site in sites},
        )
        for (_, sites), bags in together.items()
    )


def _unfinished(state: SchedulingState) -> Iterable[Bag]:
    return (bag for bag in state.bags.values() if not bag.ended)


def _formal(state: SchedulingState) -> Iterable[Bag]:
    """The unfinished bags whose tasks may run in formal requests."""
    return (bag for bag in _unfinished(state) if bag.spec.allocation != "transparent")


def sharers_of(state: SchedulingState, site: str, demand: Demand) -> dict[int, float]:
    """By bag: the number of its waiting tasks in a demand."""
    waiting = {
        bag.id: float(_isolated(bag) if demand.alone else _in_company(bag))
        for bag in _formal(state)
        if bag.spec.allows(site) and _shape(state, bag) == demand.shape
    }
    return {bag: tasks for bag, tasks in waiting.items() if tasks}


def _shape(state: SchedulingState, bag: Bag) -> TaskShape:
    return bag.spec.cpus, bag.spec.memory, _pilots_of(state, bag)


def _pilots_of(state: SchedulingState, bag: Bag) -> int | None:
    """The bag itself if it runs only in its own pilots; None: in those that bags share."""
    return bag.id if bag.id in state.alone else None


def _waiting(bags: list[Bag]) -> tuple[int, bool]:
    """The tasks to ask for now, and whether each must run alone: such ones only when no others wait."""
    isolated = sum(map(_isolated, bags))
    others = sum(bag.count(TaskState.WAITING) for bag in bags) - isolated
    return (others, False) if others else (isolated, isolated > 0)


def _in_company(bag: Bag) -> int:
    """Waiting tasks that may run beside others."""
    return bag.count(TaskState.WAITING) - _isolated(bag)


def _isolated(bag: Bag) -> int:
    """Waiting tasks that must run alone."""
    return sum(map(bag.losses.isolated, bag.suspects))


def _running(state: SchedulingState, site: str, bags: list[Bag]) -> int:
    """Tasks that workers of this site hold, replicas included."""
    return sum(state.shares.get((bag.id, site), 0) // bag.spec.cpus for bag in bags)


def _demand(state: SchedulingState, site: str, bags: list[Bag], running: int) -> Demand:
    estimates = [estimate for bag in bags for estimate in _estimates(state, bag, site)]
    cpus, memory, bag = _shape(state, bags[0])
    waiting, alone = _waiting(bags)
    return Demand(
        processors_per_task=cpus,
        memory_per_task=memory,
        waiting=waiting,
        alone=alone,
        running=running,
        runtime=max(estimates),
        shortest=min(estimates),
        bag=bag,
    )


def _estimates(state: SchedulingState, bag: Bag, site: str) -> list[float]:
    """The different estimated runtimes of a bag's waiting tasks; without waiting tasks, that of any task."""
    learner = state.learner(bag.id, site)
    odd = [task for task in learner.cut_tasks | bag.preempted.keys() if bag.state(task) is TaskState.WAITING]
    estimates = [state.estimate_of(bag, site, task) for task in odd]
    if not odd or len(odd) < bag.count(TaskState.WAITING):
        estimates.append(learner.estimate)
    return estimates
