"""The inner loops of the simulated cluster, compiled by numba. `cluster.py` is their typed face.

One space-shared cluster under conservative backfilling or EASY (Mu'alem and Feitelson 2001), with the
semantics of the simulator pyss: within a second all submissions come first (in the trace's order), then the
ends of jobs (in the order in which they started), then the starts (in the order in which their reservations
were made); each event is handled on its own.

A job is `CHUNKS` equal parts, each on one node, and several may be on the same; it gets the first nodes with
room for its whole time limit. Under conservative backfilling a waiting job keeps the nodes of its reservation
until it moves to an earlier time. A cluster that counts processors is one node of all of them.

All kernels are in this one file, because numba's cache of a kernel does not notice a change of a kernel that
it calls in another file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[np.int64]

Function = TypeVar("Function", bound=Callable[..., Any])

# No kernel makes an array, and counting references to them (_nrt) would take half of the time.
_OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False}


def kernel(function: Function) -> Function:
    compiled: Function = njit(**_OPTIONS)(function)
    return compiled


def inlined(function: Function) -> Function:
    """For what is called for each event: a call would hand over dozens of words."""
    compiled: Function = njit(**_OPTIONS, inline="always")(function)
    return compiled


NEVER = 1 << 60

CONSERVATIVE, EASY = 0, 1
DONE, FULL = 0, 1
"""What `advance` returns: it is there, or an array is full and must grow first."""

# scalars
POLICY, NOW, NEXT_JOB, WAITING, RUNNING, STEPS = 0, 1, 2, 3, 4, 5
RESERVATIONS, STARTED = 6, 7  # counters: they order the events of one second
NEXT_START = 8  # the earliest reservation of a waiting job
LEFT_OVER = 9  # the end of the latest hole that the last compression left to jobs it had passed
TOUCHED, CHANGES = 10, 11  # a job from outside started or ended; how often one did
SPARE_ROWS, SPARE_PLACES = 12, 13  # how many rows of `free`, and places of jobs, are not in use
SCALARS = 14
# jobs; from EACH on by dimension what one chunk takes
SUBMIT, RUN, LIMIT, NEED, START, END, CHUNKS, EACH = 0, 1, 2, 3, 4, 5, 6, 7
# running and waiting jobs; a place is a row of `live`, `nodes`, `chunks` and `held`
RUN_END, RUN_JOB, RUN_ORDER, RUN_PLACE = 0, 1, 2, 3
W_JOB, W_START, W_RESERVED, W_NEED, W_LIMIT, W_PLACE = 0, 1, 2, 3, 4, 5
RUNNING_COLUMNS, WAITING_COLUMNS = 4, 6


class State(NamedTuple):
    """N nodes of R dimensions; room for T steps and A jobs in the system."""

    s: Array
    trace: Array
    """The jobs of the trace, sorted by submission, shared by all forks; START and END are not used."""
    starts: Array
    """By job of the trace that has entered: when it started, -1 while it waits."""
    outside: Array
    """The jobs from outside, numbered behind those of the trace."""
    live: Array
    """(A): by place, the row of a job in the system; END is not used."""
    times: Array
    """(T): when each step begins; the last one lasts for ever."""
    total: Array
    """(T): free processors of all nodes."""
    row: Array
    """(T): the row of `free` of each step."""
    free: Array
    """(T, N, R)"""
    running: Array
    """Sorted by end, then by the order of starting."""
    waiting: Array
    """In the order of submission; under EASY a start of NEVER is undecided."""
    nodes: Array
    """(A, N): by place, the nodes that a job holds."""
    chunks: Array
    """(A, N): the chunks on each."""
    held: Array
    """(A): on how many nodes."""
    spare_rows: Array
    spare_places: Array
    counts: Array
    """(2, N): for the kernels' own use."""


# --- the steps ---------------------------------------------------------------------------------------


@inlined
def step_at(t: State, time: int) -> int:
    """The step in which a time from the first one on lies."""
    low, high = 0, t.s[STEPS]
    while high - low > 1:
        middle = (low + high) // 2
        if t.times[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@inlined
def split(t: State, time: int) -> int:
    """The step that begins at `time`, made if it is missing."""
    step = step_at(t, time)
    if t.times[step] == time:
        return step
    for later in range(t.s[STEPS], step + 1, -1):
        t.times[later], t.total[later], t.row[later] = (
            t.times[later - 1],
            t.total[later - 1],
            t.row[later - 1],
        )
    t.s[STEPS] += 1
    t.s[SPARE_ROWS] -= 1
    fresh, old = t.spare_rows[t.s[SPARE_ROWS]], t.row[step]
    for node in range(t.free.shape[1]):
        for dimension in range(t.free.shape[2]):
            t.free[fresh, node, dimension] = t.free[old, node, dimension]
    t.times[step + 1], t.total[step + 1], t.row[step + 1] = time, t.total[step], fresh
    return step + 1


@kernel
def roll(t: State) -> None:
    """Let the steps begin now, and join adjacent ones that are alike."""
    kept = 0
    for step in range(t.s[STEPS]):
        past = step + 1 < t.s[STEPS] and t.times[step + 1] <= t.s[NOW]
        if past or (kept and t.total[kept - 1] == t.total[step] and alike(t, t.row[kept - 1], t.row[step])):
            t.spare_rows[t.s[SPARE_ROWS]] = t.row[step]
            t.s[SPARE_ROWS] += 1
        else:
            t.times[kept], t.total[kept], t.row[kept] = t.times[step], t.total[step], t.row[step]
            kept += 1
    t.s[STEPS] = kept
    t.times[0] = t.s[NOW]


@inlined
def alike(t: State, one: int, other: int) -> bool:
    for node in range(t.free.shape[1]):
        for dimension in range(t.free.shape[2]):
            if t.free[one, node, dimension] != t.free[other, node, dimension]:
                return False
    return True


@inlined
def hold(t: State, place: int, begin: int, end: int, sign: int) -> None:
    """Take (1) or give back (-1) what a job holds of its nodes in [begin, end)."""
    first = split(t, begin)
    last = split(t, end)
    for step in range(first, last):
        row = t.row[step]
        t.total[step] -= sign * t.live[place, NEED]
        for i in range(t.held[place]):
            node, chunks = t.nodes[place, i], sign * t.chunks[place, i]
            for dimension in range(t.free.shape[2]):
                t.free[row, node, dimension] -= chunks * t.live[place, EACH + dimension]


# --- where a job fits --------------------------------------------------------------------------------


@inlined
def narrow(t: State, step: int, place: int, counts: Array) -> int:
    """Lower the chunks by node to those for which this step has room; returns their sum."""
    fitting, row, free, live = 0, t.row[step], t.free, t.live
    for node in range(free.shape[1]):
        count = counts[node]
        for dimension in range(free.shape[2]):
            each, have = live[place, EACH + dimension], free[row, node, dimension]
            if have < count * each:
                count = have // each if each > 1 else have
        counts[node] = count
        fitting += count
    return fitting


@inlined
def widest(t: State, place: int, counts: Array) -> None:
    for node in range(t.free.shape[1]):
        counts[node] = t.live[place, CHUNKS]


@inlined
def copy(counts: Array, to: Array) -> None:
    for node in range(counts.shape[0]):
        to[node] = counts[node]


@kernel
def earliest(t: State, place: int, until: int) -> int:
    """The earliest time before `until` from which a job has room for its time limit; -1: none.

    `counts[0]` are then the chunks by node, up to those that the job needs. From each step at which room
    ends, the search goes back to the earliest begin from which there is room up to and including that step.
    """
    chunks, limit, need = t.live[place, CHUNKS], t.live[place, LIMIT], t.live[place, NEED]
    counts, tried = t.counts[0], t.counts[1]
    widest(t, place, counts)
    first, step = 0, 0
    while t.times[first] < until:
        if step == t.s[STEPS] or (step > first and t.times[step] >= t.times[first] + limit):
            return int(t.times[first])
        if t.total[step] >= need and narrow(t, step, place, counts) >= chunks:
            step += 1
            continue
        widest(t, place, counts)
        begin = step + 1
        while begin > first and t.total[begin - 1] >= need:
            copy(counts, tried)
            if narrow(t, begin - 1, place, tried) < chunks:
                break
            copy(tried, counts)
            begin -= 1
        first, step = begin, step + 1
        if first == t.s[STEPS]:
            return -1
    return -1


@inlined
def may_move(t: State, k: int) -> bool:
    """Whether the processors of all nodes would let a waiting job start earlier: necessary, and quick."""
    need, start, limit = t.waiting[k, W_NEED], t.waiting[k, W_START], t.waiting[k, W_LIMIT]
    begin = -1
    for step in range(t.s[STEPS]):
        time = t.times[step]
        own = need if start <= time < start + limit else 0
        if t.total[step] + own < need:
            if begin >= 0 and time - begin >= limit:
                return True
            begin = -1
            if time >= start:
                return False
        elif begin < 0:
            if time >= start:
                return False
            begin = time
    return begin >= 0


@inlined
def settle(t: State, place: int) -> None:
    """The first nodes of `counts[0]` become those that a job holds."""
    left, held = t.live[place, CHUNKS], 0
    for node in range(t.free.shape[1]):
        chunks = min(left, t.counts[0, node])
        if chunks > 0:
            t.nodes[place, held], t.chunks[place, held] = node, chunks
            held += 1
            left -= chunks
    t.held[place] = held


@kernel
def reserve(t: State, k: int, start: int) -> None:
    """A waiting job gets the nodes of `counts[0]` from `start` on."""
    place = t.waiting[k, W_PLACE]
    settle(t, place)
    hold(t, place, start, start + t.waiting[k, W_LIMIT], 1)
    t.waiting[k, W_START] = start
    t.waiting[k, W_RESERVED] = t.s[RESERVATIONS]
    t.s[RESERVATIONS] += 1
    t.s[NEXT_START] = min(t.s[NEXT_START], start)


# --- the policies ------------------------------------------------------------------------------------


@kernel
def compress(t: State) -> None:
    """Move each reservation, in the order of submission, to its earliest time; one pass.

    A hole that a late job leaves in this pass is offered to the jobs before it in the next one only:
    LEFT_OVER remembers it.
    """
    left_over, next_start = 0, NEVER
    for k in range(t.s[WAITING]):
        start, limit = t.waiting[k, W_START], t.waiting[k, W_LIMIT]
        if t.s[NOW] < start < NEVER and may_move(t, k):
            place = t.waiting[k, W_PLACE]
            hold(t, place, start, start + limit, -1)
            earlier = earliest(t, place, start)
            if earlier >= 0:
                left_over = max(left_over, start + limit)
                reserve(t, k, earlier)
                start = earlier
            else:
                hold(t, place, start, start + limit, 1)
        next_start = min(next_start, start)
    t.s[LEFT_OVER], t.s[NEXT_START] = left_over, next_start


@inlined
def fits_now(t: State, k: int) -> bool:
    """Whether a waiting job has room from now on for its limit; `counts[0]` are then the chunks by node."""
    return t.total[0] >= t.waiting[k, W_NEED] and earliest(t, t.waiting[k, W_PLACE], t.s[NOW] + 1) >= 0


@kernel
def easy_pass(t: State) -> None:
    """EASY: start heads while they fit, then what fits without the nodes that the next head will get."""
    for k in range(t.s[WAITING]):
        if t.waiting[k, W_START] != NEVER:
            continue
        if not fits_now(t, k):
            backfill(t, k)
            return
        reserve(t, k, t.s[NOW])


@kernel
def backfill(t: State, head: int) -> None:
    first = head + 1
    while first < t.s[WAITING] and (
        t.waiting[first, W_START] != NEVER or t.total[0] < t.waiting[first, W_NEED]
    ):
        first += 1
    if first == t.s[WAITING]:
        return
    place, limit = t.waiting[head, W_PLACE], t.waiting[head, W_LIMIT]
    shadow = earliest(t, place, NEVER)
    if shadow >= 0:
        settle(t, place)
        hold(t, place, shadow, shadow + limit, 1)
    for k in range(first, t.s[WAITING]):
        if t.waiting[k, W_START] == NEVER and fits_now(t, k):
            reserve(t, k, t.s[NOW])
    if shadow >= 0:
        hold(t, place, shadow, shadow + limit, -1)
        t.held[place] = 0


# --- the events --------------------------------------------------------------------------------------


@inlined
def has_room(t: State) -> bool:
    """Whether one more event can happen, a job that enters included."""
    alive = t.s[WAITING] + t.s[RUNNING] + 1
    return bool(t.s[SPARE_PLACES] > 0 and t.s[STEPS] + 4 * alive + 8 <= t.times.shape[0])


@inlined
def ask(t: State, k: int, place: int) -> None:
    """Row k of the waiting jobs asks for what the trace, or the table of jobs from outside, says."""
    job, n = t.waiting[k, W_JOB], t.trace.shape[0]
    for column in range(t.live.shape[1]):
        t.live[place, column] = t.trace[job, column] if job < n else t.outside[job - n, column]
    t.waiting[k, W_NEED], t.waiting[k, W_LIMIT] = t.live[place, NEED], t.live[place, LIMIT]


@inlined
def enter(t: State, job: int) -> None:
    """A job is submitted now; `has_room` said yes."""
    roll(t)
    k = t.s[WAITING]
    t.s[WAITING] += 1
    t.s[SPARE_PLACES] -= 1
    place = t.spare_places[t.s[SPARE_PLACES]]
    t.waiting[k, W_JOB], t.waiting[k, W_START], t.waiting[k, W_PLACE] = job, NEVER, place
    t.held[place] = 0
    ask(t, k, place)
    if t.s[POLICY] == CONSERVATIVE:
        reserve(t, k, earliest(t, place, NEVER))
    else:
        easy_pass(t)


@kernel
def leave(t: State, place: int, begin: int, end: int) -> None:
    """A job that was planned to hold its nodes in [begin, end) is gone."""
    roll(t)
    if end > begin:
        hold(t, place, begin, end, -1)
    t.spare_places[t.s[SPARE_PLACES]] = place
    t.s[SPARE_PLACES] += 1
    if t.s[POLICY] == EASY:
        easy_pass(t)
    elif max(end, t.s[LEFT_OVER]) > t.s[NOW]:
        compress(t)


@inlined
def drop(t: State, k: int) -> None:
    """Take row k out of the waiting jobs."""
    t.s[WAITING] -= 1
    for i in range(k, t.s[WAITING]):
        for column in range(WAITING_COLUMNS):
            t.waiting[i, column] = t.waiting[i + 1, column]
    t.s[NEXT_START] = NEVER
    for i in range(t.s[WAITING]):
        t.s[NEXT_START] = min(t.s[NEXT_START], t.waiting[i, W_START])


@kernel
def withdraw(t: State, k: int) -> None:
    """Row k of the waiting jobs leaves the queue now, before it starts."""
    place, start, limit = t.waiting[k, W_PLACE], t.waiting[k, W_START], t.waiting[k, W_LIMIT]
    drop(t, k)
    if start == NEVER:
        leave(t, place, t.s[NOW], t.s[NOW])
    else:
        leave(t, place, start, start + limit)


@kernel
def reshape(t: State, k: int) -> None:
    """Row k of the waiting jobs keeps its place in the queue and asks again; `has_room` was true.

    Its reservation is made again, at the earliest hole next to those of all others, which may then move.
    """
    roll(t)
    place, start, limit = t.waiting[k, W_PLACE], t.waiting[k, W_START], t.waiting[k, W_LIMIT]
    if t.s[POLICY] == CONSERVATIVE:
        hold(t, place, start, start + limit, -1)
    ask(t, k, place)
    if t.s[POLICY] == CONSERVATIVE:
        reserve(t, k, earliest(t, place, NEVER))
        compress(t)
    else:
        easy_pass(t)


@inlined
def put(t: State, end: int, job: int, order: int, place: int) -> None:
    """Enter a job into the sorted list of the running ones."""
    i = t.s[RUNNING]
    t.s[RUNNING] += 1
    while i > 0 and (
        t.running[i - 1, RUN_END] > end
        or (t.running[i - 1, RUN_END] == end and t.running[i - 1, RUN_ORDER] > order)
    ):
        for column in range(RUNNING_COLUMNS):
            t.running[i, column] = t.running[i - 1, column]
        i -= 1
    t.running[i, RUN_END], t.running[i, RUN_JOB] = end, job
    t.running[i, RUN_ORDER], t.running[i, RUN_PLACE] = order, place


@inlined
def remove(t: State, i: int) -> None:
    """Take row i out of the running jobs."""
    t.s[RUNNING] -= 1
    for row in range(i, t.s[RUNNING]):
        for column in range(RUNNING_COLUMNS):
            t.running[row, column] = t.running[row + 1, column]


@inlined
def start_due(t: State) -> None:
    """Start the job whose reservation is the first made of those that begin now."""
    due, now, n = -1, t.s[NOW], t.trace.shape[0]
    for k in range(t.s[WAITING]):
        if t.waiting[k, W_START] == now and (
            due < 0 or t.waiting[k, W_RESERVED] < t.waiting[due, W_RESERVED]
        ):
            due = k
    job, place = t.waiting[due, W_JOB], t.waiting[due, W_PLACE]
    t.live[place, START] = now
    if job < n:
        t.starts[job] = now
    else:
        t.outside[job - n, START] = now
        t.s[TOUCHED] = 1
        t.s[CHANGES] += 1
    put(t, now + t.live[place, RUN], job, t.s[STARTED], place)
    t.s[STARTED] += 1
    drop(t, due)


@inlined
def end_first(t: State) -> None:
    job, place, n = t.running[0, RUN_JOB], t.running[0, RUN_PLACE], t.trace.shape[0]
    remove(t, 0)
    if job >= n:
        t.outside[job - n, END] = t.s[NOW]
        t.s[TOUCHED] = 1
        t.s[CHANGES] += 1
    leave(t, place, t.s[NOW], t.live[place, START] + t.live[place, LIMIT])


@kernel
def advance(t: State, until: int, watch: bool) -> int:
    """Handle all events up to and including `until`; DONE or FULL.

    With `watch` it stops after the second in which a job from outside started or ended.
    """
    while True:
        next_job = t.s[NEXT_JOB]
        submission = t.trace[next_job, SUBMIT] if next_job < t.trace.shape[0] else NEVER
        end = t.running[0, RUN_END] if t.s[RUNNING] else NEVER
        time = min(submission, end, t.s[NEXT_START])
        if time > until or time == NEVER or (watch and t.s[TOUCHED] and time > t.s[NOW]):
            return DONE
        if not has_room(t):
            return FULL
        t.s[NOW] = time
        if submission == time:
            t.s[NEXT_JOB] += 1
            t.starts[next_job] = -1
            enter(t, next_job)
        elif end == time:
            end_first(t)
        else:
            start_due(t)
