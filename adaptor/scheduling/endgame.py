"""The end of a bag: nothing waits and a worker has room that is already paid for.

First the tasks that other workers hold unstarted are called back, then those that are expected to end
last are replicated (`tailing`; De Rose §1): the first result wins.
"""

from __future__ import annotations

from adaptor.model import TaskState
from adaptor.protocol.messages import AttemptKey
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.state import PaidCopy, SchedulingState
from adaptor.scheduling.tail_replication import copies
from adaptor.scheduling.workers import Worker

_PAUSE = 0.1
"""Seconds between two looks at what may be replicated, for each hundred workers."""


def feed_the_end(state: SchedulingState, worker: Worker, now: float) -> None:
    if _call_back(state, worker):
        return
    for bag in list(state.bags.values()):
        if _may_replicate(bag) and state.serves(worker, bag) and _is_due(state, bag, now):
            for copy in copies(state, bag, now):
                key = state.lease(copy.worker, bag, copy.task, copy.needs, now)
                if bag.id in state.alone:
                    state.copies[key] = PaidCopy(copy.worker.id, copy.until)


def _call_back(state: SchedulingState, idle: Worker) -> bool:
    """Ask other workers for half of what they hold unstarted; whether any was asked for."""
    asked = False
    for other in state.workers.values():
        if other is idle or other.awaited or other.site != idle.site:
            continue
        unstarted = [key for key in other.unstarted if not other.held[key].give_back_sent]
        for key in unstarted[len(unstarted) // 2 :]:
            if other.queued and _could_have(state, idle, key):
                other.held[key].give_back_sent = asked = True
                state.orders.of(other.id).give_back.append(key)
    return asked


def _could_have(state: SchedulingState, idle: Worker, key: AttemptKey) -> bool:
    bag = state.bags.get(key.bag)
    return bag is not None and bag.spec.cpus <= idle.free_processors and state.serves(idle, bag)


def _is_due(state: SchedulingState, bag: Bag, now: float) -> bool:
    """Each idle worker calls for a look with every report, and one goes over all workers (1000: 20 ms)."""
    last = state.looked.get(bag.id)
    if last is not None and 0 <= now - last < len(state.workers) // 100 * _PAUSE:
        return False
    state.looked[bag.id] = now
    return True


def _may_replicate(bag: Bag) -> bool:
    return bag.spec.replicas > 0 and not bag.count(TaskState.WAITING) and bag.count(TaskState.LEASED) > 0
