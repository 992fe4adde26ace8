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
waiting  (…, 7) in the order of submission: rows 0 to WAITING; under EASY a start of NEVER is undecided
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
CHANGES = 14  # how often one did
FOUND, REACHED = 15, 16  # the columns at which the last search for an earlier time began and ended
# from here on one number for each width, see `compress`
WIDTHS = 24
# of the stretches in which something came free since the waiting jobs were looked at: the earliest begin,
HOLE_BEGIN = 17
HOLE_END = HOLE_BEGIN + WIDTHS  # the latest end,
HOLE_LONGEST = HOLE_END + WIDTHS  # the longest of those that end,
HOLE_TAIL = HOLE_LONGEST + WIDTHS  # and the earliest begin of those that last for ever
LEFT_BEGIN = HOLE_TAIL + WIDTHS  # the same of what came free in this compression, for the next one
LEFT_END = LEFT_BEGIN + WIDTHS
LEFT_LONGEST = LEFT_END + WIDTHS
LEFT_TAIL = LEFT_LONGEST + WIDTHS
TRIED_NEED = LEFT_TAIL + WIDTHS  # what found no stretch in this compression: a need,
TRIED_LIMIT = TRIED_NEED + WIDTHS  # a limit
TRIED_UNTIL = TRIED_LIMIT + WIDTHS  # and how far was looked
COLUMN = TRIED_UNTIL + WIDTHS  # near which column it was looked last
SCALARS = COLUMN + WIDTHS
# jobs and grid
SUBMIT, RUN, LIMIT, NEED, START, END = 0, 1, 2, 3, 4, 5
# profile
TIME, FREE = 0, 1
# running
RUN_END, RUN_JOB, RUN_ORDER = 0, 1, 2
# waiting
W_JOB, W_START, W_RESERVED, W_NEED, W_LIMIT = 0, 1, 2, 3, 4
W_WIDTH = 5  # of the need
W_COLUMN = 6  # near which column the reservation began when it was looked at last
WAITING_COLUMNS = 7


@inlined
def at(i: int) -> Any:
    """An index that is not negative. Numba would look for negative ones, which takes half of the time."""
    return np.uint64(i)


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
    while low + 1 < s[HI] and profile[TIME, at(low + 1)] <= s[NOW]:
        low += 1
        s[RELEASED] = 1
    profile[TIME, at(low)] = s[NOW]
    s[LO] = low


@inlined
def _shift(profile: Array, first: int, end: int, by: int) -> None:
    """Move columns [first, end) by so many places."""
    if by > 0:
        for i in range(end - 1, first - 1, -1):
            profile[TIME, at(i + by)] = profile[TIME, at(i)]
            profile[FREE, at(i + by)] = profile[FREE, at(i)]
    elif by < 0:
        for i in range(first, end):
            profile[TIME, at(i + by)] = profile[TIME, at(i)]
            profile[FREE, at(i + by)] = profile[FREE, at(i)]


@inlined
def _borders(
    s: Array, profile: Array, first: int, last: int, begin: int, end: int, by: int
) -> tuple[int, int]:
    """What adding to [begin, end) does to its two borders: a column more (1), one less (-1) or neither.

    The interval begins in column `first` and ends in `last`.
    """
    at_begin, at_end = 0, 0
    if profile[TIME, at(first)] < begin:
        at_begin = 1
    elif first > s[LO] and profile[FREE, at(first - 1)] == profile[FREE, at(first)] + by:
        at_begin = -1
    if last + 1 == s[HI] or profile[TIME, at(last + 1)] > end:
        at_end = 1
    elif profile[FREE, at(last + 1)] == profile[FREE, at(last)] + by:
        at_end = -1
    return at_begin, at_end


@kernel
def add_free(s: Array, profile: Array, low: int, begin: int, end: int, by: int) -> int:
    """Add `by` free processors in [begin, end); now <= begin < end, column `low` begins no later.

    Columns are made where there is no border, and joined where there is none any more; what lies behind
    moves once. Returns the column in which the interval begins now.
    """
    high = s[HI]
    first = low
    while first + 1 < high and profile[TIME, at(first + 1)] <= begin:
        first += 1
    last = first
    while last + 1 < high and profile[TIME, at(last + 1)] < end:
        last += 1
    free = profile[FREE, at(last)]
    at_begin, at_end = _borders(s, profile, first, last, begin, end, by)
    rest = last + 2 if at_end < 0 else last + 1
    if at_begin < 0:
        _shift(profile, first + 1, last + 1, -1)
    _shift(profile, rest, high, at_begin + at_end)
    if at_begin > 0:
        _shift(profile, first, last + 1, 1)
        profile[TIME, at(first + 1)] = begin
    s[HI] = high + at_begin + at_end
    last += at_begin
    if at_begin > 0:
        first += 1
    for i in range(first, last + 1):
        profile[FREE, at(i)] += by
    if at_end > 0:
        profile[TIME, at(last + 1)] = end
        profile[FREE, at(last + 1)] = free
    return first - 1 if at_begin < 0 else first


@kernel
def _earliest(s: Array, profile: Array, need: int, limit: int) -> int:
    """The earliest time from now on with `need` processors free for `limit` seconds."""
    start = -1
    last = s[HI] - 1
    for i in range(s[LO], last):
        if profile[FREE, at(i)] < need:
            start = -1
        else:
            if start < 0:
                start = profile[TIME, at(i)]
            if profile[TIME, at(i + 1)] - start >= limit:
                return start
    return profile[TIME, at(last)] if start < 0 else start


@inlined
def _near(s: Array, profile: Array, near: int, time: int) -> int:
    """The column in which a time from now on lies; it is looked for from another one on."""
    low, last = s[LO], s[HI] - 1
    i = min(max(near, low), last)
    while profile[TIME, at(i)] > time:
        i -= 1
    while i < last and profile[TIME, at(i + 1)] <= time:
        i += 1
    return int(i)


@inlined
def width_of(need: int) -> int:
    """The whole part of the binary logarithm of a number of processors, at most WIDTHS - 1."""
    width = 0
    while need > 1 and width < WIDTHS - 1:
        need >>= 1
        width += 1
    return width


@inlined
def _note(s: Array, rows: int, begin: int, end: int) -> None:
    """Enter a stretch into the four numbers of HOLE or LEFT, which begin at `rows`."""
    s[at(rows)] = min(s[at(rows)], begin)
    s[at(rows + WIDTHS)] = max(s[at(rows + WIDTHS)], end)
    if end < NEVER:
        s[at(rows + 2 * WIDTHS)] = max(s[at(rows + 2 * WIDTHS)], end - begin)
    else:
        s[at(rows + 3 * WIDTHS)] = min(s[at(rows + 3 * WIDTHS)], begin)


@kernel
def _came_free(s: Array, profile: Array, first: int, end: int) -> None:
    """Note for each width the stretch around what came free from column `first` on until `end`.

    It is never shorter than the real one, the longest interval with 2 ** width free processors.
    """
    low, last = s[LO], s[HI] - 1
    left, right, most = first, first, profile[FREE, at(first)]
    while right < last and profile[TIME, at(right + 1)] < end:
        right += 1
        most = max(most, profile[FREE, at(right)])
    width = width_of(most) if most > 0 else -1
    while width >= 0:
        level = 1 << width
        while left > low and profile[FREE, at(left)] >= level and profile[FREE, at(left - 1)] >= level:
            left -= 1
        while right < last and profile[FREE, at(right + 1)] >= level:
            right += 1
        begin = profile[TIME, at(left)]
        until = NEVER if right == last else profile[TIME, at(right + 1)]
        _note(s, HOLE_BEGIN + width, begin, until)
        _note(s, LEFT_BEGIN + width, begin, until)
        if until - begin >= s[at(TRIED_LIMIT + width)]:
            s[at(TRIED_NEED + width)] = NEVER
        width -= 1


@inlined
def _earlier(s: Array, profile: Array, width: int, need: int, limit: int, since: int, until: int) -> int:
    """The earliest time in [since, until) from which `need` are free for `limit` seconds; -1: none."""
    if need >= s[at(TRIED_NEED + width)] and limit >= s[at(TRIED_LIMIT + width)]:
        since = max(since, s[at(TRIED_UNTIL + width)])
    if since >= until:
        return -1
    i = _near(s, profile, s[LO] if since == s[NOW] else s[at(COLUMN + width)], since)
    s[at(COLUMN + width)] = i
    while True:
        while profile[FREE, at(i)] < need and profile[TIME, at(i + 1)] < until:
            i += 1
        found = profile[TIME, at(i)]
        s[FOUND] = i
        while profile[FREE, at(i)] >= need:
            if profile[TIME, at(i + 1)] - found >= limit:
                s[REACHED] = i
                return int(found)
            i += 1
        if profile[TIME, at(i)] >= until or profile[TIME, at(i + 1)] >= until:
            break
    s[at(TRIED_NEED + width)], s[at(TRIED_LIMIT + width)] = need, limit
    s[at(TRIED_UNTIL + width)] = until
    return -1


@inlined
def _just_before(s: Array, profile: Array, waiting: Array, k: int) -> int:
    """Since when the need of row k has been free when its reservation begins; -1: not before it."""
    start, need = waiting[at(k), W_START], waiting[at(k), W_NEED]
    i = _near(s, profile, waiting[at(k), W_COLUMN], start - 1)
    waiting[at(k), W_COLUMN] = i
    if profile[FREE, at(i)] < need:
        return -1
    s[REACHED] = i + 1
    low = s[LO]
    while i > low and profile[FREE, at(i - 1)] >= need:
        i -= 1
    s[FOUND] = i
    return int(profile[TIME, at(i)])


@inlined
def _look_earlier(s: Array, profile: Array, waiting: Array, k: int) -> int:
    """The earliest time to which the reservation of row k can move, see `compress`; -1: none."""
    start, limit, width = waiting[at(k), W_START], waiting[at(k), W_LIMIT], waiting[at(k), W_WIDTH]
    since = max(s[NOW], s[at(HOLE_BEGIN + width)])
    if since >= start:
        return -1
    end = s[at(HOLE_END + width)]
    earlier = -1
    if s[at(HOLE_LONGEST + width)] >= limit or s[at(HOLE_TAIL + width)] + limit <= start:
        need, until = waiting[at(k), W_NEED], min(start, end) - limit + 1
        earlier = _earlier(s, profile, width, need, limit, since, until)
    if earlier < 0 and end >= start:
        earlier = _just_before(s, profile, waiting, k)
    return earlier


@kernel
def _move(s: Array, profile: Array, waiting: Array, k: int, earlier: int) -> None:
    start, need, limit = waiting[at(k), W_START], waiting[at(k), W_NEED], waiting[at(k), W_LIMIT]
    begin, end = max(start, earlier + limit), start + limit
    column = add_free(s, profile, max(s[LO], s[REACHED] - 1), begin, end, need)
    columns = s[HI]
    add_free(s, profile, s[FOUND], earlier, min(start, earlier + limit), -need)
    column += s[HI] - columns
    while profile[TIME, at(column)] > begin:
        column -= 1
    _came_free(s, profile, column, end)
    waiting[at(k), W_START], waiting[at(k), W_COLUMN] = earlier, s[FOUND]
    waiting[at(k), W_RESERVED] = s[RESERVATIONS]
    s[RESERVATIONS] += 1


@kernel
def compress(s: Array, profile: Array, waiting: Array, begin: int, end: int) -> None:
    """Move each reservation, in the order of submission, to its earliest time; one pass.

    Processors came free in [begin, end). A hole that a late job leaves in this pass is offered to the
    jobs before it in the next one only: LEFT_OVER remembers it.

    When a job was looked at last it could not move. If it can now, its new time ends in, or lasts
    through, a stretch in which its need is free and something came free since then. Of these stretches
    four numbers are kept for each width, that is for all needs from 2 ** width on below the next power
    (HOLE, of this pass and the one before). They show where to look at all, which is for one of two things:
    a stretch that holds the job whole (`_earlier`), rare in a full queue; and one that ends where its
    reservation begins, so that it moves forward (`_just_before`).

    Where one job found no whole stretch, none with a greater need and limit finds one as far as was
    looked; queues are full of jobs of one shape. That holds until a stretch of that length comes free
    (TRIED).
    """
    if end > s[NOW]:
        _came_free(s, profile, _near(s, profile, s[LO], begin), end)
    for width in range(WIDTHS):
        for rows in range(0, 4 * WIDTHS, WIDTHS):
            s[at(HOLE_BEGIN + rows + width)] = s[at(LEFT_BEGIN + rows + width)]
        s[at(LEFT_BEGIN + width)] = s[at(LEFT_TAIL + width)] = NEVER
        s[at(LEFT_END + width)] = s[at(LEFT_LONGEST + width)] = 0
        s[at(TRIED_NEED + width)] = NEVER
    left_over, next_start = 0, NEVER
    for k in range(s[WAITING]):
        start = waiting[k, W_START]
        if start > s[NOW]:
            earlier = _look_earlier(s, profile, waiting, k)
            if earlier >= 0:
                left_over = max(left_over, start + waiting[k, W_LIMIT])
                _move(s, profile, waiting, k, earlier)
                start = earlier
        next_start = min(next_start, start)
    s[LEFT_OVER], s[NEXT_START] = left_over, next_start


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
        for column in range(WAITING_COLUMNS):
            waiting[at(i), column] = waiting[at(i + 1), column]


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
    waiting[k, W_WIDTH], waiting[k, W_COLUMN] = width_of(need), s[LO]
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
        compress(s, profile, waiting, begin, end)


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


@kernel
def reshape(s: Array, profile: Array, waiting: Array, k: int, need: int, limit: int) -> None:
    """Row k of the waiting jobs keeps its place and asks for something else; `has_room` said yes.

    Its reservation is taken anew, at the earliest hole beside those of all others, which may then move.
    """
    roll(s, profile)
    start, old_need, old_limit = waiting[k, W_START], waiting[k, W_NEED], waiting[k, W_LIMIT]
    waiting[k, W_NEED], waiting[k, W_LIMIT] = need, limit
    waiting[k, W_WIDTH], waiting[k, W_COLUMN] = width_of(need), s[LO]
    if s[POLICY] == EASY:
        easy_pass(s, profile, waiting)
        return
    add_free(s, profile, s[LO], start, start + old_limit, old_need)
    _reserve(s, profile, waiting, k, _earliest(s, profile, need, limit))
    compress(s, profile, waiting, start, start + old_limit)


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
        s[CHANGES] += 1
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
        s[CHANGES] += 1
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
