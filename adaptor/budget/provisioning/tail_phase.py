"""The end of a bag: copies of running tasks on processors that are paid and idle (BaTS, Tail Phase)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from adaptor.runtimes.survival import Survival

MOST_TASKS = 256  # running tasks that are considered, those first that are expected to end last
RARE = 0.02
"""The chance that the end of its pilot cuts a task from which on a copy is worth it: a cut task ends a bag
later by all that it has run in vain, and most copies end soon, with the attempt that was not cut."""
LIKELY = 0.1
"""The chance from which on a pilot is asked for, if none is idle."""
LONGER = 1.2  # times what its pilot gives a task that a copy is to have, at least

Attempts = Sequence[tuple[str, float]]  # of one task: the site and the seconds so far of each attempt


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
    """Seconds from now for which it is there, and charged already."""


class Threatened(msgspec.Struct, frozen=True, kw_only=True):
    """A running task that the end of its pilot may cut."""

    task: int
    site: str
    chance: float
    enough: float
    """Seconds that a copy needs, so that it is not cut as well."""


class Replica(msgspec.Struct, frozen=True):
    task: int
    processor: int


class Expectation(Protocol):
    """Expected end of running tasks, and of copies of them."""

    @property
    def sites(self) -> set[str]:
        """Sites for which it knows how long a copy takes."""

    def of(self, task: int, attempts: Attempts) -> RunningTask:
        """The expected end of a running task, and its expected runtimes elsewhere."""


class LateByItsNode:
    """The daemon's expectation: a late task may be late because of its node (WQR, Paranhos et al. 2003).

    A running attempt ends in a bad case, as a bag ends with its last task. A fresh attempt takes as long as
    any task of its site in a bad case.
    """

    def __init__(self, times: Mapping[str, Survival], fresh: Iterable[str]) -> None:
        """`times` of finished tasks alone, by site of an attempt; `fresh`: sites at which one may start."""
        self._times = times
        self._whole = {site: times[site].late(0.0) for site in fresh}

    @property
    def sites(self) -> set[str]:
        return set(self._whole)

    def of(self, task: int, attempts: Attempts) -> RunningTask:
        left = min(max(0.0, self._times[site].late(ran) - ran) for site, ran in attempts)
        return RunningTask(task=task, left=left, whole=self._whole)


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """Rule by which copies are made."""

    name: str
    exact: bool
    """Whether only those that are expected to end in the time that is paid."""
    copies: int | None
    """Copies of one task at the same time, at most; None: as many as help."""


DAEMON = Rule(name="daemon", exact=True, copies=1)
"""The rule for every bag of a user that does not set `replicas`."""


def worthwhile_copies(
    running: Mapping[int, Attempts],
    idle: Sequence[IdleProcessor],
    expectation: Expectation,
    rule: Rule = DAEMON,
    allowed: Callable[[int, int], bool] | None = None,
) -> list[Replica]:
    """The copies that are worth starting now: which tasks (with their attempts), and where.

    `idle` are processors of sites that the expectation knows; `allowed` says of a task and a processor
    whether it may run there at all.
    """
    if not running or not idle:
        return []
    expected = [
        expectation.of(task, attempts)
        for task, attempts in running.items()
        if rule.copies is None or len(attempts) <= rule.copies
    ]
    sites = {place.site for place in idle}
    useful = [task for task in expected if task.left > min(task.whole[site] for site in sites)]
    late = heapq.nlargest(MOST_TASKS, useful, key=lambda each: each.left)
    return replicas(late, idle, rule.exact, allowed or _anywhere)


def safe_copies(
    threatened: Sequence[Threatened],
    idle: Sequence[IdleProcessor],
    allowed: Callable[[int, int], bool] | None = None,
) -> list[Replica]:
    """The copies of tasks that may be cut where they run: the likeliest first, where most time is left.

    Of a site that the task runs at: what is known of its runtimes says nothing of another one.
    """
    free, may, chosen = sorted(idle, key=lambda place: -place.paid), allowed or _anywhere, list[Replica]()
    likely = [each for each in threatened if each.chance >= RARE]
    for each in heapq.nlargest(MOST_TASKS, likely, key=lambda each: each.chance):
        places = (place for place in free if place.site == each.site and place.paid >= each.enough)
        place = next((place for place in places if may(each.task, place.processor)), None)
        if place is not None:
            chosen.append(Replica(each.task, place.processor))
            free.remove(place)
    return chosen


def must_stop(paid_until: float, now: float, *, last_attempt: bool, shared: Callable[[], bool]) -> bool:
    """Whether a copy is stopped so that it never costs another charging unit.

    Not if it is its task's last attempt, nor if its pilot is shared with tasks that are no copies.
    """
    return now >= paid_until and not last_attempt and not shared()


def _anywhere(_task: int, _processor: int) -> bool:
    return True


def replicas(
    running: Sequence[RunningTask],
    idle: Sequence[IdleProcessor],
    exact: bool = False,
    allowed: Callable[[int, int], bool] = _anywhere,
) -> list[Replica]:
    """Tasks to start once more, and the processors for them.

    The task that is expected to end last comes first, and goes where it ends soonest, if that is sooner than
    where it runs. A first pass makes the copies that are expected to end in the time that is paid. Processors
    that are idle after it get other copies, which may be lucky, unless the expectations are `exact`. A copy
    is to be stopped when the paid time is over, so it never costs another unit. `allowed` says of a task and
    a processor whether it may run there at all.
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
