"""The inner loops of tasks on donated processors and in pilots, compiled by numba; `kernel_bag` is the face.

The rules of `adaptor.donation.fitting` and `adaptor.scheduling` for one bag of tasks of one processor
each, in numbers; `tests/simulation/donation/test_kernel_bag.py` holds them against the scheduling core,
call by call. All times are whole seconds of the trace. The state is a few arrays:

s        the scalars below
lot      (ROWS, processors) what each processor of the cluster does
tasks    (4, n) of each task: RUNTIME, OWN (seconds that it needs since it was cut), RAN (the longest that
         it ran before it was preempted), PREEMPTED (how often)
queue    (2, n) stacks of tasks that were started before: BACK, and HELD (`fitting.held`)
over     (n,) tasks finished since they were learned from that had been cut before
hazard   (3, pieces) float64: EDGES, CUMULATIVE, RATES
levels   minus the logarithms of the probabilities with which a task must finish on a donated processor: one
         that is not held, and a held one of a mixed bag at the least
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from adaptor.simulation.kernels import NEVER, Array, kernel

Floats = npt.NDArray[np.float64]

# scalars
FRESH = 0  # the first task that was never started
BACKS, HELDS = 1, 2  # the heights of the stacks
ESTIMATE = 3  # seconds that must be left of a pilot when any task is started in it
KNOWN = 4  # the same estimate where something was learned, else 0
POSSIBLE = 5  # seconds of the longest task that a request can hold
LONGEST = 6  # the longest runtime of a finished task
COUNT, TOTAL, SQUARES, OVER = 7, 8, 9, 10  # finished since they were learned from, as in `task_kernels`
LAST = 11  # when the last task finished
NO_OTHER_PLACE = 12  # whether held tasks may run on donated processors where no other fits
USED_TIME, DONATED = 13, 14  # processor-seconds in use, and of tasks that finished there
FORMAL = 15  # when the next formal request is predicted to start; -1: none is
SCALARS = 16
# lot
OWNER = 0  # the job that runs on it; -1: none
SINCE = 1  # when it became idle
TOLD = 2  # until when that was told to the learner
PLANNED = 3  # when the plan needs it; NEVER
USED = 4  # since when the bag uses it while it is donated; -1: it does not
DEADLINE = 5  # of the pilot of a formal request that has it; -1: none has
TASK, START, END = 6, 7, 8  # what runs; -1, and NEVER
UNTIL = 9  # when the pilot that uses the donated processor ends
ROWS = 10
# tasks
RUNTIME, OWN, RAN, PREEMPTED = 0, 1, 2, 3
# queue
BACK, HELD = 0, 1
# hazard
EDGES, CUMULATIVE, RATES = 0, 1, 2


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
def _take(s: Array, tasks: Array, queue: Array, row: int, estimate: int, left: float) -> int:
    """The next task of a stack that needs no more than is left; -1: none."""
    for k in range(s[BACKS + row] - 1, -1, -1):
        task = queue[row, k]
        if max(estimate, tasks[OWN, task], tasks[RAN, task]) <= left:
            s[BACKS + row] -= 1
            for i in range(k, s[BACKS + row]):
                queue[row, i] = queue[row, i + 1]
            return int(task)
    return -1


@kernel
def _release(
    s: Array,
    tasks: Array,
    queue: Array,
    hazard: Floats,
    levels: tuple[float, float],
    age: float,
    until: float,
    wait: float,
) -> int:
    """The next held task that is likely to be done on a donated processor before a request starts; -1: none.

    As `adaptor.donation.fitting.release_probability`.
    """
    too_long = np.inf
    for k in range(s[HELDS] - 1, -1, -1):
        task = queue[HELD, k]
        need = float(max(s[KNOWN], tasks[OWN, task], tasks[RAN, task]))
        if need >= too_long:
            continue
        level = levels[1]
        if need > 0:
            level = min(level, -np.log(need / (need + wait)))
        if need <= room(hazard, age, until, level):
            s[HELDS] -= 1
            for i in range(k, s[HELDS]):
                queue[HELD, i] = queue[HELD, i + 1]
            return int(task)
        too_long = need
    return -1


@kernel
def _fresh(s: Array, tasks: Array, estimate: int, left: float) -> int:
    if s[FRESH] == tasks.shape[1] or estimate > left:
        return -1
    s[FRESH] += 1
    return int(s[FRESH] - 1)


@kernel
def _next(
    s: Array,
    lot: Array,
    tasks: Array,
    queue: Array,
    hazard: Floats,
    levels: tuple[float, float],
    p: int,
    now: int,
) -> int:
    """The task that processor p starts now; -1: none."""
    if lot[DEADLINE, p] >= 0:
        left = float(lot[DEADLINE, p] - now)
        if left < s[ESTIMATE] or left <= 0:
            return -1
        task = _take(s, tasks, queue, HELD, s[ESTIMATE], left)
        if task < 0:
            task = _take(s, tasks, queue, BACK, s[ESTIMATE], left)
        return task if task >= 0 else _fresh(s, tasks, s[ESTIMATE], left)
    left = room(hazard, float(now - lot[SINCE, p]), float(lot[PLANNED, p] - now), levels[0])
    left = min(left, float(lot[UNTIL, p] - now))
    if left <= 0:
        return -1
    task = _take(s, tasks, queue, BACK, s[KNOWN], left)
    if task < 0:
        task = _fresh(s, tasks, s[KNOWN], left)
    if task < 0 and s[NO_OTHER_PLACE] == 1:
        task = _take(s, tasks, queue, HELD, s[KNOWN], left)
    elif task < 0 and s[HELDS] > 0 and s[FORMAL] > now:
        until = float(min(lot[PLANNED, p], lot[UNTIL, p]) - now)
        task = _release(s, tasks, queue, hazard, levels, float(now - lot[SINCE, p]), until, s[FORMAL] - now)
    return task


@kernel
def _start_next(
    s: Array,
    lot: Array,
    tasks: Array,
    queue: Array,
    hazard: Floats,
    levels: tuple[float, float],
    p: int,
    now: int,
) -> bool:
    """Start a task on an idle processor of ours; a donated one without any is given back."""
    task = _next(s, lot, tasks, queue, hazard, levels, p, now)
    if task >= 0:
        lot[TASK, p], lot[START, p], lot[END, p] = task, now, now + tasks[RUNTIME, task]
        return True
    if lot[USED, p] >= 0:
        s[USED_TIME] += now - lot[USED, p]
        lot[USED, p] = -1
    return False


@kernel
def fill(
    s: Array, lot: Array, tasks: Array, queue: Array, hazard: Floats, levels: tuple[float, float], now: int
) -> None:
    """Start tasks on all idle processors of ours: first in pilots, then on donated ones."""
    for p in range(lot.shape[1]):
        if lot[DEADLINE, p] > now and lot[TASK, p] < 0:
            _start_next(s, lot, tasks, queue, hazard, levels, p, now)
    # Jobs take the first processors that are idle, so the last ones are idle for the longest.
    for p in range(lot.shape[1] - 1, -1, -1):
        if lot[USED, p] >= 0 and lot[TASK, p] < 0:
            _start_next(s, lot, tasks, queue, hazard, levels, p, now)


@kernel
def _first(lot: Array) -> int:
    """The processor whose task ends first."""
    best = 0
    for p in range(lot.shape[1]):
        if lot[END, p] < lot[END, best]:
            best = p
    return best


@kernel
def _others_run(lot: Array, p: int) -> bool:
    """Whether a task runs in the pilot that has processor p."""
    others = 0
    for other in range(lot.shape[1]):
        others += lot[OWNER, other] == lot[OWNER, p] and lot[TASK, other] >= 0
    return others > 0


@kernel
def run(
    s: Array,
    lot: Array,
    tasks: Array,
    queue: Array,
    over: Array,
    hazard: Floats,
    levels: tuple[float, float],
    until: int,
) -> int:
    """Let tasks end, and others start on their processors, up to and including `until`.

    Returns:
        When it stopped before that, to have something learned before the next task starts (`fill` goes
        on) or because a pilot has no task any more; NEVER where it did not.
    """
    while True:
        p = _first(lot)
        now = lot[END, p]
        if now > until or now == NEVER:
            return NEVER
        task = lot[TASK, p]
        runtime = tasks[RUNTIME, task]
        lot[TASK, p], lot[END, p] = -1, NEVER
        s[COUNT] += 1
        s[TOTAL] += runtime
        s[SQUARES] += runtime * runtime
        s[LAST] = now
        if lot[USED, p] >= 0:
            s[DONATED] += runtime
        if tasks[OWN, task] > 0:
            over[s[OVER]] = task
            s[OVER] += 1
        if runtime > s[LONGEST] or tasks[OWN, task] >= s[POSSIBLE]:
            s[LONGEST] = max(s[LONGEST], runtime)
            return int(now)
        started = _start_next(s, lot, tasks, queue, hazard, levels, p, now)
        if not started and lot[DEADLINE, p] >= 0 and not _others_run(lot, p):
            return int(now)


@kernel
def seat(lot: Array, job: int, need: int, deadline: int) -> None:
    """A job starts on the first processors that run no other."""
    for p in range(lot.shape[1]):
        if need == 0:
            return
        if lot[OWNER, p] < 0:
            lot[OWNER, p], lot[DEADLINE, p] = job, deadline
            need -= 1


@kernel
def plan_ahead(lot: Array, times: Array, free: Array) -> None:
    """When the plan needs each idle processor, if jobs take the first ones: from the availability profile."""
    count = 0
    for p in range(lot.shape[1]):
        if lot[OWNER, p] < 0:
            lot[PLANNED, p] = NEVER
            count += 1
    p = 0
    for step in range(1, len(times)):
        while free[step] < count:
            while lot[OWNER, p] >= 0:
                p += 1
            lot[PLANNED, p] = times[step]
            p += 1
            count -= 1
