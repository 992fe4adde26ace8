"""The inner loops of the simulated cluster, compiled by numba. `simulation.py` is their typed face.

One space-shared cluster, counted in processors, under conservative backfilling or EASY (Mu'alem and
Feitelson 2001), with the semantics of the simulator pyss: within a second all submissions come first
(in the trace's order), then the ends of jobs (in the order in which they started), then the starts (in
the order in which their reservations were made); each event is handled on its own.

All kernels are in this one file, because numba's cache of a kernel does not notice a change of a
kernel that it calls in another file.

The state is seven int64 arrays, so that a fork is a few copies of memory:

scalars  the indices below
jobs     (n, 4) the trace, sorted by submission, shared by all forks: SUBMIT, RUN, LIMIT, NEED
starts   (n,) the start of each job of the trace, -1 while it waits
grid     (g, 6) the jobs from outside, numbered from n: the same four, START, END
profile  (2, …) the availability profile: TIME and FREE, columns LO to HI, the last one lasts for ever
running  (…, 3) sorted by end, then by the order of starting: rows RUN_LO to RUN_HI
waiting  (…, 5) in the order of submission: rows 0 to WAITING; under EASY a start of NEVER is undecided
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

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
POLICY, NOW, NEXT_JOB, WAITING, RUN_LO, RUN_HI, LO, HI = 0, 1, 2, 3, 4, 5, 6, 7
RESERVATIONS, STARTED = 8, 9  # counters: they order the events of one second
NEXT_START = 10  # the earliest reservation of a waiting job
LEFT_OVER = 11  # the end of the latest hole that the last compression left to jobs it had passed
RELEASED = 12  # EASY: processors came free by the passing of time since the last pass
TOUCHED = 13  # a job from outside started or ended
PASSES = 14  # counter of compressions
REACHED = 15  # the column at which the last search for an earlier time ended
FOUND = 16  # and the column that it found
SEEN = 17  # from here on SHAPES rows: jobs that could not move in this compression, see `compress`
SHAPES, SEEN_WIDTH = 64, 5
SCALARS = SEEN + SHAPES * SEEN_WIDTH
# a row of SEEN
S_NEED, S_LIMIT, S_START, S_PASS, S_COLUMN = 0, 1, 2, 3, 4
# jobs and grid
SUBMIT, RUN, LIMIT, NEED, START, END = 0, 1, 2, 3, 4, 5
# profile
TIME, FREE = 0, 1
# running
RUN_END, RUN_JOB, RUN_ORDER = 0, 1, 2
# waiting
W_JOB, W_START, W_RESERVED, W_NEED, W_LIMIT = 0, 1, 2, 3, 4


@kernel
def has_room(s: Array, profile: Array, running: Array, waiting: Array) -> bool:
    """Whether one more job can enter; moves the live columns to the front where that makes room."""
    alive = s[WAITING] + s[RUN_HI] - s[RUN_LO] + 1
    if alive > waiting.shape[0] or 2 * alive + 4 > profile.shape[1] or alive > running.shape[0]:
        return False
    if s[LO] + 2 * alive + 4 > profile.shape[1]:
        for row in range(2):
            for i in range(s[LO], s[HI]):
                profile[row, i - s[LO]] = profile[row, i]
        s[HI] -= s[LO]
        s[LO] = 0
    if s[RUN_LO] + alive > running.shape[0]:
        for i in range(s[RUN_LO], s[RUN_HI]):
            for column in range(3):
                running[i - s[RUN_LO], column] = running[i, column]
        s[RUN_HI] -= s[RUN_LO]
        s[RUN_LO] = 0
    return True


@inlined
def roll(s: Array, profile: Array) -> None:
    """Let the profile begin now."""
    low = s[LO]
    while low + 1 < s[HI] and profile[TIME, low + 1] <= s[NOW]:
        low += 1
        s[RELEASED] = 1
    profile[TIME, low] = s[NOW]
    s[LO] = low


@inlined
def _break_at(s: Array, profile: Array, low: int, at: int) -> int:
    """The column that begins at this time, made where there is none; `low` begins no later."""
    high = s[HI]
    i = low
    while i < high and profile[TIME, i] < at:
        i += 1
    if i < high and profile[TIME, i] == at:
        return i
    for k in range(high, i, -1):
        profile[TIME, k] = profile[TIME, k - 1]
        profile[FREE, k] = profile[FREE, k - 1]
    profile[TIME, i] = at
    profile[FREE, i] = profile[FREE, i - 1]
    s[HI] = high + 1
    return i


@inlined
def _join(s: Array, profile: Array, i: int) -> None:
    """Drop column i where it is free to the same number as the one before."""
    if i > s[LO] and profile[FREE, i] == profile[FREE, i - 1]:
        s[HI] -= 1
        for k in range(i, s[HI]):
            profile[TIME, k] = profile[TIME, k + 1]
            profile[FREE, k] = profile[FREE, k + 1]


@kernel
def add_free(s: Array, profile: Array, low: int, begin: int, end: int, by: int) -> None:
    """Add `by` free processors in [begin, end); now <= begin < end, column `low` begins no later."""
    first = _break_at(s, profile, low, begin)
    last = _break_at(s, profile, first, end)
    for i in range(first, last):
        profile[FREE, i] += by
    _join(s, profile, last)
    _join(s, profile, first)


@kernel
def _earliest(s: Array, profile: Array, need: int, limit: int) -> int:
    """The earliest time from now on with `need` processors free for `limit` seconds."""
    start = -1
    last = s[HI] - 1
    for i in range(s[LO], last):
        if profile[FREE, i] < need:
            start = -1
        else:
            if start < 0:
                start = profile[TIME, i]
            if profile[TIME, i + 1] - start >= limit:
                return start
    return profile[TIME, last] if start < 0 else start


@kernel
def _earlier(
    s: Array, profile: Array, need: int, limit: int, start: int, horizon: int, not_before: int, near: int
) -> int:
    """The earliest time before `start` and `horizon` to which a reservation can move; -1: none.

    The reservation itself is in the profile, so [t, min(t + limit, start)) must be free. No time before
    `not_before`, which is near that column, will do.
    """
    found = -1
    i = s[LO]
    if not_before > s[NOW]:
        i = min(max(near, i), s[HI] - 1)
        while profile[TIME, i] > not_before:
            i -= 1
        while i + 1 < s[HI] and profile[TIME, i + 1] <= not_before:
            i += 1
    while profile[TIME, i] < start:
        if profile[FREE, i] < need:
            found = -1
            if profile[TIME, i + 1] >= horizon:
                break
        else:
            if found < 0:
                found = profile[TIME, i]
                s[FOUND] = i
            if profile[TIME, i + 1] - found >= limit:
                break
        i += 1
    s[REACHED] = i
    return found


@inlined
def _earlier_than_seen(s: Array, profile: Array, need: int, limit: int, start: int, horizon: int) -> int:
    """As `_earlier`, with what is known and will be known from other jobs of the same shape."""
    seen = SEEN + SEEN_WIDTH * ((need * 7 + limit // 60) % SHAPES)
    not_before, near = s[NOW], s[LO]
    if (
        s[seen + S_PASS] == s[PASSES]
        and s[seen + S_NEED] <= need
        and s[seen + S_LIMIT] <= limit
        and s[seen + S_START] <= start
    ):
        not_before, near = s[seen + S_START], s[seen + S_COLUMN]
    earlier = -1
    if not_before < horizon:
        earlier = _earlier(s, profile, need, limit, start, horizon, not_before, near)
        near = s[REACHED]
    if earlier < 0:
        s[seen + S_NEED], s[seen + S_LIMIT], s[seen + S_START] = need, limit, start
        s[seen + S_PASS], s[seen + S_COLUMN] = s[PASSES], near
    return earlier


@inlined
def _forget_seen(s: Array, freed: int) -> None:
    """Processors came free from this second on."""
    for row in range(SEEN, SEEN + SEEN_WIDTH * SHAPES, SEEN_WIDTH):
        if s[row + S_START] > freed:
            s[row + S_PASS] = 0


@kernel
def _most_free(s: Array, profile: Array, horizon: int) -> int:
    most = 0
    for i in range(s[LO], s[HI]):
        if profile[TIME, i] >= horizon:
            break
        most = max(most, profile[FREE, i])
    return most


@kernel
def _move(s: Array, profile: Array, waiting: Array, k: int, earlier: int) -> None:
    start, need, limit = waiting[k, W_START], waiting[k, W_NEED], waiting[k, W_LIMIT]
    add_free(s, profile, max(s[LO], s[REACHED] - 1), max(start, earlier + limit), start + limit, need)
    add_free(s, profile, s[FOUND], earlier, min(start, earlier + limit), -need)
    waiting[k, W_START] = earlier
    waiting[k, W_RESERVED] = s[RESERVATIONS]
    s[RESERVATIONS] += 1


@kernel
def compress(s: Array, profile: Array, waiting: Array, horizon: int) -> None:
    """Move each reservation, in the order of submission, to its earliest time; one pass.

    Nothing came free at or after `horizon` since the last pass. A hole that a late job leaves in this
    pass is offered to the jobs before it in the next one only: LEFT_OVER remembers it.

    Where a job cannot move, another that needs no less for no shorter and starts no earlier cannot move
    to before the start of the first: its window would hold one of the first. Queues are full of jobs of
    the same shape, so SEEN keeps the last job of a shape that could not move. That holds until a move
    frees processors before its start.
    """
    left_over = 0
    s[PASSES] += 1
    next_start = NEVER
    most = _most_free(s, profile, horizon)
    for k in range(s[WAITING]):
        start = waiting[k, W_START]
        if start > s[NOW] and waiting[k, W_NEED] <= most:
            need, limit = waiting[k, W_NEED], waiting[k, W_LIMIT]
            earlier = _earlier_than_seen(s, profile, need, limit, start, horizon)
            if earlier >= 0:
                _forget_seen(s, max(start, earlier + limit))
                _move(s, profile, waiting, k, earlier)
                left_over = max(left_over, start + limit)
                horizon = max(horizon, left_over)
                most = _most_free(s, profile, horizon)
                start = earlier
        next_start = min(next_start, start)
    s[LEFT_OVER] = left_over
    s[NEXT_START] = next_start


@inlined
def place(s: Array, running: Array, end: int, job: int, order: int) -> None:
    """Enter a job into the sorted list of the running ones."""
    i = s[RUN_HI]
    s[RUN_HI] = i + 1
    while i > s[RUN_LO] and (
        running[i - 1, RUN_END] > end
        or (running[i - 1, RUN_END] == end and running[i - 1, RUN_ORDER] > order)
    ):
        for column in range(3):
            running[i, column] = running[i - 1, column]
        i -= 1
    running[i, RUN_END], running[i, RUN_JOB], running[i, RUN_ORDER] = end, job, order


@inlined
def drop(s: Array, waiting: Array, k: int) -> None:
    """Take row k out of the waiting jobs."""
    s[WAITING] -= 1
    for i in range(k, s[WAITING]):
        for column in range(5):
            waiting[i, column] = waiting[i + 1, column]


@inlined
def _reserve(s: Array, profile: Array, waiting: Array, k: int, start: int) -> None:
    add_free(s, profile, s[LO], start, start + waiting[k, W_LIMIT], -waiting[k, W_NEED])
    waiting[k, W_START] = start
    waiting[k, W_RESERVED] = s[RESERVATIONS]
    s[RESERVATIONS] += 1
    s[NEXT_START] = min(s[NEXT_START], start)


@kernel
def easy_pass(s: Array, profile: Array, waiting: Array) -> None:
    """EASY: start heads while they fit, then what does not delay the next head."""
    s[RELEASED] = 0
    for k in range(s[WAITING]):
        if waiting[k, W_START] != NEVER:
            continue
        if waiting[k, W_NEED] > profile[FREE, s[LO]]:
            _backfill(s, profile, waiting, k, k + 1)
            return
        _reserve(s, profile, waiting, k, s[NOW])


@kernel
def _backfill(s: Array, profile: Array, waiting: Array, head: int, first: int) -> None:
    """EASY: let jobs from row `first` on start now where they do not delay the head.

    Such a job ends by the head's shadow time, or needs no more than is free there beside the head.
    """
    shadow = s[LO]
    while profile[FREE, shadow] < waiting[head, W_NEED]:
        shadow += 1
    latest = profile[TIME, shadow] - s[NOW]
    extra = profile[FREE, shadow] - waiting[head, W_NEED]
    free = profile[FREE, s[LO]]
    for k in range(first, s[WAITING]):
        need = waiting[k, W_NEED]
        if need <= free and waiting[k, W_START] == NEVER:
            late = waiting[k, W_LIMIT] > latest
            if not late or need <= extra:
                _reserve(s, profile, waiting, k, s[NOW])
                free -= need
                extra -= need if late else 0


@kernel
def enter(s: Array, profile: Array, waiting: Array, job: int, need: int, limit: int) -> None:
    """A job is submitted now; `has_room` said yes."""
    roll(s, profile)
    k = s[WAITING]
    s[WAITING] = k + 1
    waiting[k, W_JOB], waiting[k, W_NEED], waiting[k, W_LIMIT] = job, need, limit
    waiting[k, W_START] = NEVER
    if s[POLICY] == CONSERVATIVE:
        _reserve(s, profile, waiting, k, _earliest(s, profile, need, limit))
    elif k > 0 and s[RELEASED] == 0 and waiting[0, W_START] == NEVER:
        # Nothing came free since the last pass: those before it need no second look.
        _backfill(s, profile, waiting, 0, k)
    else:
        easy_pass(s, profile, waiting)


@kernel
def leave(s: Array, profile: Array, waiting: Array, begin: int, end: int, need: int) -> None:
    """Processors that were planned to be used in [begin, end) come free."""
    roll(s, profile)
    if end > begin:
        add_free(s, profile, s[LO], begin, end, need)
    if s[POLICY] == EASY:
        easy_pass(s, profile, waiting)
    elif max(end, s[LEFT_OVER]) > s[NOW]:
        compress(s, profile, waiting, max(end, s[LEFT_OVER]))


@kernel
def withdraw(s: Array, profile: Array, waiting: Array, k: int) -> None:
    """Row k of the waiting jobs leaves the queue now, before it starts."""
    start, limit, need = waiting[k, W_START], waiting[k, W_LIMIT], waiting[k, W_NEED]
    drop(s, waiting, k)
    s[NEXT_START] = NEVER
    for i in range(s[WAITING]):
        s[NEXT_START] = min(s[NEXT_START], waiting[i, W_START])
    if start == NEVER:
        leave(s, profile, waiting, s[NOW], s[NOW], need)
    else:
        leave(s, profile, waiting, start, start + limit, need)


@inlined
def _start_due(s: Array, jobs: Array, starts: Array, grid: Array, running: Array, waiting: Array) -> None:
    """Start the job whose reservation is the first made of those that begin now."""
    n = jobs.shape[0]
    now, due, first, next_start = s[NOW], -1, NEVER, NEVER
    for k in range(s[WAITING]):
        start = waiting[k, W_START]
        if start == now and waiting[k, W_RESERVED] < first:
            next_start = now if due >= 0 else next_start
            due, first = k, waiting[k, W_RESERVED]
        else:
            next_start = min(next_start, start)
    s[NEXT_START] = next_start
    job = waiting[due, W_JOB]
    if job < n:
        starts[job] = now
        run = jobs[job, RUN]
    else:
        grid[job - n, START] = now
        run = grid[job - n, RUN]
        s[TOUCHED] = 1
    place(s, running, now + run, job, s[STARTED])
    s[STARTED] += 1
    drop(s, waiting, due)


@inlined
def _end_first(
    s: Array, jobs: Array, starts: Array, grid: Array, profile: Array, running: Array, waiting: Array
) -> None:
    n = jobs.shape[0]
    job = running[s[RUN_LO], RUN_JOB]
    s[RUN_LO] += 1
    if job < n:
        leave(s, profile, waiting, s[NOW], starts[job] + jobs[job, LIMIT], jobs[job, NEED])
    else:
        k = job - n
        grid[k, END] = s[NOW]
        s[TOUCHED] = 1
        leave(s, profile, waiting, s[NOW], grid[k, START] + grid[k, LIMIT], grid[k, NEED])


@kernel
def advance(
    s: Array,
    jobs: Array,
    starts: Array,
    grid: Array,
    profile: Array,
    running: Array,
    waiting: Array,
    until: int,
    watch: bool,
) -> int:
    """Handle all events up to and including `until`; DONE or FULL.

    With `watch` it stops after the second in which a job from outside started or ended.
    """
    n = jobs.shape[0]
    while True:
        submission = jobs[s[NEXT_JOB], SUBMIT] if s[NEXT_JOB] < n else NEVER
        end = running[s[RUN_LO], RUN_END] if s[RUN_LO] < s[RUN_HI] else NEVER
        at = min(submission, end, s[NEXT_START])
        if at > until or at == NEVER or (watch and s[TOUCHED] and at > s[NOW]):
            return DONE
        s[NOW] = at
        if submission == at:
            if not has_room(s, profile, running, waiting):
                return FULL
            job = s[NEXT_JOB]
            s[NEXT_JOB] = job + 1
            starts[job] = -1
            enter(s, profile, waiting, job, jobs[job, NEED], jobs[job, LIMIT])
        elif end == at:
            _end_first(s, jobs, starts, grid, profile, running, waiting)
        else:
            _start_due(s, jobs, starts, grid, running, waiting)
