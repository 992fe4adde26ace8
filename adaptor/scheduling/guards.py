"""Guards of a bag: its pause, its limits, its canary, and the guard rails that pause it. Pure.

A paused bag leases nothing and asks for nothing; its running tasks go on to their end. A bag pauses because
its user says so, because its first attempts all fail (the canary), or at its `max-fails`; it goes on when its
user says so. Until its `begin` it is paused too, and goes on by itself.
"""

from __future__ import annotations

import msgspec

from adaptor.guard_rails import ALIKE, QUICK, canary_tries
from adaptor.model import TaskState
from adaptor.protocol.messages import AttemptKey, Result
from adaptor.scheduling.bag import Bag, Guard
from adaptor.scheduling.state import SchedulingState
from adaptor.scheduling.workers import Worker
from adaptor.units import counted, format_instant

_NEWS = 0.1  # the part of a time limit by which it must change to be sent again
QUICK_REQUEUES = 10
"""Number of requeues in a row within `QUICK` seconds each, from which on a requeue is a failure."""


def may_start(state: SchedulingState, bag: Bag, worker: Worker) -> bool:
    """True if one more attempt of a bag may start on a worker, regardless of processors and time there."""
    return may_hold(bag, worker) and room_of(state, bag) > 0


def may_wait_behind(state: SchedulingState, bag: Bag, worker: Worker) -> bool:
    """True if a worker may hold one more attempt of a bag with `max-running`, which starts there in the place
    of one that has ended."""
    among = worker.held.at_once(bag.id)
    if bag.tries_first or not among or len(bag.lines) > 1 or bag.spec.nodes > 1 or not may_hold(bag, worker):
        return False
    return worker.held.at_once(bag.id, extra=among) - among <= room_of(state, bag)


def may_hold(bag: Bag, worker: Worker) -> bool:
    """True if a worker may get one more attempt of a bag, regardless of `max-running`.

    While a canary watches the bag, a worker gets no more attempts than it runs at the same time, until it
    has reported how the first ones ended: a worker reports failures after a second, and thousands of tasks
    may fail in one.
    """
    if bag.guard.paused or bag.held_back:
        return False
    if not under_canary(bag):
        return True
    held = sum(1 for key in worker.held if key.bag == bag.id)
    return held < max(1, *(worker.whole.slots(line.task) for line in bag.lines))


def room_of(state: SchedulingState, bag: Bag) -> int:
    """Number of further attempts that its `max-running` allows besides those that run, or may start by
    themselves."""
    most = bag.max_running
    if most is None:
        return bag.total
    return max(0, most - sum(worker.held.at_once(bag.id) for worker in state.workers.values()))


def under_canary(bag: Bag) -> bool:
    """True as long as no attempt of a watched bag has got anywhere."""
    return (
        bag.spec.canary != "no"
        and bag.guard.canary
        and not bag.count(TaskState.DONE)
        and not bag.progress
        and canary_tries(bag.total) is not None
    )


def watch_failure(state: SchedulingState, bag: Bag, key: AttemptKey, result: Result) -> None:
    """Pause the bag if this failure, which is charged already, is one too many."""
    bag.note_alike((result.exit_code, result.signal, result.error) if result.wall < QUICK else None)
    if bag.guard.paused or not bag.count(TaskState.WAITING):
        return
    why = _why_canary(bag) or _why_first(bag) or _why_fails(bag)
    if why:
        pause(state, bag, why, key)


def _why_canary(bag: Bag) -> str:
    """Why the first attempts are enough to see that the bag will fail; empty: they are not."""
    tries = canary_tries(bag.total)
    if tries is None or not under_canary(bag):
        return ""
    if bag.alike >= ALIKE and bag.alike == bag.failures:
        return f"its first {bag.alike} attempts all failed alike, within {QUICK:.0f} s each"
    return f"its first {bag.failures} attempts all failed" if bag.failures >= tries else ""


def _why_first(bag: Bag) -> str:
    """Why the bag pauses before its first tasks have all succeeded; empty: none has failed."""
    if not bag.tries_first or not bag.count(TaskState.FAILED):
        return ""
    return f"one of its first {counted(bag.spec.first_tasks, 'task')} failed (canary {bag.spec.canary})"


def _why_fails(bag: Bag) -> str:
    """Why this number of failures is too many; empty: it is not."""
    failed = bag.count(TaskState.FAILED) - bag.guard.excused
    most = bag.spec.max_fails
    if most is None or failed < most.of(bag.total):
        return ""
    since = " since it was resumed" if bag.guard.excused else ""
    return f"{counted(failed, 'task')} failed{since} (max-fails {most})"


def pause(state: SchedulingState, bag: Bag, why: str, evidence: AttemptKey | None = None) -> None:
    """Pause a bag, and take back what workers have not started of it.

    Args:
        evidence: the attempt whose output tells more, if a guard rail pauses the bag.
    """
    itself = evidence is not None
    sentence = f"bag {bag.id} is paused: {why}; adaptor resume {bag.id} goes on"
    sentence += f", adaptor cancel {bag.id} ends it" if itself else ""
    shown = None if evidence is None else (evidence.task, evidence.attempt)
    _set(state, bag, Guard(sentence, itself, shown, bag.guard.canary, bag.guard.excused))
    for worker in state.workers.values():
        recall_unstarted(state, worker, bag)


def recall_unstarted(state: SchedulingState, worker: Worker, bag: Bag) -> None:
    """Ask a worker to return the tasks of a bag that it has not started."""
    for key in worker.unstarted:
        if key.bag == bag.id and not worker.held[key].give_back_sent:
            worker.held[key].give_back_sent = True
            state.orders[worker.id].give_back.append(key)


def wait_until_begin(state: SchedulingState, bag: Bag, now: float) -> None:
    """Pause a bag until its `begin`; one that has paused for another reason stays as it is."""
    begin = bag.spec.begin
    if (bag.guard.paused and bag.guard.until is None) or bag.ended:
        return
    if begin is None or begin <= now:
        go_on(state, bag)
        return
    sentence = f"bag {bag.id} begins at {format_instant(begin)}; adaptor resume {bag.id} starts it now"
    _set(state, bag, msgspec.structs.replace(bag.guard, paused=sentence, until=begin))
    for worker in state.workers.values():
        recall_unstarted(state, worker, bag)


def go_on(state: SchedulingState, bag: Bag) -> None:
    """End the wait for a bag's `begin`."""
    if bag.guard.until is not None:
        _set(state, bag, msgspec.structs.replace(bag.guard, paused="", until=None))


def resume(state: SchedulingState, bag: Bag) -> None:
    """Let a bag go on: without its canary, and with all of its `max-fails` again."""
    if bag.guard.until is not None:  # it waited for its begin: nothing has failed
        go_on(state, bag)
        return
    _set(state, bag, Guard(canary=False, excused=bag.count(TaskState.FAILED)))


def forgive(state: SchedulingState, bag: Bag) -> None:
    """The failures of a bag do not count any more, since its user has its failed tasks tried again."""
    if bag.guard.excused:
        _set(state, bag, msgspec.structs.replace(bag.guard, excused=0))


def tell_time_limits(state: SchedulingState, worker: Worker) -> None:
    """Tell a worker the time limits in parts of a mean runtime, which were not known with the leases."""
    for bag in state.bags.values():
        if bag.spec.timeout is None or bag.spec.timeout.seconds is not None or bag.spec.time is not None:
            continue
        limit = bag.spec.timeout.of(None, bag.count(TaskState.DONE), bag.runtime)
        told = worker.time_limits.get(bag.id)
        if limit is not None and (told is None or abs(limit - told) > _NEWS * told):
            worker.time_limits[bag.id] = state.orders[worker.id].timeouts[bag.id] = limit


def asks_in_vain(bag: Bag, task: int, wall: float) -> bool:
    """Count that a task asks to be started again; True if it does so repeatedly within seconds."""
    bag.hasty[task] = bag.hasty.get(task, 0) + 1 if wall < QUICK else 0
    return bag.hasty[task] > QUICK_REQUEUES


def _set(state: SchedulingState, bag: Bag, guard: Guard) -> None:
    bag.guard = guard
    state.touched[bag.id] = bag
    state.changes.guards[bag.id] = guard
