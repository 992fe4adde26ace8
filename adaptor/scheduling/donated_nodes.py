"""Donated nodes as the broker sees them: which waiting tasks may be started there (De Rose §3). Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice

from adaptor.donation.fitting import held, least_probability, release_probability, room
from adaptor.donation.situation import DonationDemand, DonationRules
from adaptor.model import TaskState
from adaptor.resources import Room
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.guards import room_of
from adaptor.scheduling.lines import LOOKAHEAD, Line
from adaptor.scheduling.state import SchedulingState
from adaptor.scheduling.task_needs import TaskNeeds
from adaptor.scheduling.workers import Worker


def take_for_donated(
    state: SchedulingState, bag: Bag, line: Line, worker: Worker, free: Room, now: float
) -> tuple[int, float] | None:
    """Take the first task of a line that is likely to finish on a donated node: (task, seconds it needs).

    Held tasks (`fitting.held`) of a mixed bag are left for formal requests, unless those start too late
    (`fitting.release_probability`). They, and those of a transparent bag, which has no other place for them,
    are taken where no other waiting task fits: the node would be idle otherwise, and the donation counts on
    them when it chooses nodes (`donation_demands_of`).
    """
    rules, last = state.rules(worker.site), state.sites[worker.site].last
    longest, other = _room_of(state, bag, worker, now), None
    needs = TaskNeeds(state, bag, worker.site, line)
    none_fits = bag.spec.allocation != "mixed" and longest < needs.least_on_donated
    if longest <= 0 or none_fits:
        return None
    release = _Release(state, bag, worker, now)
    # Thousands of held tasks may stand in front of the first that fits: they are passed over quickly.
    for position, task in enumerate(line.waiting.head(reach(state, bag, line, worker.site))):
        fate = bag.preempted_of(task)
        kept = held(fate.times, rules)
        if (kept and other is not None) or not line.admits(task, free):
            continue
        waits = kept and bag.spec.allocation == "mixed"
        if fate.ran > (release.longest if waits else longest):
            continue
        need = needs.on_donated(task)
        if not (release.allows(need) if waits else need <= longest) or need + last >= worker.too_long:
            continue
        if not kept:
            return line.take(position), need + last
        other = position, need
    return None if other is None else (line.take(other[0]), other[1] + last)


def fits_donated(state: SchedulingState, bag: Bag, worker: Worker, task: int, now: float) -> bool:
    """Whether another attempt of a task is likely to finish on a donated node."""
    last = state.sites[worker.site].last
    need = TaskNeeds(state, bag, worker.site, bag.lines.of(task)).on_donated(task)
    return _room_of(state, bag, worker, now) >= need and need + last < worker.too_long


def _room_of(state: SchedulingState, bag: Bag, worker: Worker, now: float) -> float:
    """Seconds of the longest task of the bag, if it is not held, that may be started there."""
    return _room(state, worker, now, least_probability(bag.spec.allocation, state.rules(worker.site)))


def _room(state: SchedulingState, worker: Worker, now: float, probability: float) -> float:
    """Seconds of the longest task that may be started on the worker's node and in its pilot."""
    node = state.donated[worker.pilot]
    longest = room(state.hazard(worker.site), now - node.since, node.until - now, probability)
    return min(longest, worker.time_left(now) - state.sites[worker.site].last)


class _Release:
    """Release of held tasks of a mixed bag on a worker's node now. Most bags never ask for it."""

    def __init__(self, state: SchedulingState, bag: Bag, worker: Worker, now: float) -> None:
        self._state, self._bag, self._worker, self._now = state, bag, worker, now

    @cached_property
    def _wait(self) -> float:
        """Seconds until the next request is predicted to start; 0: none is."""
        start = self._state.next_start(self._bag)
        return 0.0 if start is None else start - self._now

    @cached_property
    def longest(self) -> float:
        """Seconds above which none may be. Where one does not fit, no longer one does."""
        return self._room_for(0.0) if self._wait > 0 else -math.inf

    def allows(self, need: float) -> bool:
        """Whether a task of `need` seconds may be started."""
        fits = need <= self.longest and need <= self._room_for(need)
        if not fits:
            self.longest = min(self.longest, math.nextafter(need, -math.inf))
        return fits

    def _room_for(self, need: float) -> float:
        least = release_probability(need, self._wait, self._state.rules(self._worker.site))
        return _room(self._state, self._worker, self._now, least)


def reach(state: SchedulingState, bag: Bag, line: Line, site: str) -> int:
    """Number of tasks at the head of a line that are searched for one that fits: those that were cut or
    preempted may need more than the others."""
    odd = len(state.learner(bag.id, site).cuts) + len(bag.preempted)
    return odd + (LOOKAHEAD if line.mixed else 1)


def donation_demands_of(state: SchedulingState, bag: Bag, site: str) -> Iterator[DonationDemand]:
    """Waiting tasks of a bag that may be started on donated nodes of a site.

    Tasks of a mixed bag that are held for a request that is predicted to start come after the others.
    Suspects (`losses`) are started there only if they have no other place, and on one node at a time.
    """
    rules = state.rules(site)
    if bag.spec.allocation == "explicit":
        return
    all_kept = kept_for_requests(bag, rules)
    left = room_of(state, bag)
    for line in bag.lines:
        if line.task.nodes == 1:  # each donated node has its own pilot
            kept = {task for task in all_kept if bag.lines.of(task) is line}
            waiting = min(len(line.waiting) - len(kept), left)
            yield from _demands_of_line(state, bag, line, site, waiting, kept, min(len(kept), left))
            left -= waiting


def _demands_of_line(
    state: SchedulingState, bag: Bag, line: Line, site: str, waiting: int, kept: set[int], of_kept: int
) -> Iterator[DonationDemand]:
    """Demands of a line. `waiting`, `of_kept`: tasks that may be asked for among those not held, and among
    the held ones."""
    first = reach(state, bag, line, site)
    suspects = [task for task in islice(bag.suspects, first) if bag.lines.of(task) is line]
    if waiting > 0:
        some = (task for task in line.waiting.head(first) if task not in kept)
        yield _demand(state, bag, line, site, waiting, some)
    elif suspects and bag.spec.allocation == "transparent":
        yield _demand(state, bag, line, site, 1, suspects)
    start = state.next_start(bag)
    if of_kept and start is not None:
        yield _demand(state, bag, line, site, of_kept, kept, held_until=start)


def _demand(
    state: SchedulingState,
    bag: Bag,
    line: Line,
    site: str,
    waiting: int,
    tasks: Iterable[int],
    held_until: float | None = None,
) -> DonationDemand:
    """A demand. `tasks`: all that may be the shortest."""
    needs, shortest = TaskNeeds(state, bag, site, line), math.inf
    least = needs.least_on_donated
    for task in tasks:
        shortest = min(shortest, needs.on_donated(task))
        if shortest <= least:
            break
    return DonationDemand(
        waiting=waiting,
        task=line.task,
        needs=shortest if math.isfinite(shortest) else 0.0,
        allocation=bag.spec.allocation,
        held_until=held_until,
    )


def kept_for_requests(bag: Bag, rules: DonationRules) -> set[int]:
    """The waiting tasks that are held for formal requests (`fitting.held`)."""
    if bag.spec.allocation != "mixed":
        return set()
    return {
        task
        for task, fate in bag.preempted.items()
        if held(fate.times, rules) and bag.state(task) is TaskState.WAITING and task not in bag.losses
    }
