"""The inner loop of the tasks in running pilots, compiled by numba. `kernel_execution.py` is its typed face.

It does what `adaptor.scheduling` does with one bag at one site whose workers hold nothing in reserve;
`tests/simulation/test_kernel_and_core.py` holds the two together. All times are whole seconds of the trace.
The state is a few int64 arrays, so that it is cheap to save:

s        the scalars below
runtimes (n,) of the tasks; those from FRESH on were never started
own      (n,) seconds that a task which was cut needs by itself, 0 for the others
back     (n,) tasks that were put back, rows 0 to BACK, the last one is the next
over     (n,) tasks finished since `taken` that had been cut before, rows 0 to OVER
pilots   (rows, 6) running pilots in the order of their starts, rows 0 to ROWS: P, DEADLINE (when the worker
         ends its tasks), BUSY, DONE, IDLE (since when it has no task, where BUSY is 0), WORK (the runtimes
         of the tasks that are done)
tasks    (rows, width) the task of each slot, -1 for none
starts   (rows, width) when it was started
heap     (rows * width,) the ends of running tasks, as `end << SHIFT | slot`, rows 0 to HEAP
"""

from __future__ import annotations

from adaptor.runtimes.learner import ENOUGH
from adaptor.simulation.kernels import NEVER, Array, kernel

FRESH, BACK, OVER, HEAP = 0, 1, 2, 3
ESTIMATE = 4  # seconds that must be left of a pilot when any task is started in it
ROWS = 5  # pilots that run
LONGEST = 6  # the longest runtime of a finished task
COUNT, TOTAL, SQUARES = 7, 8, 9  # finished since `taken`: tasks, their runtimes, and the squares of them
LAST = 10  # when the last task finished
LEAST_BACK = 11  # no task that was put back needs less by itself
ROW = 12  # the pilot of the task that ended last; -1: none has ended in this call of `run`
KNOWN = 13  # tasks that had finished before these; -1: none starts at even odds
KNOWN_TOTAL = 14  # their runtimes
ENDED = 15  # a second in which a task ended and idle slots may have got one since; -1: none, or no even odds
SCALARS = 16

P, DEADLINE, BUSY, DONE, IDLE, WORK = 0, 1, 2, 3, 4, 5
PILOT_COLUMNS = 6
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
def _take_back(s: Array, own: Array, back: Array, left: int) -> int:
    """The next of the tasks that were put back which needs no more than this; -1: none."""
    if s[LEAST_BACK] > left:
        return -1
    least = NEVER
    for k in range(s[BACK] - 1, -1, -1):
        task = back[k]
        if own[task] <= left:
            s[BACK] -= 1
            for i in range(k, s[BACK]):
                back[i] = back[i + 1]
            return int(task)
        least = min(least, own[task])
    s[LEAST_BACK] = least
    return -1


@kernel
def _needed(s: Array, runtimes: Array) -> int:
    """Seconds that must be left of a pilot when a task starts in it (`RuntimeLearner.even`)."""
    finished, waiting = s[KNOWN] + s[COUNT], len(runtimes) - s[FRESH] + s[BACK]
    if s[KNOWN] < 0 or finished < ENOUGH or waiting <= s[HEAP]:
        return int(s[ESTIMATE])
    return int(min(s[ESTIMATE], -((s[KNOWN_TOTAL] + s[TOTAL]) // -finished)))


@kernel
def _start_next(
    s: Array,
    runtimes: Array,
    own: Array,
    back: Array,
    pilots: Array,
    tasks: Array,
    starts: Array,
    heap: Array,
    slot: int,
    now: int,
) -> bool:
    """Start the next task that can finish in time in an idle slot; whether there was one."""
    width = tasks.shape[1]
    row = slot // width
    left = pilots[row, DEADLINE] - now
    if left < _needed(s, runtimes):
        return False
    own_left = left if left >= s[ESTIMATE] else 0  # a task that was cut does not start at even odds again
    task = _take_back(s, own, back, own_left)
    if task < 0:
        if s[FRESH] == len(runtimes):
            return False
        task = s[FRESH]
        s[FRESH] += 1
    place = slot - row * width
    tasks[row, place] = task
    starts[row, place] = now
    pilots[row, BUSY] += 1
    _push(s, heap, ((now + runtimes[task]) << SHIFT) | slot)
    return True


@kernel
def fill_row(
    s: Array,
    runtimes: Array,
    own: Array,
    back: Array,
    pilots: Array,
    tasks: Array,
    starts: Array,
    heap: Array,
    row: int,
    now: int,
) -> None:
    """Start tasks in the idle slots of a pilot."""
    width = tasks.shape[1]
    left = pilots[row, DEADLINE] - now
    if pilots[row, BUSY] == pilots[row, P] or left <= 0 or left < _needed(s, runtimes):
        return
    for place in range(pilots[row, P]):
        if tasks[row, place] < 0 and not _start_next(
            s, runtimes, own, back, pilots, tasks, starts, heap, row * width + place, now
        ):
            return  # nor would any other slot of this pilot


@kernel
def fill(
    s: Array,
    runtimes: Array,
    own: Array,
    back: Array,
    pilots: Array,
    tasks: Array,
    starts: Array,
    heap: Array,
    now: int,
) -> None:
    """Start tasks in the idle slots of all pilots, as the last thing in a second."""
    s[ENDED] = -1
    for row in range(s[ROWS]):
        fill_row(s, runtimes, own, back, pilots, tasks, starts, heap, row, now)


@kernel
def run(
    s: Array,
    runtimes: Array,
    own: Array,
    back: Array,
    over: Array,
    pilots: Array,
    tasks: Array,
    starts: Array,
    heap: Array,
    until: int,
) -> int:
    """Let tasks end, and others start in their slots, up to and including `until`.

    It stops before that when something is to be learned before the next task starts in the pilot ROW
    (`fill_row` goes on), or when that pilot has no task any more. The idle slots of all pilots at `until`
    are left to `fill`, since pilots may end in that second.

    Returns:
        When it stopped; NEVER where it did not.
    """
    width = tasks.shape[1]
    s[ROW] = -1
    while True:
        soonest = heap[0] >> SHIFT if s[HEAP] > 0 else NEVER
        if 0 <= s[ENDED] < min(soonest, until):
            fill(s, runtimes, own, back, pilots, tasks, starts, heap, s[ENDED])
            continue
        if s[HEAP] == 0 or soonest > until:
            break
        now, slot = soonest, heap[0] & (MOST_SLOTS - 1)
        s[HEAP] -= 1
        _sink(s, heap, 0, heap[s[HEAP]])
        row = slot // width
        place = slot - row * width
        task = tasks[row, place]
        runtime = runtimes[task]
        tasks[row, place] = -1
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
        if own[task] > 0:
            over[s[OVER]] = task
            s[OVER] += 1
        if pilots[row, BUSY] == 0:
            pilots[row, IDLE] = now
        if runtime > s[LONGEST]:
            s[LONGEST] = runtime
            return int(now)
        if pilots[row, BUSY] + 1 == pilots[row, P]:  # its only idle slot: no search
            _start_next(s, runtimes, own, back, pilots, tasks, starts, heap, slot, now)
        else:  # at even odds, others of its slots may have stood idle although tasks wait
            fill_row(s, runtimes, own, back, pilots, tasks, starts, heap, row, now)
        if pilots[row, BUSY] == 0:
            return int(now)
    s[ROW] = -1
    return NEVER


@kernel
def remove_pilot(s: Array, pilots: Array, tasks: Array, starts: Array, heap: Array, row: int) -> None:
    """Forget the tasks of a pilot's slots; the pilots that started after it move up."""
    width = tasks.shape[1]
    first, after, kept = row * width, (row + 1) * width, 0
    for each in range(s[HEAP]):
        slot = heap[each] & (MOST_SLOTS - 1)
        if slot < first:
            heap[kept] = heap[each]
            kept += 1
        elif slot >= after:
            heap[kept] = heap[each] - width
            kept += 1
    s[HEAP] = kept
    for at in range(kept // 2, -1, -1):
        if at < kept:
            _sink(s, heap, at, heap[at])
    s[ROWS] -= 1
    for below in range(row, s[ROWS]):
        for column in range(PILOT_COLUMNS):
            pilots[below, column] = pilots[below + 1, column]
        for place in range(width):
            tasks[below, place] = tasks[below + 1, place]
            starts[below, place] = starts[below + 1, place]
    for place in range(width):
        tasks[s[ROWS], place] = -1
