"""The demand of the broker's bags at the sites: tasks by shape, with the learned runtimes."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from adaptor.budget.provisioning.tail_phase import Threatened
from adaptor.crafting.situation import Demand, TaskGroup, TaskShape, Threat
from adaptor.donation.situation import DonationDemand
from adaptor.model import TaskState
from adaptor.runtimes.known import EarlierTasks, KnownRuntimes
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.donated_nodes import donation_demands_of, kept_for_requests
from adaptor.scheduling.guards import room_of
from adaptor.scheduling.lines import Line
from adaptor.scheduling.placement import Turn
from adaptor.scheduling.state import SchedulingState
from adaptor.scheduling.tail_replication import likely_cuts
from adaptor.scheduling.task_needs import TaskNeeds


def known_runtimes(state: SchedulingState, site: str, turns: Iterable[Turn]) -> KnownRuntimes:
    """Known runtimes of some classes at a site, together."""
    turns = list(turns)
    known = [state.learner_of(bag, site, line).known for bag, line in turns]
    told = [each for bag, _ in turns if (each := bag.told) is not None]
    return KnownRuntimes(
        finished=sum(each.finished for each in known),
        total=sum(each.total for each in known),
        squares=sum(each.squares for each in known),
        longest=max((each.longest for each in known), default=0.0),
        not_enough=max((each.not_enough for each in known), default=0.0),
        cut=sum(each.cut for each in known),
        cut_for=sum(each.cut_for for each in known),
        told=max(told) if len(told) == len(turns) else None,
        earlier=_earlier(turns, site),
        ended_after=max((bag.spec.ended_after for bag, _ in turns), default=math.inf),
    ).running_since(_starts(state, site, {(bag.id, line.number) for bag, line in turns}))


def _earlier(turns: Iterable[Turn], site: str) -> EarlierTasks | None:
    """Runtimes of earlier bags: of the bags with waiting tasks, those of the one expected to take longest.

    None: nothing is known for one of the bags, so its tasks may take any time.
    """
    known = [bag.earlier.get(site) for bag, line in turns if bag.startable_in(line)]
    if not known or None in known:
        return None
    return max((earlier for earlier in known if earlier is not None), key=lambda earlier: earlier.mean)


def _starts(state: SchedulingState, site: str, wanted: set[tuple[int, int]]) -> list[float]:
    """Starts of running tasks at the site, as workers report them; epoch seconds."""
    bags = {bag: state.bags.get(bag) for bag, _ in wanted}
    return [
        held.started
        for worker in state.workers.values()
        if worker.site == site
        for key, held in worker.held.items()
        if held.started is not None
        and (bag := bags.get(key.bag)) is not None
        and (bag.id, bag.lines.of(key.task).number) in wanted
    ]


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
        for bag in state.bags.values()
        if bag.spec.allows(site) and bag.startable
        for wanted in donation_demands_of(state, bag, site)
    )


def demands_of(state: SchedulingState, site: str, now: float | None = None) -> tuple[Demand, ...]:
    """The demand for formal requests at a site: all unfinished bags that may run there, by shape of task.

    Args:
        now: epoch seconds; None: what pilots may cut is not looked for.
    """
    by_shape: dict[TaskShape, list[Turn]] = defaultdict(list)
    for bag, line in _classes(state):
        if bag.spec.allows(site):
            by_shape[_shape(state, bag, line)].append((bag, line))
    found = [_demand(state, site, turns) for turns in by_shape.values()]
    if now is None or all(demand.waiting for demand in found):
        return tuple(found)
    bags = {bag.id: bag for turns in by_shape.values() for bag, _ in turns}
    cuts = {id: likely_cuts(state, bag, now) for id, bag in bags.items()}
    return tuple(
        demand if demand.waiting else msgspec.structs.replace(demand, threat=_threat(site, turns, cuts))
        for demand, turns in zip(found, by_shape.values(), strict=True)
    )


def _threat(site: str, turns: list[Turn], cuts: Mapping[int, Sequence[Threatened]]) -> Threat:
    likely = [
        each
        for bag, line in turns
        for each in cuts[bag.id]
        if each.site == site and bag.lines.of(each.task) is line
    ]
    return Threat(tasks=len(likely), enough=min((each.enough for each in likely), default=0.0))


def shapes_of(state: SchedulingState, site: str) -> set[TaskShape]:
    """The shapes of the tasks in `demands_of`, without their estimates."""
    return {_shape(state, bag, line) for bag, line in _classes(state) if bag.spec.allows(site)}


def waiting_shapes(state: SchedulingState, bag: int) -> dict[str, set[TaskShape]]:
    """Shapes of a bag's waiting tasks, by site at which they may run."""
    found = state.bags.get(bag)
    if found is None:
        return {}
    shapes = {_shape(state, found, line) for line in found.lines if found.startable_in(line)}
    return {site: shapes for site in state.sites if found.spec.allows(site)}


def groups_of(state: SchedulingState) -> tuple[TaskGroup, ...]:
    """The unfinished bags by shape of task and by the sites at which they may run."""
    together: dict[tuple[TaskShape, tuple[str, ...]], list[Turn]] = defaultdict(list)
    for bag, line in _classes(state):
        sites = tuple(site for site in state.sites if bag.spec.allows(site))
        together[_shape(state, bag, line), sites].append((bag, line))
    found = []
    for (_, sites), turns in together.items():
        at = {site: _demand(state, site, turns) for site in sites}
        held = {site: sum(state.leases[bag.id, line.number, site] for bag, line in turns) for site in sites}
        found.append(TaskGroup(waiting=_waiting(turns)[0], at=at, held=held))
    return tuple(found)


def _classes(state: SchedulingState) -> Iterable[Turn]:
    """The classes of sizes of the bags at work; of a bag with several, those that have unfinished tasks."""
    for bag in state.bags.values():
        for line in bag.lines if bag.at_work and bag.spec.allocation != "transparent" else ():
            held = (state.leases[bag.id, line.number, site] for site in state.sites)
            if len(bag.lines) == 1 or bag.startable_in(line) or any(held):
                yield bag, line


def sharers_of(state: SchedulingState, site: str, demand: Demand) -> dict[int, float]:
    """Number of waiting tasks in a demand by bag, or of the running ones if these are threatened."""
    waiting: Counter[int] = Counter()
    for bag, line in _classes(state):
        if bag.spec.allows(site) and _shape(state, bag, line) == demand.shape:
            isolated = _isolated(bag, line)
            tasks = _leased(state, bag, line) if demand.threat.tasks else bag.startable_in(line)
            waiting[bag.id] += isolated if demand.alone else tasks - isolated
    return {bag: float(tasks) for bag, tasks in waiting.items() if tasks}


def _shape(state: SchedulingState, bag: Bag, line: Line) -> TaskShape:
    return line.task, _pilots_of(state, bag)


def _pilots_of(state: SchedulingState, bag: Bag) -> int | None:
    """The bag itself if it runs only in its own pilots; None: in those that bags share."""
    return bag.id if bag.id in state.alone else None


def _waiting(turns: list[Turn]) -> tuple[int, bool]:
    """The tasks to ask for now, and whether each must run alone: such ones only when no others wait."""
    isolated = sum(_isolated(bag, line) for bag, line in turns)
    others = sum(bag.startable_in(line) for bag, line in turns) - isolated
    return (others, False) if others else (isolated, isolated > 0)


def _isolated(bag: Bag, line: Line) -> int:
    """Waiting tasks of a class that must run alone."""
    if not bag.startable:
        return 0
    return sum(bag.losses.isolated(task) and bag.lines.of(task) is line for task in bag.suspects)


def _leased(state: SchedulingState, bag: Bag, line: Line) -> int:
    """Tasks of a class that workers hold, at any site."""
    if len(bag.lines) == 1:
        return bag.count(TaskState.LEASED)
    return sum(state.leases[bag.id, line.number, site] for site in state.sites)


def _demand(state: SchedulingState, site: str, turns: list[Turn]) -> Demand:
    estimates = [estimate for bag, line in turns for estimate in _estimates(state, bag, line, site)]
    planned = [learner.planned for each, _ in turns if (learner := state.learner(each.id, site)).lowered]
    task, bag = _shape(state, *turns[0])
    waiting, alone = _waiting(turns)
    limited = any(each.max_running is not None for each, _ in turns)
    return Demand(
        task=task,
        waiting=waiting,
        formal_only=sum(_held(state, bag, line, site) for bag, line in turns),
        alone=alone,
        running=sum(_leased(state, each, line) for each, line in turns),
        coming=sum(_coming(bag, line) for bag, line in turns),
        runtime=max([*estimates, *planned]),
        shortest=min(estimates),
        bag=bag,
        together=sum(_at_once(state, each, line) for each, line in turns) if limited else None,
        priority=max((each.spec.priority for each, line in turns if each.startable_in(line)), default=0),
        times=known_runtimes(state, site, turns),
    )


def _coming(bag: Bag, line: Line) -> int:
    """Tasks of a class that its program is expected to append to the bag."""
    expected = bag.expected if bag.startable else 0
    return expected and round(expected * bag.startable_in(line) / bag.startable)


def _held(state: SchedulingState, bag: Bag, line: Line, site: str) -> int:
    """Waiting tasks of a class that donated nodes of a site have lost too often."""
    if not bag.preempted:
        return 0
    return sum(bag.lines.of(task) is line for task in kept_for_requests(bag, state.rules(site)))


def _at_once(state: SchedulingState, bag: Bag, line: Line) -> int:
    """The most tasks of a class that may run at the same time.

    What the bag's `max-running` leaves besides the tasks that run goes to its classes in their turn.
    """
    waiting, leased = bag.startable_in(line), _leased(state, bag, line)
    if bag.max_running is None:
        return waiting + leased
    if len(bag.lines) == 1:
        return min(waiting + leased, bag.max_running)
    turns = bag.lines.by_turn(in_file_order=bag.spec.order != "random")
    before = turns[: turns.index(line)] if line in turns else turns
    served_before = sum(bag.startable_in(other) for other in before)
    return leased + min(waiting, max(0, room_of(state, bag) - served_before))


def _estimates(state: SchedulingState, bag: Bag, line: Line, site: str) -> list[float]:
    """The different estimated runtimes of a class's waiting tasks; without any, that of any task."""
    needs, of_all = TaskNeeds(state, bag, site, line), state.learner(bag.id, site)
    odd = [
        task
        for task in of_all.cuts.keys() | bag.preempted.keys() | bag.progress.keys()
        if bag.state(task) is TaskState.WAITING and bag.lines.of(task) is line
    ]
    estimates = [needs.estimate(task) for task in odd]
    estimates += [needs.in_pilot(needs.learner.possible(time)) for time in line.times]
    if not estimates or (len(odd) < bag.waits_in(line) and (line.untimed or not line.times)):
        estimates.append(needs.in_pilot(needs.learner.estimate))
    return estimates
