"""The inner loop of the tasks in the slots of pilots, compiled by numba; `kernel_tasks.py` is its face.

It does what `adaptor.scheduling` does with one bag at one site in pilots of formal requests: workers hold
nothing in reserve, tasks have one processor each. `tests/simulation/tasks/` holds both together, call by
call.
All times are whole seconds of the trace.
"""

from __future__ import annotations

from typing import NamedTuple

from adaptor.runtimes.known import ENOUGH
from adaptor_simulation.kernels import NEVER, Array, kernel


class State(NamedTuple):
    """All that a kernel looks at and changes, in a few arrays, so that it is cheap to save."""

    s: Array
    """The scalars below."""
    tasks: Array
    """(2, n) of each task: RUNTIME, OWN (seconds that it needs by itself since it was cut). Those from FRESH
    on were never started."""
    back: Array
    """(n,) the stack of tasks that were started before, rows 0 to BACKS."""
    over: Array
    """(n,) tasks finished since they were learned from that had been cut before, rows 0 to OVER."""
    pilots: Array
    """(rows, PILOT_COLUMNS) running pilots in the order of their starts, rows 0 to ROWS."""
    slots: Array
    """(4, slots): TASK, START, ROW (of the pilot; -1: none), NEXT (slot of the pilot; -1: it is the last)."""
    heap: Array
    """(slots,) the ends of running tasks, as `end << SHIFT | slot`, rows 0 to HEAP."""


# scalars
FRESH, HEAP = 0, 1
BACKS = 2  # the height of the stack
LEAST = 3  # no task of the stack needs less by itself
ESTIMATE = 4  # seconds that must be left of a pilot when any task is started in it
ROWS = 5  # pilots that run
LONGEST = 6  # the longest runtime of a finished task
COUNT, TOTAL, SQUARES = 7, 8, 9  # finished since they were learned from: tasks, runtimes, squares of them
OVER = 10
LAST = 11  # when the last task finished
ROW = 12  # the pilot of the task that ended last; -1: none has ended in this call of `run`
KNOWN = 13  # tasks that had finished before these; -1: none starts at even odds
KNOWN_TOTAL = 14  # their runtimes
ENDED = 15  # a second in which a task ended and idle slots may have got one since; -1: none, or no even odds
RAISED = 16  # how many more must finish until cut tasks say nothing of others; 0: they say nothing
SCALARS = 17
# tasks
RUNTIME, OWN = 0, 1
# pilots
P, DEADLINE = 0, 1  # processors, and when the worker ends its tasks
BUSY, IDLE = 2, 3  # slots with a task, and since when there is none
DONE, WORK = 4, 5  # tasks that are done, and their runtimes
FIRST = 6  # its first slot
PILOT_COLUMNS = 7
# slots
TASK, START, PILOT, NEXT = 0, 1, 2, 3
SHIFT = 24
MOST_SLOTS = 1 << SHIFT


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
def _take(t: State, left: float) -> int:
    """The next task of the stack that needs no more than this by itself; -1: none."""
    s, back = t.s, t.back
    if s[LEAST] > left:
        return -1
    least = NEVER
    for at in range(s[BACKS] - 1, -1, -1):
        task = back[at]
        own = t.tasks[OWN, task]
        if own <= left:
            s[BACKS] -= 1
            for i in range(at, s[BACKS]):
                back[i] = back[i + 1]
            return int(task)
        least = min(least, own)
    s[LEAST] = least
    return -1


@kernel
def _take_fresh(t: State) -> int:
    """The next task that was never started; -1: none."""
    if t.s[FRESH] == t.tasks.shape[1]:
        return -1
    t.s[FRESH] += 1
    return int(t.s[FRESH] - 1)


@kernel
def _needed(t: State) -> int:
    """Seconds that must be left of a pilot when a task starts in it (`RuntimeLearner.even`)."""
    s = t.s
    finished, waiting = s[KNOWN] + s[COUNT], t.tasks.shape[1] - s[FRESH] + s[BACKS]
    if s[KNOWN] < 0 or finished < ENOUGH or waiting <= s[HEAP]:
        return int(s[ESTIMATE])
    return int(min(s[ESTIMATE], -((s[KNOWN_TOTAL] + s[TOTAL]) // -finished)))


@kernel
def _next(t: State, row: int, now: int) -> int:
    """The task that starts now in a pilot; -1: none."""
    left = t.pilots[row, DEADLINE] - now
    if left < _needed(t):
        return -1
    own = left if left >= t.s[ESTIMATE] else 0  # a task that was cut does not start at even odds again
    task = _take(t, own)
    return task if task >= 0 else _take_fresh(t)


@kernel
def _start_next(t: State, row: int, slot: int, now: int) -> bool:
    """Start the next task that can finish in time in an idle slot; whether there was one."""
    task = _next(t, row, now)
    if task < 0:
        return False
    t.slots[TASK, slot] = task
    t.slots[START, slot] = now
    t.pilots[row, BUSY] += 1
    _push(t.s, t.heap, ((now + t.tasks[RUNTIME, task]) << SHIFT) | slot)
    return True


@kernel
def fill_row(t: State, row: int, now: int) -> None:
    """Start tasks in the idle slots of a pilot."""
    pilots = t.pilots
    if pilots[row, BUSY] == pilots[row, P] or pilots[row, DEADLINE] <= now:
        return
    if pilots[row, DEADLINE] - now < _needed(t):
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
        soonest = min(soonest, t.pilots[row, DEADLINE])
        if t.pilots[row, BUSY] == 0:
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
        if t.pilots[row, BUSY] == 0 and t.pilots[row, IDLE] + idle_timeout <= now:
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
