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


def merged(function: Function) -> Function:
    """For what is called at one place or two: LLVM merges it into the caller, and numba compiles it once."""
    compiled: Function = njit(**_OPTIONS, forceinline=True)(function)
    return compiled


NEVER = 1 << 60

CONSERVATIVE, EASY = 0, 1
DONE, FULL = 0, 1  # what `advance` returns: it is there, or an array is full and must grow first

# scalars
POLICY, NOW, NEXT_JOB, WAITING, RUNNING, STEPS = 0, 1, 2, 3, 4, 5
RESERVATIONS, STARTED = 6, 7  # counters: they order the events of one second
NEXT_START = 8  # the earliest reservation of a waiting job
LEFT_OVER = 9  # the end of the latest hole that the last compression left to jobs it had passed
TOUCHED, CHANGES = 10, 11  # a job from outside started or ended; how often one did
SPARE_PLACES = 12  # how many places of jobs are not in use
RELEASED = 13  # EASY: a job passed its limit since the last pass
# from here on one number for each width, the binary logarithm of a need (see `compress`)
WIDTHS = 24
HOLE = 14  # the longest stretch around what came free since the waiting jobs were looked at
HOLE_END = HOLE + WIDTHS  # the latest end of such a stretch
LEFT = HOLE_END + WIDTHS  # the same of what came free in this compression, for the next one
LEFT_END = LEFT + WIDTHS
SCALARS = LEFT_END + WIDTHS
# steps
TIME, TOTAL, ROW = 0, 1, 2
# jobs; from EACH on by dimension what one chunk takes
SUBMIT, RUN, LIMIT, NEED, START, END, CHUNKS, EACH = 0, 1, 2, 3, 4, 5, 6, 7
# running and waiting jobs; a place is a row of `live`, `nodes`, `chunks` and `held`
RUN_END, RUN_JOB, RUN_ORDER, RUN_PLACE = 0, 1, 2, 3
W_JOB, W_START, W_RESERVED, W_NEED, W_LIMIT, W_PLACE, W_WIDTH = 0, 1, 2, 3, 4, 5, 6
RUNNING_COLUMNS, WAITING_COLUMNS = 4, 7


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
    steps: Array
    """(3, T): when each begins, the last one lasts for ever; its free processors of all nodes; its row of
    `free`. Behind the last step are the rows not in use."""
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
    spare_places: Array
    counts: Array
    """(2, N): for the kernels' own use."""


@inlined
def alone(t: State) -> bool:
    """Whether there is one node of one dimension: `total` then says all, and `free` is not kept."""
    return bool(t.free.shape[1] == 1 and t.free.shape[2] == 1)


# --- the steps ---------------------------------------------------------------------------------------


@inlined
def step_at(s: Array, steps: Array, time: int) -> int:
    """The step in which a time from the first one on lies."""
    low, high = 0, s[STEPS]
    while high - low > 1:
        middle = (low + high) // 2
        if steps[TIME, middle] <= time:
            low = middle
        else:
            high = middle
    return low


@inlined
def split(s: Array, steps: Array, free: Array, low: int, time: int) -> int:
    """The step that begins at `time`, made if it is missing; it is not before step `low`."""
    step = low
    while step + 1 < s[STEPS] and steps[TIME, step + 1] <= time:
        step += 1
    if steps[TIME, step] == time:
        return step
    fresh = steps[ROW, s[STEPS]]
    for later in range(s[STEPS], step + 1, -1):
        for column in range(3):
            steps[column, later] = steps[column, later - 1]
    s[STEPS] += 1
    for node in range(free.shape[1]):
        for dimension in range(free.shape[2]):
            free[fresh, node, dimension] = free[steps[ROW, step], node, dimension]
    step += 1
    steps[TIME, step], steps[TOTAL, step], steps[ROW, step] = time, steps[TOTAL, step - 1], fresh
    return step


@kernel
def add(s: Array, steps: Array, free: Array, low: int, begin: int, end: int, by: int) -> int:
    """Add to the free processors of all nodes in [begin, end), which begins not before step `low`.

    Returns:
        The first step there.
    """
    first = split(s, steps, free, low, begin)
    for step in range(first, split(s, steps, free, first, end)):
        steps[TOTAL, step] += by
    return first


@kernel
def roll(s: Array, steps: Array, free: Array) -> None:
    """Let the steps begin now, and join adjacent ones that are alike."""
    count, kept = s[STEPS], 0
    for step in range(1, count):
        joined = steps[TIME, step] > s[NOW]
        s[RELEASED] |= not joined
        if joined and (
            steps[TOTAL, kept] != steps[TOTAL, step] or not alike(free, steps[ROW, kept], steps[ROW, step])
        ):
            kept += 1
            joined = False
        if kept < step and not joined:
            spare = steps[ROW, kept]
            for column in range(3):
                steps[column, kept] = steps[column, step]
            steps[ROW, step] = spare
    s[STEPS] = kept + 1
    steps[TIME, 0] = s[NOW]


@inlined
def alike(free: Array, one: int, other: int) -> bool:
    for node in range(free.shape[1]):
        for dimension in range(free.shape[2]):
            if free[one, node, dimension] != free[other, node, dimension]:
                return False
    return True


@inlined
def hold(t: State, place: int, begin: int, end: int, sign: int) -> None:
    """Take (1) or give back (-1) what a job holds of its nodes in [begin, end)."""
    step = add(t.s, t.steps, t.free, 0, begin, end, -sign * t.live[place, NEED])
    if alone(t):
        return
    while t.steps[TIME, step] < end:
        row = t.steps[ROW, step]
        for i in range(t.held[place]):
            node, chunks = t.nodes[place, i], sign * t.chunks[place, i]
            for dimension in range(t.free.shape[2]):
                t.free[row, node, dimension] -= chunks * t.live[place, EACH + dimension]
        step += 1


# --- where a job fits --------------------------------------------------------------------------------


@inlined
def narrow(t: State, step: int, place: int, counts: Array) -> int:
    """Lower the chunks by node to those for which this step has room; returns their sum."""
    fitting, row, free, live = 0, t.steps[ROW, step], t.free, t.live
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
    while t.steps[TIME, first] < until:
        if step == t.s[STEPS] or (step > first and t.steps[TIME, step] >= t.steps[TIME, first] + limit):
            return int(t.steps[TIME, first])
        if t.steps[TOTAL, step] >= need and (alone(t) or narrow(t, step, place, counts) >= chunks):
            step += 1
            continue
        widest(t, place, counts)
        begin = step + 1
        while begin > first and t.steps[TOTAL, begin - 1] >= need:
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
def width_of(need: int) -> int:
    """The whole part of the binary logarithm of a number of processors, at most WIDTHS - 1."""
    width = 0
    while need > 1 and width < WIDTHS - 1:
        need >>= 1
        width += 1
    return width


@kernel
def came_free(s: Array, steps: Array, first: int, end: int) -> None:
    """Note for each width the stretch around what came free from step `first` on until `end`.

    The last step, behind all reservations, is no part of it.
    """
    last = s[STEPS] - 1
    left, right, most = first, first, steps[TOTAL, first]
    while right + 1 < last and steps[TIME, right + 1] < end:
        right += 1
        most = max(most, steps[TOTAL, right])
    for width in range(width_of(most), -1, -1):
        level = 1 << width
        while left > 0 and steps[TOTAL, left] >= level and steps[TOTAL, left - 1] >= level:
            left -= 1
        while right + 1 < last and steps[TOTAL, right + 1] >= level:
            right += 1
        until = steps[TIME, right + 1]
        s[LEFT + width] = max(s[LEFT + width], until - steps[TIME, left])
        s[LEFT_END + width] = max(s[LEFT_END + width], until)


@inlined
def may_move(t: State, k: int) -> int:
    """The step at which a waiting job could start earlier by the processors of all nodes; -1: none.

    That is necessary, and for one node enough. See `compress` for where it looks at all.
    """
    need, start, limit = t.waiting[k, W_NEED], t.waiting[k, W_START], t.waiting[k, W_LIMIT]
    width, steps = t.waiting[k, W_WIDTH], t.steps
    if max(t.s[HOLE + width], t.s[LEFT + width]) >= limit:
        step = 0
        while steps[TIME, step] + limit <= start:
            begin = step
            while steps[TOTAL, step] >= need:
                step += 1
                if steps[TIME, step] >= steps[TIME, begin] + limit:
                    return begin
            step += 1
    if alone(t) and max(t.s[HOLE_END + width], t.s[LEFT_END + width]) < start:
        return -1
    before = step_at(t.s, steps, start - 1)
    begin = before + 1
    while begin > 0 and steps[TOTAL, begin - 1] >= need:
        begin -= 1
    return begin if begin <= before else -1


@inlined
def settle(t: State, place: int) -> None:
    """The first nodes of `counts[0]` become those that a job holds."""
    left, held = t.live[place, CHUNKS], 0
    for node in range(t.free.shape[1]):
        chunks = left if alone(t) else min(left, t.counts[0, node])
        if chunks > 0:
            t.nodes[place, held], t.chunks[place, held] = node, chunks
            held += 1
            left -= chunks
    t.held[place] = held


@inlined
def reserved(t: State, k: int, start: int) -> None:
    t.waiting[k, W_START] = start
    t.waiting[k, W_RESERVED] = t.s[RESERVATIONS]
    t.s[RESERVATIONS] += 1


@inlined
def reserve(t: State, k: int, start: int) -> None:
    """A waiting job gets the nodes of `counts[0]` from `start` on."""
    place = t.waiting[k, W_PLACE]
    settle(t, place)
    hold(t, place, start, start + t.waiting[k, W_LIMIT], 1)
    reserved(t, k, start)
    t.s[NEXT_START] = min(t.s[NEXT_START], start)


# --- the policies ------------------------------------------------------------------------------------


@inlined
def move(t: State, k: int, step: int) -> bool:
    """Move a reservation to its earliest time, which is not before this step; whether there was one."""
    place, start, limit = t.waiting[k, W_PLACE], t.waiting[k, W_START], t.waiting[k, W_LIMIT]
    end = start + limit
    if alone(t):
        earlier = t.steps[TIME, step]
        between = earlier + limit
        add(t.s, t.steps, t.free, step, earlier, min(start, between), -t.waiting[k, W_NEED])
        first = add(t.s, t.steps, t.free, step, max(start, between), end, t.waiting[k, W_NEED])
        reserved(t, k, earlier)
    else:
        hold(t, place, start, end, -1)
        earlier = earliest(t, place, start)
        if earlier < 0:
            hold(t, place, start, end, 1)
            return False
        reserve(t, k, earlier)
        first = step_at(t.s, t.steps, start)
    came_free(t.s, t.steps, first, end)
    return True


@merged
def compress(t: State, begin: int, end: int) -> None:
    """Move each reservation, in the order of submission, to its earliest time; one pass.

    Processors came free in [begin, end). A hole that a late job leaves in this pass is offered to the jobs
    before it in the next one only: LEFT_OVER remembers it.

    When a job was looked at last it could not move. If it can now, something came free since then in its
    new time, which either overlaps its reservation, so that its need is free just before that, or lies whole
    in a stretch where its need is free and something came free. How long these stretches are, and until when
    they last, is kept for each width, that is for all needs from 2 ** width on below the next power.
    """
    if end > begin:
        came_free(t.s, t.steps, step_at(t.s, t.steps, begin), end)
    for width in range(2 * WIDTHS):
        t.s[HOLE + width], t.s[LEFT + width] = t.s[LEFT + width], 0
    left_over, next_start = 0, NEVER
    for k in range(t.s[WAITING]):
        start = t.waiting[k, W_START]
        if t.s[NOW] < start < NEVER:
            step = may_move(t, k)
            if step >= 0 and move(t, k, step):
                left_over = max(left_over, start + t.waiting[k, W_LIMIT])
                start = t.waiting[k, W_START]
        next_start = min(next_start, start)
    t.s[LEFT_OVER], t.s[NEXT_START] = left_over, next_start


@inlined
def fits_now(t: State, k: int) -> bool:
    """Whether a waiting job has room from now on for its limit; `counts[0]` are then the chunks by node."""
    return t.steps[TOTAL, 0] >= t.waiting[k, W_NEED] and (
        alone(t) or earliest(t, t.waiting[k, W_PLACE], t.s[NOW] + 1) >= 0
    )


@kernel
def easy_pass(t: State) -> None:
    """EASY: start heads while they fit, then what fits without the nodes that the next head will get."""
    t.s[RELEASED] = 0
    for k in range(t.s[WAITING]):
        if t.waiting[k, W_START] != NEVER:
            continue
        if not fits_now(t, k):
            backfill(t, k, k + 1)
            return
        reserve(t, k, t.s[NOW])


@kernel
def backfill(t: State, head: int, first: int) -> None:
    while first < t.s[WAITING] and (
        t.waiting[first, W_START] != NEVER or t.steps[TOTAL, 0] < t.waiting[first, W_NEED]
    ):
        first += 1
    if first == t.s[WAITING]:
        return
    place, limit = t.waiting[head, W_PLACE], t.waiting[head, W_LIMIT]
    shadow = earliest(t, place, NEVER)
    beside = NEVER
    if shadow >= 0:
        if not alone(t):
            settle(t, place)
            hold(t, place, shadow, shadow + limit, 1)
        beside = t.steps[TOTAL, step_at(t.s, t.steps, shadow)]
        if alone(t):
            beside -= t.waiting[head, W_NEED]
    latest = shadow - t.s[NOW]
    for k in range(first, t.s[WAITING]):
        need, late = t.waiting[k, W_NEED], t.waiting[k, W_LIMIT] > latest
        if t.waiting[k, W_START] == NEVER and (not late or need <= beside) and fits_now(t, k):
            reserve(t, k, t.s[NOW])
            beside -= need if late else 0
    if shadow >= 0 and not alone(t):
        hold(t, place, shadow, shadow + limit, -1)
        t.held[place] = 0


# --- the events --------------------------------------------------------------------------------------


@inlined
def has_room(t: State) -> bool:
    """Whether one more event can happen, a job that enters included."""
    alive = t.s[WAITING] + t.s[RUNNING] + 1
    return bool(t.s[SPARE_PLACES] > 0 and t.s[STEPS] + 4 * alive + 8 <= t.steps.shape[1])


@inlined
def ask(t: State, k: int, place: int) -> None:
    """Row k of the waiting jobs asks for what the trace, or the table of jobs from outside, says."""
    job, n = t.waiting[k, W_JOB], t.trace.shape[0]
    for column in range(t.live.shape[1]):
        t.live[place, column] = t.trace[job, column] if job < n else t.outside[job - n, column]
    t.waiting[k, W_NEED], t.waiting[k, W_LIMIT] = t.live[place, NEED], t.live[place, LIMIT]
    t.waiting[k, W_WIDTH] = width_of(t.live[place, NEED])


@inlined
def enter(t: State, job: int) -> None:
    """A job is submitted now; `has_room` said yes."""
    roll(t.s, t.steps, t.free)
    k = t.s[WAITING]
    t.s[WAITING] += 1
    t.s[SPARE_PLACES] -= 1
    place = t.spare_places[t.s[SPARE_PLACES]]
    t.waiting[k, W_JOB], t.waiting[k, W_START], t.waiting[k, W_PLACE] = job, NEVER, place
    t.held[place] = 0
    ask(t, k, place)
    if t.s[POLICY] == CONSERVATIVE:
        reserve(t, k, earliest(t, place, NEVER))
    elif t.s[RELEASED] or k == 0 or t.waiting[0, W_START] != NEVER:
        easy_pass(t)
    elif t.steps[TOTAL, 0] >= t.waiting[k, W_NEED]:
        backfill(t, 0, k)


@merged
def leave(t: State, place: int, begin: int, end: int) -> None:
    """A job that was planned to hold its nodes in [begin, end) is gone."""
    roll(t.s, t.steps, t.free)
    if end > begin:
        hold(t, place, begin, end, -1)
    t.spare_places[t.s[SPARE_PLACES]] = place
    t.s[SPARE_PLACES] += 1
    if t.s[POLICY] == EASY:
        easy_pass(t)
    elif max(end, t.s[LEFT_OVER]) > t.s[NOW]:
        compress(t, begin, end)


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
    roll(t.s, t.steps, t.free)
    place, start, limit = t.waiting[k, W_PLACE], t.waiting[k, W_START], t.waiting[k, W_LIMIT]
    if t.s[POLICY] == CONSERVATIVE:
        hold(t, place, start, start + limit, -1)
    ask(t, k, place)
    if t.s[POLICY] == CONSERVATIVE:
        reserve(t, k, earliest(t, place, NEVER))
        compress(t, start, start + limit)
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
