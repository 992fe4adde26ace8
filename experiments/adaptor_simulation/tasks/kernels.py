"""The inner loop of the tasks in the slots of pilots, compiled by numba; `kernel_tasks.py` is its face.

It does what `adaptor.scheduling` does with one bag at one site: workers hold nothing in reserve, tasks have
one processor each, and so have donated nodes. `tests/simulation/tasks/` holds both together, call by call.
All times are whole seconds of the trace.

A slot of a pilot has a deadline. That of a pilot on a donated node may also be taken at any time: tasks are
started there by the hazard of the site (`adaptor.donation.fitting`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from adaptor.donation import idleness
from adaptor.donation.idleness import Hazard
from adaptor.runtimes.known import ENOUGH
from adaptor_simulation.kernels import NEVER, Array, kernel

Floats = npt.NDArray[np.float64]


class State(NamedTuple):
    """All that a kernel looks at and changes, in a few arrays, so that it is cheap to save."""

    s: Array
    """The scalars below."""
    tasks: Array
    """(4, n) of each task: RUNTIME, OWN (seconds that it needs by itself since it was cut), RAN (the longest
    that it ran before it was preempted), PREEMPTED (how often). Those from FRESH on were never started."""
    queue: Array
    """(2, n) stacks of tasks that were started before: BACK, and HELD (`fitting.held`)."""
    over: Array
    """(n,) tasks finished since they were learned from that had been cut before, rows 0 to OVER."""
    pilots: Array
    """(rows, PILOT_COLUMNS) running pilots in the order of their starts, rows 0 to ROWS."""
    slots: Array
    """(4, slots): TASK, START, ROW (of the pilot; -1: none), NEXT (slot of the pilot; -1: it is the last)."""
    heap: Array
    """(slots,) the ends of running tasks, as `end << SHIFT | slot`, rows 0 to HEAP."""
    hazard: Floats
    """(3, pieces): EDGES, CUMULATIVE, RATES."""
    levels: Floats
    """Minus the logarithms of the probabilities with which a task must finish on a donated node: one that is
    not held, and a held one of a mixed bag at the least."""


# scalars
FRESH, HEAP = 0, 1
BACKS, HELDS = 2, 3  # the heights of the stacks
LEASTS = 4  # and 5: no task of the stack needs less by itself
ESTIMATE = 6  # seconds that must be left of a pilot when any task is started in it
NEEDED = 7  # the same estimate where something was learned, else 0: what a donated node must leave
ROWS = 8  # pilots that run
LONGEST = 9  # the longest runtime of a finished task
COUNT, TOTAL, SQUARES = 10, 11, 12  # finished since they were learned from: tasks, runtimes, squares of them
OVER = 13
LAST = 14  # when the last task finished
ROW = 15  # the pilot of the task that ended last; -1: none has ended in this call of `run`
KNOWN = 16  # tasks that had finished before these; -1: none starts at even odds
KNOWN_TOTAL = 17  # their runtimes
ENDED = 18  # a second in which a task ended and idle slots may have got one since; -1: none, or no even odds
NO_OTHER_PLACE = 19  # whether held tasks may run on donated nodes where no other fits
FORMAL = 20  # when the next formal request is predicted to start; -1: none is
RAISED = 21  # how many more must finish until cut tasks say nothing of others; 0: they say nothing
SCALARS = 22
# tasks
RUNTIME, OWN, RAN, PREEMPTED = 0, 1, 2, 3
# queue
BACK, HELD = 0, 1
# pilots
P, DEADLINE = 0, 1  # processors, and when the worker ends its tasks
BUSY, IDLE = 2, 3  # slots with a task, and since when there is none
DONE, WORK = 4, 5  # tasks that are done, and their runtimes
FIRST = 6  # its first slot
# Of a donated node: when it became idle, and when a job is planned there; NEVER: it is formal.
SINCE, PLANNED = 7, 8
PILOT_COLUMNS = 9
# slots
TASK, START, PILOT, NEXT = 0, 1, 2, 3
# hazard
EDGES, CUMULATIVE, RATES = 0, 1, 2
SHIFT = 24
MOST_SLOTS = 1 << SHIFT


def numbers(hazard: Hazard) -> Floats:
    """(3, pieces): a hazard as the kernels take it."""
    return np.array([idleness.EDGES, hazard.cumulative, hazard.rates])


@kernel
def _push(s: Array, heap: Array, key: int) -> None:
    at = s[HEAP]
    s[HEAP] = at + 1
    while at > 0:
        parent = (at - 1) >> 1
        if heap[parent] <= key:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = key


@kernel
def _sink(s: Array, heap: Array, at: int, key: int) -> None:
    """Put a key at this place or below."""
    size = s[HEAP]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= key:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = key


@kernel
def room(hazard: Floats, age: float, until_planned: float, level: float) -> float:
    """As `adaptor.donation.fitting.room`; `level` is minus the logarithm of the probability."""
    if level == np.inf:
        return np.inf
    last = hazard.shape[1] - 1
    piece = last
    while piece > 0 and hazard[EDGES, piece] > age:
        piece -= 1
    level += hazard[CUMULATIVE, piece] + hazard[RATES, piece] * (age - hazard[EDGES, piece])
    while piece < last and hazard[CUMULATIVE, piece + 1] <= level:
        piece += 1
    longest = hazard[EDGES, piece] + (level - hazard[CUMULATIVE, piece]) / hazard[RATES, piece] - age
    return float(max(0.0, min(until_planned, longest)))


@kernel
def _own(t: State, task: int) -> int:
    """Seconds that a task needs by itself: more than what it had in vain."""
    return int(max(t.tasks[OWN, task], t.tasks[RAN, task]))


@kernel
def _drop(t: State, stack: int, at: int) -> int:
    """Take the task out of this place of a stack."""
    task = t.queue[stack, at]
    t.s[BACKS + stack] -= 1
    for i in range(at, t.s[BACKS + stack]):
        t.queue[stack, i] = t.queue[stack, i + 1]
    return int(task)


@kernel
def _take(t: State, stack: int, left: float) -> int:
    """The next task of a stack that needs no more than this by itself; -1: none."""
    if t.s[LEASTS + stack] > left:
        return -1
    least = NEVER
    for at in range(t.s[BACKS + stack] - 1, -1, -1):
        own = _own(t, t.queue[stack, at])
        if own <= left:
            return _drop(t, stack, at)
        least = min(least, own)
    t.s[LEASTS + stack] = least
    return -1


@kernel
def _take_fresh(t: State) -> int:
    """The next task that was never started; -1: none."""
    if t.s[FRESH] == t.tasks.shape[1]:
        return -1
    t.s[FRESH] += 1
    return int(t.s[FRESH] - 1)


@kernel
def _release(t: State, age: float, until: float, wait: float) -> int:
    """The next held task that is likely to be done on a donated node before a request starts; -1: none.

    As `adaptor.donation.fitting.release_probability`.
    """
    too_long = np.inf
    for at in range(t.s[HELDS] - 1, -1, -1):
        need = float(max(t.s[NEEDED], _own(t, t.queue[HELD, at])))
        if need >= too_long:
            continue
        level = t.levels[1]
        if need > 0:
            level = min(level, -np.log(need / (need + wait)))
        if need <= room(t.hazard, age, until, level):
            return _drop(t, HELD, at)
        too_long = need
    return -1


@kernel
def _needed(t: State) -> int:
    """Seconds that must be left of a pilot when a task starts in it (`RuntimeLearner.even`)."""
    s = t.s
    finished, waiting = s[KNOWN] + s[COUNT], t.tasks.shape[1] - s[FRESH] + s[BACKS] + s[HELDS]
    if s[KNOWN] < 0 or finished < ENOUGH or waiting <= s[HEAP]:
        return int(s[ESTIMATE])
    return int(min(s[ESTIMATE], -((s[KNOWN_TOTAL] + s[TOTAL]) // -finished)))


@kernel
def _next(t: State, row: int, now: int) -> int:
    """The task that starts now in a pilot of a formal request; -1: none."""
    left = t.pilots[row, DEADLINE] - now
    if left < _needed(t):
        return -1
    own = left if left >= t.s[ESTIMATE] else 0  # a task that was cut does not start at even odds again
    task = _take(t, HELD, own)
    if task < 0:
        task = _take(t, BACK, own)
    return task if task >= 0 else _take_fresh(t)


@kernel
def _next_donated(t: State, row: int, now: int) -> int:
    """The task that starts now on a donated node; -1: none."""
    s, ends, planned = t.s, t.pilots[row, DEADLINE] - now, t.pilots[row, PLANNED] - now
    age = float(now - t.pilots[row, SINCE])
    left = min(room(t.hazard, age, float(planned), t.levels[0]), float(ends))
    if left <= 0:
        return -1
    task = -1
    if s[NEEDED] <= left:
        task = _take(t, BACK, left)
        if task < 0:
            task = _take_fresh(t)
        if task < 0 and s[NO_OTHER_PLACE] == 1:
            task = _take(t, HELD, left)
    if task < 0 and s[NO_OTHER_PLACE] == 0 and s[HELDS] > 0 and s[FORMAL] > now:
        task = _release(t, age, float(min(planned, ends)), float(s[FORMAL] - now))
    return task


@kernel
def _start_next(t: State, row: int, slot: int, now: int) -> bool:
    """Start the next task that can finish in time in an idle slot; whether there was one."""
    task = _next(t, row, now) if t.pilots[row, SINCE] == NEVER else _next_donated(t, row, now)
    if task < 0:
        return False
    t.slots[TASK, slot] = task
    t.slots[START, slot] = now
    t.pilots[row, BUSY] += 1
    _push(t.s, t.heap, ((now + t.tasks[RUNTIME, task]) << SHIFT) | slot)
    return True


@kernel
def fill_row(t: State, row: int, now: int) -> None:
    """Start tasks in the idle slots of a pilot. One on a donated node has left where it had none before."""
    pilots = t.pilots
    if pilots[row, BUSY] == pilots[row, P] or pilots[row, DEADLINE] <= now:
        return
    if pilots[row, SINCE] == NEVER:
        if pilots[row, DEADLINE] - now < _needed(t):
            return
    elif pilots[row, IDLE] < now:
        return
    slot = pilots[row, FIRST]
    while slot >= 0:
        if t.slots[TASK, slot] < 0 and not _start_next(t, row, slot, now):
            return  # nor would any other slot of this pilot
        slot = t.slots[NEXT, slot]


@kernel
def fill(t: State, now: int) -> None:
    """Start tasks in the idle slots of all pilots, as the last thing in a second."""
    t.s[ENDED] = -1
    for row in range(t.s[ROWS]):
        fill_row(t, row, now)


@kernel
def run(t: State, until: int) -> int:
    """Let tasks end, and others start in their slots, up to and including `until`.

    It stops before that when something is to be learned before the next task starts in the pilot ROW
    (`fill_row` goes on), or when that pilot has no task any more. The idle slots of all
    pilots at `until` are left to `fill`, since pilots may end in that second.

    Returns:
        When it stopped; NEVER where it did not.
    """
    s, heap, slots, pilots = t.s, t.heap, t.slots, t.pilots
    s[ROW] = -1
    while True:
        soonest = heap[0] >> SHIFT if s[HEAP] > 0 else NEVER
        if 0 <= s[ENDED] < min(soonest, until):
            fill(t, s[ENDED])
            continue
        if s[HEAP] == 0 or soonest > until:
            break
        now, slot = soonest, heap[0] & (MOST_SLOTS - 1)
        s[HEAP] -= 1
        _sink(s, heap, 0, heap[s[HEAP]])
        row, task = slots[PILOT, slot], slots[TASK, slot]
        runtime = t.tasks[RUNTIME, task]
        slots[TASK, slot] = -1
        pilots[row, BUSY] -= 1
        pilots[row, DONE] += 1
        pilots[row, WORK] += runtime
        s[COUNT] += 1
        s[TOTAL] += runtime
        s[SQUARES] += runtime * runtime
        s[LAST] = now
        if s[KNOWN] >= 0:
            s[ENDED] = now
        s[ROW] = row
        if t.tasks[OWN, task] > 0:
            t.over[s[OVER]] = task
            s[OVER] += 1
        if pilots[row, BUSY] == 0:
            pilots[row, IDLE] = now
        fewer_cut = t.tasks[OWN, task] > 0
        learned = s[RAISED] > 0 and (fewer_cut or s[COUNT] >= s[RAISED])
        if learned or runtime > s[LONGEST]:
            s[LONGEST] = max(s[LONGEST], runtime)
            return int(now)
        if pilots[row, BUSY] + 1 == pilots[row, P]:  # its only idle slot: no search
            _start_next(t, row, slot, now)
        else:  # at even odds, others of its slots may have stood idle although tasks wait
            fill_row(t, row, now)
        if pilots[row, BUSY] == 0:
            return int(now)
    s[ROW] = -1
    return NEVER


@kernel
def starts(t: State) -> tuple[int, int]:
    """The sum of the starts of the tasks that run, and the first of them; NEVER: none runs."""
    total, first = 0, NEVER
    for at in range(t.s[HEAP]):
        start = t.slots[START, t.heap[at] & (MOST_SLOTS - 1)]
        total += start
        first = min(first, start)
    return int(total), int(first)


@kernel
def go_on(t: State, now: int) -> int:
    """`run` again, after what was to be learned before the next task starts in the pilot ROW."""
    if t.s[ROW] >= 0:
        fill_row(t, t.s[ROW], now)
    return int(run(t, now))


@kernel
def ahead(t: State, until: int, idle_timeout: int) -> int:
    """`run` until something may happen that matters to the cluster, `until` at the latest; when that is."""
    stop = min(next_stop(t, idle_timeout), until)
    return int(min(run(t, stop), stop))


@kernel
def next_stop(t: State, idle_timeout: int) -> int:
    """Time at which a worker ends its tasks, or leaves since it has none, if no task ends before; NEVER: none
    does."""
    soonest = NEVER
    for row in range(t.s[ROWS]):
        idle = t.pilots[row, BUSY] == 0
        if not idle or t.pilots[row, SINCE] == NEVER:
            soonest = min(soonest, t.pilots[row, DEADLINE])
        if idle and t.pilots[row, SINCE] == NEVER:
            soonest = min(soonest, t.pilots[row, IDLE] + idle_timeout)
    return soonest


@kernel
def first_over(t: State, now: int) -> int:
    """The first pilot whose worker is to end its tasks by now; -1: none."""
    for row in range(t.s[ROWS]):
        if t.pilots[row, DEADLINE] <= now:
            return row
    return -1


@kernel
def first_over_or_fill(t: State, now: int) -> int:
    """`first_over`; where there is none, start tasks in all idle slots."""
    row = first_over(t, now)
    if row < 0:
        fill(t, now)
    return int(row)


@kernel
def last_idle(t: State, now: int, idle_timeout: int) -> int:
    """The last pilot whose worker has left by now because it had no task for too long; -1: none."""
    for row in range(t.s[ROWS] - 1, -1, -1):
        timeout = idle_timeout if t.pilots[row, SINCE] == NEVER else 0
        if t.pilots[row, BUSY] == 0 and t.pilots[row, IDLE] + timeout <= now:
            return row
    return -1


@kernel
def remove_pilot(t: State, row: int) -> None:
    """Forget a pilot and the tasks in its slots; the pilots that started after it move up."""
    s, heap, slots, pilots = t.s, t.heap, t.slots, t.pilots
    kept = 0
    for at in range(s[HEAP]):
        if slots[PILOT, heap[at] & (MOST_SLOTS - 1)] != row:
            heap[kept] = heap[at]
            kept += 1
    if kept < s[HEAP]:
        s[HEAP] = kept
        for at in range(kept // 2, -1, -1):
            if at < kept:
                _sink(s, heap, at, heap[at])
    slot = pilots[row, FIRST]
    while slot >= 0:
        slots[TASK, slot] = slots[PILOT, slot] = -1
        slot = slots[NEXT, slot]
    s[ROWS] -= 1
    for below in range(row, s[ROWS]):
        for column in range(PILOT_COLUMNS):
            pilots[below, column] = pilots[below + 1, column]
        slot = pilots[below, FIRST]
        while slot >= 0:
            slots[PILOT, slot] = below
            slot = slots[NEXT, slot]
