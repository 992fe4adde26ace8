"""The end of a bag: copies of running tasks on processors that are paid and idle (BaTS, Tail Phase)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec


class RunningTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that runs, once or more often."""

    task: int
    left: float
    """Seconds until the first of its attempts is expected to end."""
    whole: dict[str, float]
    """Seconds that it is expected to take from scratch, by site."""


class IdleProcessor(msgspec.Struct, frozen=True):
    """A processor without a task."""

    processor: int
    site: str
    paid: float
    """Seconds from now that are charged already."""


class Replica(msgspec.Struct, frozen=True):
    task: int
    processor: int


def _anywhere(_task: int, _processor: int) -> bool:
    return True


def replicas(
    running: Sequence[RunningTask],
    idle: Sequence[IdleProcessor],
    exact: bool = False,
    allowed: Callable[[int, int], bool] = _anywhere,
) -> list[Replica]:
    """Which tasks to start once more, and where.

    The task that is expected to end last comes first, and goes where it ends soonest, if that is sooner
    than where it runs. First those that are expected to end in the time that is paid; what is idle then
    is given to others, which may be lucky, unless the expectations are `exact`. A copy is to be stopped
    when the paid time is over, so it never costs another unit. `allowed` says of a task and a processor
    whether it may run there at all.
    """
    chosen: list[Replica] = []
    left = sorted(running, key=lambda task: -task.left)
    free = list(idle)
    for in_time in (True,) if exact else (True, False):
        for each in list(left):
            place = _best(each, free, in_time, allowed)
            if place is not None:
                chosen.append(Replica(each.task, place.processor))
                free.remove(place)
                left.remove(each)
    return chosen


def _best(
    task: RunningTask, free: Sequence[IdleProcessor], in_time: bool, allowed: Callable[[int, int], bool]
) -> IdleProcessor | None:
    useful = [
        place
        for place in free
        if task.whole[place.site] < task.left
        and (task.whole[place.site] <= place.paid or not in_time)
        and allowed(task.task, place.processor)
    ]
    return min(useful, key=lambda place: (task.whole[place.site], -place.paid), default=None)


def migration(running: Sequence[RunningTask], place: IdleProcessor) -> int | None:
    """The task to be moved to this processor: the one that ends last, if it ends sooner there; or none.

    As a replica, but the first attempt is killed, so that its processor takes another task.
    """
    return next((each.task for each in replicas(running, [place])), None)
