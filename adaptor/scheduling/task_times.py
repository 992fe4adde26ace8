"""What the bags' learners and workers know of the runtimes of some tasks."""

from __future__ import annotations

from collections.abc import Iterable

from adaptor.crafting.situation import EarlierTasks, TaskTimes
from adaptor.scheduling.places import Turn
from adaptor.scheduling.state import SchedulingState


def task_times(state: SchedulingState, site: str, turns: Iterable[Turn]) -> TaskTimes:
    """What is known of the tasks of some classes at a site, together."""
    turns = list(turns)
    learners = [state.learner_of(bag, site, line) for bag, line in turns]
    known = [learner.learned for learner in learners]
    finished = sum(each.finished for each in known)
    told = [each for bag, _ in turns if (each := bag.spec.expected_at(site)) is not None]
    starts = _starts(state, site, {(bag.id, line.number) for bag, line in turns})
    return TaskTimes(
        finished=finished,
        mean=sum(each.total for each in known) / finished if finished else 0.0,
        longest=max((each.longest for each in known), default=0.0),
        not_enough=max((each.not_enough for each in known), default=0.0),
        mean_start=sum(starts) / len(starts) if starts else None,
        first_start=min(starts, default=None),
        told=max(told) if len(told) == len(turns) else None,
        earlier=_earlier(turns, site),
    )


def _earlier(turns: Iterable[Turn], site: str) -> EarlierTasks | None:
    """What is known of earlier bags: of those with waiting tasks, the one expected to take longest.

    None: of one of them nothing is known, so its tasks may take anything.
    """
    known = [bag.earlier.get(site) for bag, line in turns if bag.startable_in(line)]
    if not known or None in known:
        return None
    return max((each for each in known if each is not None), key=lambda each: each.mean)


def _starts(state: SchedulingState, site: str, wanted: set[tuple[int, int]]) -> list[float]:
    """When those that run at the site started, as workers report it."""
    bags = {bag for bag, _ in wanted}
    return [
        held.started
        for worker in state.workers.values()
        if worker.site == site
        for key, held in worker.held.items()
        if key.bag in bags and held.started is not None and _is_wanted(state, key.bag, key.task, wanted)
    ]


def _is_wanted(state: SchedulingState, bag: int, task: int, wanted: set[tuple[int, int]]) -> bool:
    found = state.bags.get(bag)
    return found is not None and (bag, found.lines.of(task).number) in wanted
