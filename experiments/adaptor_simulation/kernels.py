"""The inner loops of the simulated cluster, compiled by numba. `cluster.py` is their typed face.

One space-shared cluster under conservative backfilling or EASY (Mu'alem and Feitelson 2001), with the
semantics of the simulator pyss: within a second all submissions come first (in the trace's order), then the
ends of jobs (in the order in which they started), then the starts (in the order in which their reservations
were made); each event is handled on its own.

The queue is in the order of submission, or of priorities by fair share (see `queue_rules.FairShare`): the
first event of each period ranks the waiting jobs. If their order changes, all reservations are made again.

A job is `CHUNKS` equal parts, each on one node, and several may be on the same; it gets the first nodes with
room for its whole time limit. Under conservative backfilling a waiting job keeps the nodes of its reservation
until it moves to an earlier time. A cluster that counts processors is one node of all of them.

All kernels are in this one file, because numba's cache of a kernel does not notice a change of a kernel that
it calls in another file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[np.int64]
Indices = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

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


at = np.uint64
"""An index that is not negative: to look for negative ones, as numba does, would take a fifth of the time."""

NEVER = 1 << 60

CONSERVATIVE, EASY = 0, 1
DONE, FULL = 0, 1  # what `advance` returns: it is there, or an array is full and must grow first
# events; the driver asks for those behind RANKING, and for submissions of its own
NOTHING, SUBMISSION, START_OF_JOB, END_OF_JOB, RANKING, WITHDRAWAL, RESHAPING, CUT = 0, 1, 2, 3, 4, 5, 6, 7

# scalars
POLICY, NOW, NEXT_JOB, WAITING, RUNNING, STEPS = 0, 1, 2, 3, 4, 5
RESERVATIONS, STARTED = 6, 7  # counters: they order the events of one second
NEXT_START = 8  # the earliest reservation of a waiting job
LEFT_OVER = 9  # the end of the latest hole that the last compression left to jobs it had passed
TOUCHED, CHANGES = 10, 11  # a job from outside started or ended; how often one did
RELEASED = 12  # EASY: a job passed its limit since the last pass
ASKED, WHICH = 13, 14  # the event that the driver asks for now; of which new job, or row of a list
# the rules of the queue, as of `queue_rules`; HALF_LIFE 0: no fair share; PER_USER and DEPTH NEVER: no bound
HALF_LIFE, PERIOD, WEIGHT, AGE_WEIGHT, LONGEST_AGE, PER_USER, DEPTH = 15, 16, 17, 18, 19, 20, 21
COUNTED = 22  # until when `usage` is counted
PLACED = 23  # a job entered before others since all reservations were made
CONSIDERED = 24  # waiting jobs that backfilling has looked at in this pass
# from here on one number for each width, the binary logarithm of a need (see `compress`)
WIDTHS = 24
HOLE = 25  # the longest stretch around what came free since the waiting jobs were looked at
HOLE_END = HOLE + WIDTHS  # the latest end of such a stretch
LEFT = HOLE_END + WIDTHS  # the same of what came free in this compression, for the next one
LEFT_END = LEFT + WIDTHS
SCALARS = LEFT_END + WIDTHS
# steps
TIME, TOTAL, ROW = 0, 1, 2
# jobs; from EACH on by dimension what one chunk takes
SUBMIT, RUN, LIMIT, NEED, START, END, CHUNKS, EACH = 0, 1, 2, 3, 4, 5, 6, 7
DIMENSIONS = 2  # at most: processors, and memory where it is counted
USER = EACH + DIMENSIONS
JOB_COLUMNS = USER + 1
# jobs in the system: the same, where START is the planned one while the job waits, NEVER if undecided
JOB, ORDER, WIDTH, PLACE, PRIORITY = range(JOB_COLUMNS, JOB_COLUMNS + 5)
LIVE_COLUMNS = JOB_COLUMNS + 5
# lists of places
WAITS, RUNS, SPARE = 0, 1, 2


class State(NamedTuple):
    """N nodes of R dimensions, U users; room for A jobs in the system and T >= 2 A + 8 steps."""

    s: Array
    trace: Array
    """The jobs of the trace, sorted by submission, shared by all forks; START and END are not used."""
    starts: Array
    """By job of the trace that has entered: when it started, -1 while it waits."""
    outside: Array
    """The jobs from outside, numbered behind those of the trace."""
    live: Array
    """(A, LIVE_COLUMNS): the jobs in the system. Such a row, and that of `chunks`, is a job's place."""
    places: Indices
    """(3, A): of the waiting jobs in the order of the queue; of the running jobs, the next to end last, and
    of those that end together the first that started; and those not in use."""
    chunks: Array
    """(A, N): how many a job holds on each node; all 0: it has none yet."""
    steps: Array
    """(3, T), backwards in time: the first lasts for ever, the last begins now, none is like the one before.
    When each begins; its free processors of all nodes; its row of `free`. Then come the rows not in use."""
    free: Array
    """(T, N, R)"""
    counts: Array
    """(2, N): for the kernels' own use."""
    usage: Floats
    """(U,): processor-seconds that each user has used, which halve in each half-life."""
    marks: Array
    """(U,): for the kernels' own use."""


@inlined
def alone(t: State) -> bool:
    """Whether there is one node of one dimension: `total` then says all, and `free` is not kept."""
    return bool(t.free.shape[1] == 1 and t.free.shape[2] == 1)


# --- the steps ---------------------------------------------------------------------------------------


@inlined
def step_at(s: Array, steps: Array, time: int) -> int:
    """The step in which a time from now on lies."""
    step, count = 0, s[STEPS]
    while count > 1:
        half = count >> 1
        step += half if steps[TIME, at(step + half - 1)] > time else 0
        count -= half
    return step


@inlined
def split(s: Array, steps: Array, free: Array, early: int, time: int) -> int:
    """The step that begins at `time`, made if it is missing; step `early` begins no later."""
    step = early
    while step > 0 and steps[TIME, at(step - 1)] <= time:
        step -= 1
    if steps[TIME, at(step)] == time:
        return step
    fresh = steps[ROW, at(s[STEPS])]
    for earlier in range(s[STEPS], step, -1):
        for column in range(3):
            steps[column, at(earlier)] = steps[column, at(earlier - 1)]
    s[STEPS] += 1
    for node in range(free.shape[1]):
        for dimension in range(free.shape[2]):
            free[at(fresh), node, dimension] = free[at(steps[ROW, at(step)]), node, dimension]
    steps[TIME, at(step)], steps[ROW, at(step)] = time, fresh
    return step


@inlined
def join(s: Array, steps: Array, free: Array, step: int) -> int:
    """Join a step with the one before if they are alike; how many fewer there are."""
    if step + 1 == s[STEPS] or steps[TOTAL, at(step)] != steps[TOTAL, at(step + 1)]:
        return 0
    row = steps[ROW, at(step)]
    for node in range(free.shape[1]):
        for dimension in range(free.shape[2]):
            if free[at(row), node, dimension] != free[at(steps[ROW, at(step + 1)]), node, dimension]:
                return 0
    s[STEPS] -= 1
    for earlier in range(step, s[STEPS]):
        for column in range(3):
            steps[column, at(earlier)] = steps[column, at(earlier + 1)]
    steps[ROW, at(s[STEPS])] = row
    return 1


@inlined
def roll(s: Array, steps: Array) -> None:
    """Let the steps begin now."""
    while s[STEPS] > 1 and steps[TIME, at(s[STEPS] - 2)] <= s[NOW]:
        s[STEPS] -= 1
        s[RELEASED] = 1
    steps[TIME, at(s[STEPS] - 1)] = s[NOW]


@kernel
def hold(t: State, place: np.uint64, begin: int, end: int, sign: int) -> int:
    """Take (1) or give back (-1) what a job holds of its nodes in [begin, end).

    Returns:
        The step in which `begin` lies.
    """
    s, steps, free, need = t.s, t.steps, t.free, sign * t.live[place, NEED]
    first = step_at(s, steps, begin)
    count = s[STEPS]
    last = split(s, steps, free, first, end)
    first = split(s, steps, free, first + s[STEPS] - count, begin)
    for step in range(last + 1, first + 1):
        steps[TOTAL, at(step)] -= need
        for node in range(0 if alone(t) else free.shape[1]):
            chunks = sign * t.chunks[place, node]
            for dimension in range(free.shape[2]):
                free[at(steps[ROW, at(step)]), node, dimension] -= chunks * t.live[place, EACH + dimension]
    join(s, steps, free, first)
    return first - join(s, steps, free, last)


# --- where a job fits --------------------------------------------------------------------------------


@inlined
def narrow(t: State, step: int, place: np.uint64, counts: Array) -> int:
    """Lower the chunks by node to those for which this step has room; returns their sum."""
    fitting, row, free, live = 0, t.steps[ROW, at(step)], t.free, t.live
    for node in range(free.shape[1]):
        count = counts[node]
        for dimension in range(free.shape[2]):
            each, have = live[place, EACH + dimension], free[at(row), node, dimension]
            if have < count * each:
                count = have // each if each > 1 else have
        counts[node] = count
        fitting += count
    return fitting


@inlined
def widest(t: State, place: np.uint64, counts: Array) -> None:
    for node in range(t.free.shape[1]):
        counts[node] = t.live[place, CHUNKS]


@inlined
def copy(counts: Array, to: Array) -> None:
    for node in range(counts.shape[0]):
        to[node] = counts[node]


@kernel
def earliest(t: State, place: np.uint64, until: int) -> int:
    """The earliest time before `until` from which a job has room for its time limit; -1: none.

    `counts[0]` are then the chunks by node, up to those that the job needs. From each step at which room
    ends, the search goes back to the earliest begin from which there is room up to and including that step.
    """
    chunks, limit, need = t.live[place, CHUNKS], t.live[place, LIMIT], t.live[place, NEED]
    counts, tried, steps = t.counts[0], t.counts[1], t.steps
    widest(t, place, counts)
    first = step = t.s[STEPS] - 1
    while first >= 0 and steps[TIME, at(first)] < until:
        if step < 0 or (step < first and steps[TIME, at(step)] >= steps[TIME, at(first)] + limit):
            return int(steps[TIME, at(first)])
        if steps[TOTAL, at(step)] >= need and (alone(t) or narrow(t, step, place, counts) >= chunks):
            step -= 1
            continue
        widest(t, place, counts)
        begin = step - 1
        while begin < first and steps[TOTAL, at(begin + 1)] >= need:
            copy(counts, tried)
            if narrow(t, begin + 1, place, tried) < chunks:
                break
            copy(tried, counts)
            begin += 1
        first, step = begin, step - 1
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

    The step that lasts for ever, behind all reservations, is no part of it.
    """
    if first == 0:
        return
    left, right, most = first, first, steps[TOTAL, at(first)]
    while right > 1 and steps[TIME, at(right - 1)] < end:
        right -= 1
        most = max(most, steps[TOTAL, at(right)])
    for width in range(width_of(most), -1, -1):
        level = 1 << width
        while left + 1 < s[STEPS] and steps[TOTAL, at(left)] >= level and steps[TOTAL, at(left + 1)] >= level:
            left += 1
        while right > 1 and steps[TOTAL, at(right - 1)] >= level:
            right -= 1
        until = steps[TIME, at(right - 1)]
        s[at(LEFT + width)] = max(s[at(LEFT + width)], until - steps[TIME, at(left)])
        s[at(LEFT_END + width)] = max(s[at(LEFT_END + width)], until)


@inlined
def may_move(t: State, place: np.uint64) -> int:
    """The step at which a waiting job could start earlier by the processors of all nodes; -1: none.

    That is necessary, and for one node enough. See `compress` for where it looks at all.
    """
    need, start, limit = t.live[place, NEED], t.live[place, START], t.live[place, LIMIT]
    s, steps, width = t.s, t.steps, t.live[place, WIDTH]
    until = max(s[at(HOLE_END + width)], s[at(LEFT_END + width)])
    latest = min(start, until) - limit
    if max(s[at(HOLE + width)], s[at(LEFT + width)]) >= limit and latest >= s[NOW]:
        step = s[STEPS] - 1
        while steps[TIME, at(step)] <= latest:
            begin = step
            while steps[TOTAL, at(step)] >= need:
                step -= 1
                if steps[TIME, at(step)] >= steps[TIME, at(begin)] + limit:
                    return int(begin)
            step -= 1
    if alone(t) and until < start:
        return -1
    before = step_at(t.s, steps, start - 1)
    begin = before
    while begin < t.s[STEPS] and steps[TOTAL, at(begin)] >= need:
        begin += 1
    return begin - 1 if begin > before else -1


@inlined
def settle(t: State, place: np.uint64) -> None:
    """The first nodes of `counts[0]` become those that a job holds."""
    left = t.live[place, CHUNKS]
    for node in range(t.free.shape[1]):
        t.chunks[place, node] = left if alone(t) else min(left, t.counts[0, node])
        left -= t.chunks[place, node]


@inlined
def unsettle(t: State, place: np.uint64) -> None:
    for node in range(t.free.shape[1]):
        t.chunks[place, node] = 0


@inlined
def reserved(t: State, place: np.uint64, start: int) -> None:
    t.live[place, START], t.live[place, ORDER] = start, t.s[RESERVATIONS]
    t.s[RESERVATIONS] += 1


@inlined
def reserve(t: State, place: np.uint64, start: int) -> None:
    """A waiting job gets the nodes of `counts[0]` from `start` on."""
    settle(t, place)
    hold(t, place, start, start + t.live[place, LIMIT], 1)
    reserved(t, place, start)
    t.s[NEXT_START] = min(t.s[NEXT_START], start)


# --- the order of the queue --------------------------------------------------------------------------


@inlined
def count_usage(t: State) -> None:
    """Bring the usage of each user up to now: it decays, and what has run since then adds to it."""
    s = t.s
    if s[HALF_LIFE] == 0 or s[COUNTED] == s[NOW]:
        return
    rate = math.log(2.0) / s[HALF_LIFE]
    lost = -math.expm1(rate * (s[COUNTED] - s[NOW]))
    for user in range(t.usage.shape[0]):
        t.usage[user] *= 1 - lost
    for k in range(s[RUNNING]):
        place = t.places[RUNS, at(k)]
        t.usage[at(t.live[place, USER])] += t.live[place, NEED] * lost / rate
    s[COUNTED] = s[NOW]


@inlined
def standing(t: State, user: int) -> int:
    """Number of users who have used at least as much as this one, in whole processor-seconds."""
    used, count = int(t.usage[at(user)] + 0.5), 0
    for other in range(t.usage.shape[0]):
        count += int(t.usage[at(other)] + 0.5) >= used
    return count


@inlined
def priority(t: State, place: np.uint64, standing: int) -> int:
    s = t.s
    age = min(1.0, (s[NOW] - t.live[place, SUBMIT]) / s[LONGEST_AGE])
    return int(s[WEIGHT] * (standing / t.usage.shape[0]) + s[AGE_WEIGHT] * age)


@inlined
def rise(t: State, k: int) -> int:
    """Row k of the waiting jobs passes those before it that have a lower priority; its new row."""
    place = t.places[WAITS, at(k)]
    while k > 0 and t.live[t.places[WAITS, at(k - 1)], PRIORITY] < t.live[place, PRIORITY]:
        t.places[WAITS, at(k)] = t.places[WAITS, at(k - 1)]
        k -= 1
    t.places[WAITS, at(k)] = place
    return k


@merged
def rank(t: State) -> bool:
    """Bring the waiting jobs into the order of their priorities now; whether it is another one."""
    changed = False
    for user in range(t.marks.shape[0]):
        t.marks[user] = -1
    for k in range(t.s[WAITING]):
        place = t.places[WAITS, at(k)]
        user = t.live[place, USER]
        if t.marks[at(user)] < 0:
            t.marks[at(user)] = standing(t, user)
        t.live[place, PRIORITY] = priority(t, place, t.marks[at(user)])
        changed |= rise(t, k) < k
    return changed


@inlined
def next_ranking(s: Array) -> int:
    if s[HALF_LIFE] == 0 or s[WAITING] == 0:
        return NEVER
    return int((s[NOW] // s[PERIOD] + 1) * s[PERIOD])


# --- what backfilling looks at -----------------------------------------------------------------------


@inlined
def bounded(s: Array) -> bool:
    return bool(s[PER_USER] < NEVER or s[DEPTH] < NEVER)


@inlined
def begin_pass(t: State) -> None:
    """Backfilling has looked at no waiting job yet."""
    if bounded(t.s):
        t.s[CONSIDERED] = 0
        for user in range(t.marks.shape[0]):
            t.marks[user] = 0


@inlined
def consider(t: State, place: np.uint64) -> bool:
    """Whether backfilling looks at the next job of the queue; if so, it counts."""
    if not bounded(t.s):
        return True
    user = t.live[place, USER]
    if t.s[CONSIDERED] >= t.s[DEPTH] or t.marks[at(user)] >= t.s[PER_USER]:
        return False
    t.s[CONSIDERED] += 1
    t.marks[at(user)] += 1
    return True


@inlined
def uncount(t: State, place: np.uint64) -> None:
    """A job that backfilling has looked at does not wait any more."""
    t.s[CONSIDERED] -= 1
    t.marks[at(t.live[place, USER])] -= 1


@merged
def plan(t: State) -> None:
    """Make the reservations that are missing, in the order of the queue."""
    begin_pass(t)
    for k in range(t.s[WAITING]):
        place = t.places[WAITS, at(k)]
        if consider(t, place) and t.live[place, START] == NEVER:
            reserve(t, place, earliest(t, place, NEVER))


@inlined
def plan_anew(t: State) -> None:
    """Make all reservations again, in the order of the queue; then no job could move (see `compress`)."""
    for k in range(t.s[WAITING]):
        place = t.places[WAITS, at(k)]
        start = t.live[place, START]
        if start < NEVER:
            hold(t, place, start, start + t.live[place, LIMIT], -1)
            unsettle(t, place)
            t.live[place, START] = NEVER
    for scalar in range(HOLE, SCALARS):
        t.s[at(scalar)] = 0
    t.s[LEFT_OVER], t.s[NEXT_START], t.s[PLACED] = 0, NEVER, 0
    plan(t)


# --- the policies ------------------------------------------------------------------------------------


@inlined
def move(t: State, place: np.uint64, step: int) -> bool:
    """Move a reservation to its earliest time, which is not before this step; whether there was one."""
    start, limit = t.live[place, START], t.live[place, LIMIT]
    end = start + limit
    if alone(t):
        earlier = t.steps[TIME, at(step)]
        between = earlier + limit
        hold(t, place, earlier, min(start, between), 1)
        first = hold(t, place, max(start, between), end, -1)
        reserved(t, place, earlier)
    else:
        hold(t, place, start, end, -1)
        earlier = earliest(t, place, start)
        if earlier < 0:
            hold(t, place, start, end, 1)
            return False
        reserve(t, place, earlier)
        first = step_at(t.s, t.steps, start)
    came_free(t.s, t.steps, first, end)
    return True


@merged
def compress(t: State, begin: int, end: int) -> None:
    """Move each reservation, in the order of the queue, to its earliest time; one pass.

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
        t.s[at(HOLE + width)], t.s[at(LEFT + width)] = t.s[at(LEFT + width)], 0
    left_over, next_start = 0, NEVER
    for k in range(t.s[WAITING]):
        place = t.places[WAITS, at(k)]
        start = t.live[place, START]
        if t.s[NOW] < start < NEVER:
            step = may_move(t, place)
            if step >= 0 and move(t, place, step):
                left_over = max(left_over, start + t.live[place, LIMIT])
                start = t.live[place, START]
        next_start = min(next_start, start)
    t.s[LEFT_OVER], t.s[NEXT_START] = left_over, next_start


@inlined
def fits_now(t: State, place: np.uint64) -> bool:
    """Whether a waiting job has room from now on for its limit; `counts[0]` are then the chunks by node."""
    return t.steps[TOTAL, at(t.s[STEPS] - 1)] >= t.live[place, NEED] and (
        alone(t) or earliest(t, place, t.s[NOW] + 1) >= 0
    )


@inlined
def start_now(t: State, k: int) -> None:
    """EASY: row k of the waiting jobs starts on the nodes of `counts[0]`."""
    place, now = t.places[WAITS, at(k)], t.s[NOW]
    settle(t, place)
    hold(t, place, now, now + t.live[place, LIMIT], 1)
    run(t, k)


@merged
def easy_pass(t: State, k: int) -> None:
    """EASY: start heads while they fit, then what fits without the nodes that the next head will get.

    Row k of the waiting jobs is the first that may fit.
    """
    t.s[RELEASED] = 0
    begin_pass(t)
    head, beside, begin, end, planned = t.places[WAITS, 0], NEVER, NEVER, NEVER, False
    while k < t.s[WAITING]:
        place = t.places[WAITS, at(k)]
        if not consider(t, place):
            k += 1
            continue
        need = t.live[place, NEED]
        if k > 0 and not planned and t.steps[TOTAL, at(t.s[STEPS] - 1)] >= need:
            head, planned = t.places[WAITS, 0], True
            begin = earliest(t, head, NEVER)
            end = begin + t.live[head, LIMIT]
            if not alone(t):
                settle(t, head)
                hold(t, head, begin, end, 1)
            beside = t.steps[TOTAL, at(step_at(t.s, t.steps, begin))] - (
                t.live[head, NEED] if alone(t) else 0
            )
        late = t.live[place, LIMIT] > begin - t.s[NOW]
        if (not late or need <= beside) and fits_now(t, place):
            start_now(t, k)
            uncount(t, place)
            beside -= need if late else 0
        else:
            k += 1
    if planned and not alone(t):
        hold(t, head, begin, end, -1)
        unsettle(t, head)


# --- the events --------------------------------------------------------------------------------------


@inlined
def ask(t: State, place: np.uint64) -> None:
    """A waiting job asks for what the trace, or the table of jobs from outside, says."""
    job, n = t.live[place, JOB], t.trace.shape[0]
    for column in range(JOB_COLUMNS):
        t.live[place, column] = t.trace[at(job), column] if job < n else t.outside[at(job - n), column]
    t.live[place, START], t.live[place, WIDTH] = NEVER, width_of(t.live[place, NEED])


@inlined
def enter(t: State, job: int) -> np.uint64:
    """A job becomes one of those that wait, in the order of the queue; returns its place."""
    k = t.s[WAITING]
    place: np.uint64 = t.places[SPARE, at(t.places.shape[1] - k - t.s[RUNNING] - 1)]
    t.s[WAITING] += 1
    t.places[WAITS, at(k)], t.live[place, JOB], t.live[place, PRIORITY] = place, job, 0
    ask(t, place)
    if t.s[HALF_LIFE] > 0:
        t.live[place, PRIORITY] = priority(t, place, standing(t, t.live[place, USER]))
        if rise(t, k) < k:
            t.s[PLACED] = 1
    return place


@inlined
def clear(t: State, place: np.uint64) -> None:
    """The place of a job that is in no list any more is free."""
    unsettle(t, place)
    t.places[SPARE, at(t.places.shape[1] - t.s[WAITING] - t.s[RUNNING] - 1)] = place


@inlined
def remove(t: State, which: int, count: int, i: int) -> np.uint64:
    """Take row i out of the list of the waiting or the running jobs, of which s[count] says the length.

    Returns:
        The job's place.
    """
    place: np.uint64 = t.places[which, at(i)]
    t.s[at(count)] -= 1
    for row in range(i, t.s[at(count)]):
        t.places[which, at(row)] = t.places[which, at(row + 1)]
    return place


@inlined
def put(t: State, place: np.uint64) -> None:
    """Enter a job into the list of the running ones."""
    end, order = t.live[place, END], t.live[place, ORDER]
    i = t.s[RUNNING]
    t.s[RUNNING] += 1
    while i > 0:
        other = t.places[RUNS, at(i - 1)]
        if t.live[other, END] > end or (t.live[other, END] == end and t.live[other, ORDER] > order):
            break
        t.places[RUNS, at(i)] = other
        i -= 1
    t.places[RUNS, at(i)] = place


@inlined
def cut(t: State, i: int) -> None:
    """Row i of the running jobs is to end now."""
    place = remove(t, RUNS, RUNNING, i)
    t.live[place, END] = t.s[NOW]
    put(t, place)


@inlined
def run(t: State, k: int) -> None:
    """Row k of the waiting jobs starts now on the nodes that it holds."""
    place, now, n = remove(t, WAITS, WAITING, k), t.s[NOW], t.trace.shape[0]
    job = t.live[place, JOB]
    if job < n:
        t.starts[at(job)] = now
    else:
        t.outside[at(job - n), START] = now
        t.s[TOUCHED] = 1
        t.s[CHANGES] += 1
    t.live[place, START], t.live[place, END] = now, now + t.live[place, RUN]
    t.live[place, ORDER] = t.s[STARTED]
    t.s[STARTED] += 1
    put(t, place)


@inlined
def start_due(t: State) -> None:
    """Start the job whose reservation is the first made of those that begin now."""
    due, first, next_start = -1, NEVER, NEVER
    for k in range(t.s[WAITING]):
        start, order = t.live[t.places[WAITS, at(k)], START], t.live[t.places[WAITS, at(k)], ORDER]
        if start == t.s[NOW] and order < first:
            next_start = min(next_start, NEVER if due < 0 else start)
            due, first = k, order
        else:
            next_start = min(next_start, start)
    t.s[NEXT_START] = next_start
    run(t, due)


@inlined
def end_first(t: State) -> np.uint64:
    """The running job that comes first ends now; returns its place."""
    t.s[RUNNING] -= 1
    place: np.uint64 = t.places[RUNS, at(t.s[RUNNING])]
    job, n = t.live[place, JOB], t.trace.shape[0]
    if job >= n:
        t.outside[at(job - n), END] = t.s[NOW]
        t.s[TOUCHED] = 1
        t.s[CHANGES] += 1
    return place


@inlined
def answer(t: State, event: int, place: np.uint64, begin: int, end: int) -> None:
    """Conservative backfilling: make the reservation that an event asks for, and use what came free."""
    if event in (SUBMISSION, RESHAPING):
        if bounded(t.s):
            plan(t)
        else:
            reserve(t, place, earliest(t, place, NEVER))
    if event != SUBMISSION and max(end, t.s[LEFT_OVER]) > t.s[NOW]:
        compress(t, begin, end)
    if event == WITHDRAWAL and bounded(t.s):
        plan(t)


@inlined
def happen(t: State, event: int, which: int) -> None:
    """A job enters, leaves, or asks again for something else, and the policy answers.

    What asks again keeps its place in the queue; its reservation is made again, at the earliest hole next to
    those of all others, which may then move.
    """
    s = t.s
    roll(s, t.steps)
    first, begin, end = 0, s[NOW], s[NOW]
    if event == SUBMISSION:
        first = 0 if s[RELEASED] or s[HALF_LIFE] > 0 or bounded(s) else s[WAITING]
        place = enter(t, which)
    elif event == END_OF_JOB:
        place = end_first(t)
    elif event == WITHDRAWAL:
        place = remove(t, WAITS, WAITING, which)
    else:
        place = t.places[WAITS, at(which)]
    if event != SUBMISSION and t.live[place, START] != NEVER:
        begin, end = max(begin, t.live[place, START]), t.live[place, START] + t.live[place, LIMIT]
    if end > begin:
        hold(t, place, begin, end, -1)
    if event == RESHAPING:
        ask(t, place)
    elif event != SUBMISSION:
        clear(t, place)
    if s[POLICY] == EASY:
        easy_pass(t, first)
    else:
        answer(t, event, place, begin, end)


@inlined
def rank_now(t: State) -> None:
    """The queue is ranked, and the policy answers."""
    roll(t.s, t.steps)
    changed = rank(t)
    if t.s[POLICY] == EASY:
        if changed:
            easy_pass(t, 0)
    elif changed or t.s[PLACED]:
        plan_anew(t)


@kernel
def advance(t: State, until: int, watch: bool) -> int:
    """Handle what the driver asks, then all events up to and including `until`; DONE or FULL.

    With `watch` it stops after the second in which a job from outside started or ended.
    """
    s = t.s
    while True:
        event, which = s[ASKED], s[WHICH]
        if event == NOTHING:
            which = s[NEXT_JOB]
            submission = t.trace[at(which), SUBMIT] if which < t.trace.shape[0] else NEVER
            end = t.live[t.places[RUNS, at(s[RUNNING] - 1)], END] if s[RUNNING] else NEVER
            ranking = next_ranking(s)
            time = min(submission, end, s[NEXT_START], ranking)
            if time > until or time == NEVER or (watch and s[TOUCHED] and time > s[NOW]):
                return DONE
            event = SUBMISSION if submission == time else END_OF_JOB if end == time else START_OF_JOB
            event = RANKING if ranking == time else event
        else:
            time = s[NOW]
        if event == SUBMISSION and s[WAITING] + s[RUNNING] == t.places.shape[1]:
            return FULL
        s[NOW] = time
        count_usage(t)
        if event == RANKING:
            rank_now(t)
        elif event == START_OF_JOB:
            start_due(t)
            if bounded(s):
                plan(t)
        elif event == CUT:
            cut(t, which)
        else:
            if event == SUBMISSION and s[ASKED] == NOTHING:
                s[NEXT_JOB] += 1
                t.starts[at(which)] = -1
            happen(t, event, which)
        s[ASKED] = NOTHING
