"""Suspicion of tasks after the loss of their worker and the end of its pilot. Pure.

A worker that falls silent, or whose pilot fails, may have been ended by one of its tasks: all that ran on it
are suspects (`losses`). Not so at its walltime, after a preemption or a cancel, and while a restarted daemon
has no report from it. The end of the pilot corrects this later: a loss shortly before a walltime, a
preemption or a cancel is excused, and a signal that came from neither of these came from a task.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from adaptor.model import AttemptOutcome, PilotState, TaskState
from adaptor.protocol.messages import AttemptKey
from adaptor.scheduling.changes import AttemptSuspected, WorkerDied
from adaptor.scheduling.losses import Loss, LostAttempt, PilotEnd, remark, sentence
from adaptor.scheduling.settling import NEAR_THE_END, give_up
from adaptor.scheduling.state import SchedulingState
from adaptor.scheduling.workers import Worker

SILENT = "fell silent"  # end of a worker that only fell silent
_EXCUSES = frozenset({PilotState.WALLTIME, PilotState.PREEMPTED, PilotState.CANCELLED})
"""Ends of a pilot that end its workers, whatever their tasks do."""
_OF_ITSELF = frozenset({PilotState.COMPLETED, PilotState.FAILED, PilotState.NODE_FAILED})
"""Ends of a pilot that were not asked for: a signal that its workers got came from within."""
_EXCUSED_SECONDS = 120.0
"""The most seconds from a worker's last message to the end of its pilot, if that end was the cause."""
_TOGETHER = 15.0  # workers whose last messages came within these seconds may have died of the same cause
_OTHERS = 2  # tasks whose workers died on a node before, from which on the node may be the cause of a death
_CLOCK_SKEW = 30.0  # seconds by which the scheduler's clock may be ahead of ours


def remove(state: SchedulingState, worker: Worker, outcome: AttemptOutcome, at: float, how: str) -> None:
    """Remove a worker that was lost at `at`; its attempts end as `outcome`.

    `how`: what is known of its end; empty: nothing. Tasks go back into the queue in the order of leases.
    """
    suspects = _suspects(worker, at) if how and outcome is AttemptOutcome.LOST else []
    alone = (
        len(suspects) == 1
        and not _died_together(state, worker, suspects, at)
        and not _node_may_be_the_cause(state, worker, suspects)
    )
    loss = Loss(worker.pilot, worker.node, alone, how)
    for key in suspects:
        give_up(state, worker, key, outcome, at, loss)
    for key in reversed(list(worker.held)):
        give_up(state, worker, key, outcome, at)
    if suspects:
        _tell(state, worker.site, suspects, loss)
    del state.workers[worker.id]


def _died_together(
    state: SchedulingState, worker: Worker, suspects: Collection[AttemptKey], at: float
) -> bool:
    """True if another worker of the pilot with other tasks was lost at the same time, or is about to be."""
    others = [other for other in state.workers.of_pilot(worker.pilot) if other is not worker]
    lost = state.lost.get(worker.pilot, {})
    return any(
        not set(suspects).issuperset(other.running) and other.seen <= at + _TOGETHER for other in others
    ) or any(
        key not in suspects and each.worker != worker.id and abs(each.at - at) <= _TOGETHER
        for key, each in lost.items()
    )


def _node_may_be_the_cause(state: SchedulingState, worker: Worker, suspects: list[AttemptKey]) -> bool:
    """True if workers with other tasks have died there before, and no task has been done there since."""
    if not worker.node:
        return False
    deaths = state.deaths_at.setdefault((worker.site, worker.node), set())
    now = {(key.bag, key.task) for key in suspects}
    others = len(deaths - now)
    deaths |= now
    return others >= _OTHERS


def _tell(state: SchedulingState, site: str, suspects: list[AttemptKey], loss: Loss) -> None:
    bags = state.bags
    known = [key for key in suspects if key.bag in bags and bags[key.bag].has(key.task)]
    again = any(not bags[key.bag].state(key.task).ended for key in known)
    state.changes.deaths.append(WorkerDied(site, loss.pilot, remark(suspects, loss, again=again)))


def _suspects(worker: Worker, at: float) -> list[AttemptKey]:
    """Tasks that ran on a worker when it died; empty if something else may well have ended it."""
    if worker.awaited or worker.deadline - at < NEAR_THE_END:
        return []
    # A node that is only kept for a task whose command has ended elsewhere has nothing to do with it.
    ended = [key for key, held in worker.held.items() if held.takes_part and held.abort_sent]
    return [key for key in worker.running if key not in ended]


def explain_losses(state: SchedulingState, end: PilotEnd) -> None:
    """Take in how a pilot has ended: excuse its lost attempts, or suspect those that a signal ended.

    What it lost before it started was lost when the scheduler put it back into its queue.
    """
    signalled: dict[str, dict[AttemptKey, LostAttempt]] = {}
    for key, lost in state.lost.pop(end.pilot, {}).items():
        bag = state.bags.get(key.bag)
        put_back = end.started is None or lost.at < end.started - _CLOCK_SKEW
        if bag is None or bag.state(key.task).ended:
            continue
        if key.attempt not in bag.losses.of(key.task):
            if not put_back and end.state in _OF_ITSELF:
                signalled.setdefault(lost.worker, {})[key] = lost
        elif put_back or _excuses(end, lost):
            bag.excuse(key.task, key.attempt)
            state.changes.attempts.append(AttemptSuspected(key, suspect=False))
    for together in signalled.values():
        _suspect_late(state, end, together)


def _excuses(end: PilotEnd, lost: LostAttempt) -> bool:
    """True if a worker fell silent because the scheduler was ending its pilot."""
    if end.state not in _EXCUSES or (end.by_us and end.state is PilotState.CANCELLED):
        return False
    return end.at - lost.at <= _EXCUSED_SECONDS


def _suspect_late(state: SchedulingState, end: PilotEnd, together: Mapping[AttemptKey, LostAttempt]) -> None:
    """Suspect what ran on a worker that got a signal; a task that runs again by now is left running."""
    node = next(iter(together.values())).node
    loss = Loss(end.pilot, node, len(together) == 1, end.state.value)
    for key in together:
        bag = state.bags.get(key.bag)
        if bag is None or bag.state(key.task).ended:  # by another worker's attempt
            continue
        state.suspect(bag, key)
        state.changes.attempts.append(AttemptSuspected(key, suspect=True))
        if bag.state(key.task) is TaskState.WAITING and bag.losses.convicts(key.task, loss):
            error = sentence(bag.id, len(bag.losses.of(key.task)), loss)
            state.end_task(bag, key, TaskState.FAILED, error)
        state.forget_if_over(bag)
    _tell(state, end.site, list(together), loss)
