"""The consequence of an attempt's end for its task: a result, a charged retry, or neither.

Only a failure of the task itself counts as a retry; a task that has checkpointed goes on at no charge. After
the walltime, a preemption or a cancel, the task returns to the head of the queue; after its worker has died
under it, to the tail, and a bounded number of times (`losses`). The first result wins; a later one is
superseded.

Tasks that ran out of memory are tried again with more, if their bag says so (`on-oom`). The growth bounds
itself: each attempt has more than the one before, up to what the largest node has. So it is no charged retry.
"""

from __future__ import annotations

import math

import msgspec

from adaptor.crafting.fits import most_memory
from adaptor.guard_rails import QUICK
from adaptor.model import AttemptOutcome, TaskState
from adaptor.protocol.messages import AttemptKey, Ending, Leaving, Result
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.changes import AttemptEnd, MemoryRaised
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor.scheduling.guards import QUICK_REQUEUES, asks_in_vain, watch_failure
from adaptor.scheduling.losses import Loss, LostAttempt, sentence
from adaptor.scheduling.state import SchedulingState
from adaptor.scheduling.task_needs import seconds_to_start
from adaptor.scheduling.workers import HeldLease, Worker
from adaptor.units import format_duration, format_size

_MIB = 1 << 20
_WITHOUT_NODES = 64  # multiple of its first memory that a task gets at most if no node is known


class Growth(msgspec.Struct, frozen=True):
    """Consequence of an end for lack of memory."""

    text: str
    """The event and its consequence, in a sentence."""
    memory: int | None = None
    """Bytes with which the task is tried again; None: it is not tried with more."""


def growth_of(state: SchedulingState, bag: Bag, worker: Worker, result: Result) -> Growth:
    """Consequence of the end of an attempt for lack of memory."""
    task, factor = result.key.task, bag.spec.on_oom
    size = bag.sizes.of(task)
    had = size.memory or result.peak_memory
    told = f"out of memory at {format_size(had)}" if had else "out of memory"
    if size.memory is None:
        together = format_size(worker.whole.memory)
        told += f": ask for memory (all tasks on its node had {together} together)"
    if factor is None or not had:
        return Growth(told)
    queues = (state.queues.get(site) for site in state.sites if bag.spec.allows(site))
    there = [most for queue in queues if queue and (most := most_memory(queue, size)) is not None]
    most = max(there, default=0) or (bag.task.memory or had) * _WITHOUT_NODES
    if had >= most:
        return Growth(f"{told}, the most that a node has for it")
    wanted = had * factor
    while wanted <= result.peak_memory:  # it was seen to hold more than it asked for
        wanted *= factor
    memory = min(most, math.ceil(wanted / _MIB) * _MIB)
    return Growth(f"{told}: again with {format_size(memory)}", memory)


def raise_memory(state: SchedulingState, bag: Bag, worker: Worker, result: Result) -> None:
    """Give a task that ran out of memory more, and queue it again unless another attempt runs."""
    key, growth = result.key, growth_of(state, bag, worker, result)
    bag.release(key.task, key.attempt)
    if growth.memory is not None and growth.memory > (bag.sizes.of(key.task).memory or 0):
        known = (bag.id, growth.text) in state.told_growth
        state.told_growth.add((bag.id, growth.text))
        text = "" if known else f"task {key.task} of bag {bag.id} ran {growth.text} (on-oom)"
        bag.sizes.resize(key.task, growth.memory)
        state.changes.raised.append(
            MemoryRaised(bag.id, key.task, growth.memory, worker.site, worker.pilot, text)
        )
    _try_again(state, bag, key.task)


def _try_again(state: SchedulingState, bag: Bag, task: int) -> None:
    """Queue a task again unless another attempt runs."""
    if task not in bag.live and bag.state(task) is TaskState.LEASED:
        state.put_back(bag, task, first=False)
    else:
        state.note(bag, task)


NEAR_THE_END = 15.0
"""A worker that ends a task within this many seconds of its pilot's end does so because of the walltime."""

_IN_VAIN = (127,)  # exit codes of a shell that finds no such command: it does not the next time either

_ITS_OWN = (
    AttemptOutcome.DONE,
    AttemptOutcome.FAILED,
    AttemptOutcome.TIMED_OUT,
    AttemptOutcome.REQUEUED,
    AttemptOutcome.OUT_OF_MEMORY,
)
"""Outcomes that come from the task itself, or from a limit that its user has set."""

_LOSSES = (AttemptOutcome.PREEMPTED, AttemptOutcome.LOST)
"""Losses of donated nodes; a silent node was most likely taken."""


def settle(state: SchedulingState, worker: Worker, result: Result, now: float, why: Leaving | None) -> None:
    """Process a worker's result of one attempt; a repeated result changes nothing.

    `why`: the worker's reason to leave, if the result comes with a Goodbye.
    """
    key = result.key
    held = state.let_go(worker, key)
    bag = state.bags.get(key.bag)
    if bag is None:
        return
    if not bag.expects(key.task, key.attempt) or _only_took_part(held):
        state.forget_if_over(bag)
        return
    if held is not None:
        state.end_elsewhere(held, key)
    outcome = _judge(bag, worker, result, why, now, state.donated.get(worker.pilot))
    if result.ending is Ending.OUT_OF_MEMORY and outcome is AttemptOutcome.FAILED:
        growth = growth_of(state, bag, worker, result)
        result = msgspec.structs.replace(result, error=growth.text)
        outcome = outcome if growth.memory is None else AttemptOutcome.OUT_OF_MEMORY
    state.lost.get(worker.pilot, {}).pop(key, None)
    if not bag.state(key.task).ended:
        bag.excuse(key.task, key.attempt)  # the worker outlived it
    suspect = key.attempt in bag.losses.of(key.task)
    state.changes.attempts.append(
        AttemptEnd(
            key=result.key,
            outcome=outcome,
            at=result.started + result.wall if result.started else now,
            started=result.started or None,
            wall=result.wall if result.started else None,
            result=result,
            pilot=worker.pilot,
            suspect=suspect,
        )
    )
    state.touched[bag.id] = bag
    if bag.state(key.task).ended:
        bag.release(key.task, key.attempt)
    elif outcome in _ITS_OWN:
        _take(state, bag, worker, result, outcome)
    else:
        _learn(state, bag, worker, result, outcome, held, why)
        if outcome is AttemptOutcome.LOST:
            _note_lost(state, worker, key, now)
        _go_on_without(state, bag, key)
    state.forget_if_over(bag)


def _take(state: SchedulingState, bag: Bag, worker: Worker, result: Result, outcome: AttemptOutcome) -> None:
    """Take what the task itself says: it is done, it has failed, it goes on, or it gets more memory."""
    key = result.key
    if outcome is AttemptOutcome.DONE:
        took = result.wall + bag.progress.get(key.task, 0.0)
        if worker.site in state.sites:  # else the site is no longer configured: no learner
            state.finished(bag, worker.site, key.task, took)
        bag.credit(took, result.started + result.wall)
        state.deaths_at.pop((worker.site, worker.node), None)
        state.end_task(bag, key, TaskState.DONE)
    elif outcome is AttemptOutcome.REQUEUED:  # its work counts, and it goes on as soon as it can
        bag.progress[key.task] = bag.progress.get(key.task, 0.0) + result.wall
        bag.release(key.task, key.attempt)
        if key.task not in bag.live and bag.state(key.task) is TaskState.LEASED:
            state.put_back(bag, key.task, first=True)
    elif outcome is AttemptOutcome.OUT_OF_MEMORY:
        raise_memory(state, bag, worker, result)
    else:
        _charge(state, bag, result)
        watch_failure(state, bag, key, result)


def give_up(
    state: SchedulingState,
    worker: Worker,
    key: AttemptKey,
    outcome: AttemptOutcome,
    now: float,
    loss: Loss | None = None,
) -> None:
    """End an attempt for which no worker reported a result.

    `loss`: the death of the worker, if the attempt ran then and may be the cause.
    """
    held = state.let_go(worker, key)
    bag = state.bags.get(key.bag)
    if bag is None or not bag.has(key.task):
        return
    several = held is not None and bool(held.group)
    if several and (_only_took_part(held) or not bag.expects(key.task, key.attempt)):
        state.forget_if_over(bag)
        return
    if held is not None:
        state.end_elsewhere(held, key)
    started = held.started if held else None
    wall = now - started if started is not None else None
    if outcome in _LOSSES and started is not None and _closed(state.donated.get(worker.pilot), now):
        outcome, loss = AttemptOutcome.WALLTIME, None
    ended = bag.state(key.task).ended
    suspect = loss is not None and not ended
    end = AttemptEnd(key=key, outcome=outcome, at=now, started=started, wall=wall, suspect=suspect)
    state.changes.attempts.append(end)
    if ended:
        bag.release(key.task, key.attempt)
    else:
        if outcome is AttemptOutcome.WALLTIME and wall is not None and worker.site in state.sites:
            state.cut(bag, worker.site, key.task, wall)
        _count_preemption(state, bag, worker, key, outcome, wall)
        if loss is not None:
            state.suspect(bag, key)
            _note_lost(state, worker, key, now)
        _go_on_without(state, bag, key, loss)
    if several:  # it does not go on without one of its nodes
        bag.release(key.task, key.attempt)
    else:
        bag.set_adrift(key.task, key.attempt)
    state.forget_if_over(bag)


def _only_took_part(held: HeldLease | None) -> bool:
    """Whether a worker was kept for a task on several nodes until it got the message that this has ended."""
    return held is not None and held.takes_part and held.abort_sent


def _note_lost(state: SchedulingState, worker: Worker, key: AttemptKey, at: float) -> None:
    state.lost.setdefault(worker.pilot, {})[key] = LostAttempt(worker.id, worker.node, at)


def _judge(
    bag: Bag, worker: Worker, result: Result, why: Leaving | None, now: float, node: DonatedNode | None
) -> AttemptOutcome:
    state = bag.state(result.key.task)
    if state is TaskState.CANCELLED:
        return AttemptOutcome.CANCELLED
    if result.ending is Ending.RETURNED:
        return AttemptOutcome.RETURNED
    if state.ended:
        return AttemptOutcome.SUPERSEDED
    by_itself = _said(bag, result)
    if by_itself is not None:
        return by_itself
    if result.ending is Ending.ABORTED:
        return AttemptOutcome.CANCELLED
    ended = result.started + result.wall if result.started else now
    if why is Leaving.TIME_UP or worker.deadline - ended < NEAR_THE_END or _closed(node, ended):
        return AttemptOutcome.WALLTIME
    if node is not None and why is not None:  # by the scheduler's signal, or because we leave the node
        return AttemptOutcome.PREEMPTED
    if why is Leaving.TOLD:
        return AttemptOutcome.CANCELLED
    return AttemptOutcome.LOST  # the pilot's final state will say more


def _said(bag: Bag, result: Result) -> AttemptOutcome | None:
    """Outcome that the end shows of the task itself; None: it shows nothing."""
    if result.ending is Ending.OUT_OF_MEMORY:
        return AttemptOutcome.FAILED
    if result.ending is Ending.TIMED_OUT:
        return AttemptOutcome.TIMED_OUT
    # A task may checkpoint at any time, or on the signal that its pilot ends.
    if result.ending in (Ending.EXITED, Ending.ENDED) and result.exit_code in bag.spec.requeue_on:
        in_vain = asks_in_vain(bag, result.key.task, result.wall)
        return AttemptOutcome.FAILED if in_vain else AttemptOutcome.REQUEUED
    if result.ending in (Ending.EXITED, Ending.SIGNALLED, Ending.NOT_STARTED):
        return AttemptOutcome.DONE if result.exit_code == 0 else AttemptOutcome.FAILED
    return None


def _closed(node: DonatedNode | None, at: float) -> bool:
    """Whether the hours of a donated node were over. That is known beforehand, as a walltime is: the task was
    cut after a time that was not enough, and no local job took the node."""
    return node is not None and node.closes - at < NEAR_THE_END


def _learn(
    state: SchedulingState,
    bag: Bag,
    worker: Worker,
    result: Result,
    outcome: AttemptOutcome,
    held: HeldLease | None,
    why: Leaving | None,
) -> None:
    """Learn times from an attempt without a result."""
    _count_preemption(state, bag, worker, result.key, outcome, result.wall if result.started else None)
    if worker.site not in state.sites:
        return
    if outcome is AttemptOutcome.WALLTIME:
        state.cut(bag, worker.site, result.key.task, result.wall)
    asked_back = why is not None or held is None or held.give_back_sent or held.abort_sent
    if outcome is AttemptOutcome.RETURNED and not asked_back:  # for lack of time: do not lease it there again
        too_long = seconds_to_start(state, bag, worker.site, result.key.task)
        worker.too_long = min(worker.too_long, too_long)


def _count_preemption(
    state: SchedulingState,
    bag: Bag,
    worker: Worker,
    key: AttemptKey,
    outcome: AttemptOutcome,
    ran: float | None,
) -> None:
    """Count the loss of a donated node, a silent one included: too many losses and the task is held."""
    if outcome in _LOSSES and ran is not None and worker.pilot in state.donated:
        bag.preempt(key.task, ran)


def _charge(state: SchedulingState, bag: Bag, result: Result) -> None:
    """Charge a failure of the task itself: retry up to the bag's limit, unless it would fail again."""
    key, error, in_vain = result.key, None, result.exit_code in _IN_VAIN
    if result.exit_code in bag.spec.requeue_on:
        error = (
            f"it ended with exit {result.exit_code} (requeue-on) more than {QUICK_REQUEUES} times in a row "
            f"within {QUICK:.0f} s of its start: it does not get on"
        )
    if result.ending is Ending.OUT_OF_MEMORY:
        in_vain = bag.spec.on_oom is not None  # then no node has more
    may_retry = bag.charge(key.task, in_vain=in_vain)
    bag.release(key.task, key.attempt)
    if not may_retry:
        state.end_task(bag, key, TaskState.FAILED, error)
    else:
        _try_again(state, bag, key.task)


def _go_on_without(state: SchedulingState, bag: Bag, key: AttemptKey, loss: Loss | None = None) -> None:
    """End an attempt whose end is not the task's fault: the task waits again unless another attempt runs.

    `loss`: the death of its worker, if that counts against the task.
    """
    bag.release(key.task, key.attempt)
    if key.task in bag.live or bag.state(key.task) is not TaskState.LEASED:
        return
    if loss is not None and bag.losses.convicts(key.task, loss):
        error = sentence(bag.id, len(bag.losses.of(key.task)), loss)
    else:
        error = _why_hopeless(state, bag, key.task)
    if error:
        state.end_task(bag, key, TaskState.FAILED, error)
    else:
        state.put_back(bag, key.task, first=True)


def _why_hopeless(state: SchedulingState, bag: Bag, task: int) -> str:
    """Why the task is not tried again: it had all the time that a request can give, at every site that may
    run it. Empty: it had not, or no such site is configured any more."""
    sites = [site for site in state.sites if bag.spec.allows(site)]
    learners = [state.learners.get((bag.id, site)) for site in sites]
    if not sites or not all(learner is not None and learner.hopeless(task) for learner in learners):
        return ""
    longest = format_duration(max(state.sites[site].longest for site in sites))
    return (
        "too long: raise max_tr or split the task; it did not finish in the "
        f"{longest} that one request can give (max_tr less the pad)"
    )
