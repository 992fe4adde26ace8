"""Tasks that ran out of memory: with how much they are tried again, if their bag says so (`on-oom`). Pure.

The growth bounds itself: each attempt has more than the one before, up to what the largest node has. So it
does not count as a retry.
"""

from __future__ import annotations

import math

import msgspec

from adaptor.crafting.fits import most_memory
from adaptor.model import TaskState
from adaptor.protocol.messages import Result
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.changes import MemoryRaised
from adaptor.scheduling.state import SchedulingState
from adaptor.scheduling.workers import Worker
from adaptor.units import format_size

_MIB = 1 << 20
_WITHOUT_NODES = 64
"""Where no node is known, a task gets at most this multiple of what it had at first."""


class Growth(msgspec.Struct, frozen=True):
    """What follows from an end for lack of memory."""

    text: str
    """What happened, and what follows."""
    memory: int | None = None
    """Bytes with which the task is tried again; None: it is not tried with more."""


def growth_of(state: SchedulingState, bag: Bag, worker: Worker, result: Result) -> Growth:
    """What follows from the end of an attempt for lack of memory."""
    task, factor = result.key.task, bag.spec.on_oom
    size = bag.sizes.of(task)
    had = size.memory or result.peak_memory
    told = f"out of memory at {format_size(had)}" if had else "out of memory"
    if size.memory is None:
        together = format_size(worker.whole.memory)
        told += f": ask for memory (all tasks on its node had {together} together)"
    if factor is None or not had:
        return Growth(told)
    most = _most(state, bag, task) or (bag.task.memory or had) * _WITHOUT_NODES
    if had >= most:
        return Growth(f"{told}, the most that a node has for it")
    wanted = had * factor
    while wanted <= result.peak_memory:  # it was seen to hold more than it asked for
        wanted *= factor
    memory = min(most, math.ceil(wanted / _MIB) * _MIB)
    return Growth(f"{told}: again with {format_size(memory)}", memory)


def _most(state: SchedulingState, bag: Bag, task: int) -> int | None:
    """The most memory that a node of any site has for a task (bytes); None: no node is known."""
    queues = (state.queues.get(site) for site in state.sites if bag.spec.allows(site))
    size = bag.sizes.of(task)
    found = [most for queue in queues if queue and (most := most_memory(queue, size)) is not None]
    return max(found, default=None)


def raise_memory(state: SchedulingState, bag: Bag, worker: Worker, result: Result) -> None:
    """Give a task that ran out of memory more, and queue it again unless another attempt runs."""
    key, growth = result.key, growth_of(state, bag, worker, result)
    bag.release(key.task, key.attempt)
    if growth.memory is not None and growth.memory > (bag.sizes.of(key.task).memory or 0):
        known = (bag.id, growth.text) in state.told_growth
        state.told_growth.add((bag.id, growth.text))
        text = "" if known else f"task {key.task} of bag {bag.id} ran {growth.text} (on-oom)"
        bag.resize(key.task, growth.memory)
        state.changes.raised.append(
            MemoryRaised(bag.id, key.task, growth.memory, worker.site, worker.pilot, text)
        )
    if key.task not in bag.live and bag.state(key.task) is TaskState.LEASED:
        state.put_back(bag, key.task, first=False)
    else:
        state.note(bag, key.task)
