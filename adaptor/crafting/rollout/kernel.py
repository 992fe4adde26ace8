"""The inner loops of the rollout heuristic, compiled by numba.

All in one file: numba's cache of a loop does not notice a change of one that it calls in another file.
Times are seconds from now on. The arrays:

profile  (2, n) float64: TIME, and FREE processors from then on; the last column lasts for ever
members  (m, 4) float64, requests that run, wait or may be made: START (not positive: it runs), LENGTH (that
         is left), SLOTS, AGE (mean seconds for which its present tasks have run)
beliefs  (h, 3) float64, what the runtime of a task may be: MEAN, LONGEST, WEIGHT (all of them make 1)
jobs     (n, 3) float64, in queue order: NEED in processors, LIMIT, SHAPE: equal ones have the same number
holes    (n, 4) float64, where requests may be made: START, LENGTH, SLOTS, MOST (as long as a request may be)
later    (h, 1, GRID) float64: tasks that requests finish up to each time of the grid, if the first is made
         now; or (h, GRID, GRID): if it is made after a time of the grid, by row
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])


def loop(function: Function) -> Function:
    return cast(Function, njit(cache=True)(function))


TIME, FREE = 0, 1
START, LENGTH, SLOTS, AGE = 0, 1, 2, 3
MOST = 3
MEAN, LONGEST, WEIGHT = 0, 1, 2
NEED, LIMIT, SHAPE = 0, 1, 2
# of the rules
WIDEST, UNIT, TASKS, MAX_TR, PAD, MARGIN, LEAST, PACE, RESOLUTION = 0, 1, 2, 3, 4, 5, 6, 7, 8
RULES = 9

GRID = 72
_FIRST, _RATIO = 20.0, 1.25
NEVER = 1e15
TINY = 1e-6
_BETTER = 0.998
"""A request must shorten the completion by this factor to be made."""
_LAST = 0.3
"""Tasks that a slot finishes after it has started its last one: that one, if it takes no longer than most,
beside what was left of the one before (for runtimes spread evenly from 0.25 to 1.75 of their mean)."""
_WIDE = 0.25
"""The least part of the widest request for one that is chosen beside those allowed, since it starts now."""


@loop
def grid_time(place: int) -> float:
    """Of the grid of times, on which they grow by a constant factor."""
    return float(_FIRST * _RATIO**place)


@loop
def _grid_place(seconds: float) -> float:
    """The reverse; between two times of the grid a fraction. Not for times before the first."""
    return float(np.log(seconds / _FIRST) / np.log(_RATIO))


@loop
def done(seconds: float, length: float, age: float, mean: float, longest: float) -> float:
    """Tasks that one slot of a request has finished so long after its start, or from now on if it runs.

    Where all tasks are alike they end together; else a slot finishes one every `mean` seconds, and starts
    others until no more than that is left (`learning.RuntimeLearner.even`).
    """
    if seconds > length:
        seconds = length
    if seconds <= 0.0:
        return 0.0
    if longest <= mean * 1.02:
        return float(np.floor((seconds + age) / mean + TINY))
    most = (length - mean) / mean + _LAST
    if age > 0.0:
        first = 1.0 + (length - longest) / mean if length > longest else length / longest
        return float(min(seconds / mean, max(first, most)))
    if length < longest:
        return 0.0
    return float(min(max(0.0, seconds / mean - 0.5), max(1.0, most)))


@loop
def rectangles(profile: Floats, found: Floats) -> int:
    """All maximal rectangles under a profile, as rows of start, end and processors; returns their number."""
    count, depth = 0, 0
    steps = profile.shape[1]
    begins, heights = np.empty(steps + 1), np.empty(steps + 1)
    for step in range(steps + 1):
        time = profile[TIME, step] if step < steps else NEVER
        free = profile[FREE, step] if step < steps else 0.0
        begin = time
        while depth and heights[depth - 1] > free:
            depth -= 1
            begin = begins[depth]
            found[count, 0], found[count, 1], found[count, 2] = begin, time, heights[depth]
            count += 1
        if free > 0 and (depth == 0 or heights[depth - 1] < free):
            begins[depth], heights[depth] = begin, free
            depth += 1
    return count


@loop
def backfill(profile: Floats, jobs: Floats, starts: Floats) -> Floats:
    """The profile beside all jobs, each at its earliest start in this order; writes the starts.

    The same as `availability.schedule`: a job never starts before an earlier one of the same shape.
    """
    steps = profile.shape[1]
    times, free = np.empty(steps + 2 * jobs.shape[0] + 1), np.empty(steps + 2 * jobs.shape[0] + 1)
    times[:steps], free[:steps] = profile[TIME], profile[FREE]
    shapes = int(jobs[:, SHAPE].max()) + 1 if jobs.shape[0] else 0
    reached = np.full(shapes, profile[TIME, 0])
    for job in range(jobs.shape[0]):
        need, limit, shape = jobs[job, NEED], jobs[job, LIMIT], int(jobs[job, SHAPE])
        starts[job] = NEVER
        at = np.searchsorted(times[:steps], reached[shape], side="right") - 1
        first, begin = -1, reached[shape]
        while at < steps and reached[shape] < NEVER:
            if free[at] < need:
                first = -1
            elif first < 0:
                first, begin = at, max(times[at], reached[shape])
            at += 1
            if first >= 0 and (at == steps or times[at] >= begin + limit):
                starts[job] = begin
                break
        reached[shape] = starts[job]
        if starts[job] < NEVER:
            steps = _split(times, free, steps, begin)
            if begin + limit < NEVER:  # else it never ends
                steps = _split(times, free, steps, begin + limit)
            for step in range(np.searchsorted(times[:steps], begin), steps):
                if times[step] >= begin + limit:
                    break
                free[step] -= need
    return _joined(times, free, steps)


@loop
def compressed(profile: Floats, jobs: Floats, starts: Floats) -> Floats:
    """The profile beside all jobs if each, in this order, moves to its earliest start; writes the starts.

    The profile has them at their present starts. None moves to a later one: what was promised is kept.
    """
    for job in range(jobs.shape[0]):
        need, limit, start = jobs[job, NEED], jobs[job, LIMIT], starts[job]
        earlier = _earlier(profile, need, limit, start)
        if earlier < start:
            starts[job] = earlier
            profile = taken(profile, start, start + limit, -need)
            profile = taken(profile, earlier, earlier + limit, need)
    return profile


@loop
def _earlier(profile: Floats, need: float, limit: float, start: float) -> float:
    """The earliest time to which a job can move from its start, from which on it has what it needs."""
    first = -1
    for step in range(profile.shape[1]):
        if profile[TIME, step] >= start:
            break
        if profile[FREE, step] < need:
            first = -1
            continue
        first = step if first < 0 else first
        until = profile[TIME, step + 1] if step + 1 < profile.shape[1] else NEVER
        if until >= min(profile[TIME, first] + limit, start):
            return float(profile[TIME, first])
    return start


@loop
def _split(times: Floats, free: Floats, steps: int, time: float) -> int:
    """Let a step begin at a time; returns how many there are."""
    at = np.searchsorted(times[:steps], time)
    if at < steps and times[at] == time:
        return steps
    for step in range(steps, at, -1):
        times[step], free[step] = times[step - 1], free[step - 1]
    times[at], free[at] = time, free[at - 1]
    return steps + 1


@loop
def _joined(times: Floats, free: Floats, steps: int) -> Floats:
    """A profile in which neighbours differ."""
    result = np.empty((2, steps))
    count = 0
    for step in range(steps):
        if count == 0 or result[FREE, count - 1] != free[step]:
            result[TIME, count], result[FREE, count] = times[step], free[step]
            count += 1
    return np.copy(result[:, :count])


@loop
def taken(profile: Floats, start: float, end: float, processors: float) -> Floats:
    """The profile without so many processors in this time; negative ones: with them. None is below 0."""
    steps = profile.shape[1]
    result = np.empty((2, steps + 2))
    count = 0
    before = 0.0
    for step in range(steps):
        time, free = profile[TIME, step], profile[FREE, step]
        until = profile[TIME, step + 1] if step + 1 < steps else NEVER
        for edge in (time, start, end):
            if not time <= edge < until or (edge == time and count and result[TIME, count - 1] == edge):
                continue
            now = free - processors if start <= edge < end else free
            now = max(0.0, now)
            if count == 0 or now != before:
                result[TIME, count], result[FREE, count] = edge, now
                count += 1
                before = now
    return np.copy(result[:, :count])


@loop
def holes(profile: Floats, rules: Floats, tasks: float) -> Floats:
    """All that is free long enough for a task, by start."""
    found = np.empty((profile.shape[1] + 1, 3))
    count = rectangles(profile, found)
    found = found[:count][np.argsort(found[:count, 0], kind="mergesort")]
    result = np.empty((count, 4))
    kept = 0
    needed = np.ceil(tasks / rules[TASKS]) * rules[UNIT]
    for row in range(count):
        units = np.floor(min(min(found[row, 2], rules[WIDEST]), needed) / rules[UNIT] + TINY)
        length = found[row, 1] - found[row, 0] - rules[MARGIN]
        if units < 1 or length < rules[LEAST]:
            continue
        result[kept, START], result[kept, LENGTH] = found[row, 0], length
        result[kept, SLOTS], result[kept, MOST] = units * rules[TASKS], rules[MAX_TR]
        kept += 1
    return np.copy(result[:kept])


@loop
def offers(profile: Floats, rules: Floats, tasks: float) -> Floats:
    """The requests that fit a profile, as members, each the widest and longest of its hole.

    Those that another one beats are left out: it starts no later, lasts as long and has as many slots.
    """
    found = holes(profile, rules, tasks)
    result = np.empty((found.shape[0], 4))
    kept = 0
    for row in range(found.shape[0]):
        length = min(found[row, MOST], found[row, LENGTH])
        length = np.floor(length / rules[RESOLUTION] + TINY) * rules[RESOLUTION]
        if length < rules[LEAST]:
            continue
        beaten = False
        for other in range(kept):
            if result[other, LENGTH] >= length and result[other, SLOTS] >= found[row, SLOTS]:
                beaten = True
                break
        if beaten:
            continue
        result[kept, START], result[kept, LENGTH] = found[row, START], length
        result[kept, SLOTS], result[kept, AGE] = found[row, SLOTS], 0.0
        kept += 1
    return np.copy(result[:kept])


@loop
def finished(member: Floats, at: float, belief: Floats, pad: float) -> float:
    """Tasks that a member has finished at a time, if they are as believed."""
    begin = max(0.0, member[START])
    if member[START] > 0.0 or member[AGE] == 0.0:
        begin += pad
    length = member[LENGTH] - (pad if member[AGE] == 0.0 else 0.0)
    return float(member[SLOTS] * done(at - begin, length, member[AGE], belief[MEAN], belief[LONGEST]))


@loop
def as_now(found: Floats, beliefs: Floats, rules: Floats) -> Floats:
    """`later` if the holes of now come again after each request: of these offers the best one."""
    result = np.zeros((beliefs.shape[0], GRID))
    for which in range(beliefs.shape[0]):
        belief = beliefs[which]
        for place in range(GRID):
            at = grid_time(place)
            best = result[which, place - 1] if place else 0.0
            for row in range(found.shape[0]):
                if found[row, START] >= at:
                    continue
                end = found[row, START] + found[row, LENGTH]
                tasks = finished(found[row], at, belief, rules[PAD])
                if at > end:
                    tasks += after(result[which], rules[PACE] * (at - end), place)
                best = max(best, tasks)
            result[which, place] = best
    return result.reshape((beliefs.shape[0], 1, GRID))


@loop
def as_planned(found: Floats, beliefs: Floats, rules: Floats) -> Floats:
    """`later` if no holes come but these, which are planned: of those that are left the best one."""
    result = np.zeros((beliefs.shape[0], GRID, GRID))
    member = np.zeros(4)
    for which in range(beliefs.shape[0]):
        for row in range(GRID - 1, -1, -1):
            since = grid_time(row)
            for hole in range(found.shape[0]):
                start = max(found[hole, START], since)
                length = min(found[hole, MOST], found[hole, START] + found[hole, LENGTH] - start)
                if length < rules[LEAST]:
                    continue
                end = start + length
                member[START], member[LENGTH], member[SLOTS] = start, length, found[hole, SLOTS]
                follower = _row_after(end)
                for place in range(row + 1, GRID):
                    at = grid_time(place)
                    if at <= start:
                        continue
                    tasks = finished(member, at, beliefs[which], rules[PAD])
                    if at > end and follower > row:
                        tasks += result[which, follower, place]
                    result[which, row, place] = max(result[which, row, place], tasks)
    return result


@loop
def _row_after(seconds: float) -> int:
    """Of the grid: the first time that is not before this one; the last of all for those beyond."""
    if seconds <= _FIRST:
        return 0
    return min(GRID - 1, int(np.ceil(_grid_place(seconds) - TINY)))


@loop
def followed(table: Floats, end: float, at: float, pace: float) -> float:
    """Tasks that those requests finish until a time which are made when one ends; by a belief's `later`."""
    if table.shape[0] == 1:
        return after(table[0], pace * (at - end), GRID)
    return after(table[_row_after(end)], at, GRID)


@loop
def after(table: Floats, seconds: float, known: int) -> float:
    """A row of `later` at a time between those of the grid; beyond those known the speed stays."""
    if seconds < _FIRST:
        return 0.0
    place = int(_grid_place(seconds))
    if place >= known - 1:
        return float(table[known - 1] * seconds / grid_time(known - 1)) if known else 0.0
    low, high = grid_time(place), grid_time(place + 1)
    share = (seconds - low) / (high - low)
    return float(table[place] + share * (table[place + 1] - table[place]))


@loop
def progress(members: Floats, at: float, belief: Floats, table: Floats, rules: Floats) -> float:
    """Tasks that all members, and the requests made when they end, have finished at a time."""
    total = 0.0
    for row in range(members.shape[0]):
        total += finished(members[row], at, belief, rules[PAD])
        end = max(0.0, members[row, START]) + members[row, LENGTH]
        if at > end:
            total += followed(table, end, at, rules[PACE])
    return total


@loop
def completion(members: Floats, tasks: float, belief: Floats, table: Floats, rules: Floats) -> float:
    """Seconds until so many tasks are finished, to half a per cent, or a second."""
    low, high = 0.0, 60.0
    while progress(members, high, belief, table, rules) < tasks:
        low = high
        high *= 2.0
        if high > NEVER:
            return NEVER
    while high - low > max(1.0, 0.005 * high):
        middle = 0.5 * (low + high)
        if progress(members, middle, belief, table, rules) >= tasks:
            high = middle
        else:
            low = middle
    return high


@loop
def cost(members: Floats, tasks: float, beliefs: Floats, later: Floats, rules: Floats) -> float:
    """The expected completion: its geometric mean, so that no belief outweighs the others."""
    total = 0.0
    for which in range(beliefs.shape[0]):
        belief = beliefs[which]
        until = completion(members, tasks, belief, later[which], rules)
        total += belief[WEIGHT] * np.log(max(1.0, until))
    return float(np.exp(total))


@loop
def chosen(
    profile: Floats,
    held: Floats,
    allowed: int,
    most: float,
    tasks: float,
    beliefs: Floats,
    later: Floats,
    rules: Floats,
    beside: int = 0,
) -> Floats:
    """The members held and up to so many more, of `most` processors together, each the one that shortens
    the completion most.

    Beside those allowed there may be `beside` more that start now: they are made first, and what is left out
    for them can still be made when they end.
    """
    members, rules = held.copy(), rules.copy()
    best = cost(members, tasks, beliefs, later, rules) if members.shape[0] else NEVER
    places = allowed
    for _ in range(allowed + beside if allowed else 0):
        rules[WIDEST] = min(rules[WIDEST], most)
        found = offers(profile, rules, tasks)
        place, least = -1, best * _BETTER
        more = np.empty((members.shape[0] + 1, 4))
        more[:-1] = members
        for row in range(found.shape[0]):
            wide = found[row, SLOTS] >= _WIDE * rules[WIDEST]
            if not places and (found[row, START] > 0.0 or not wide):
                continue
            more[-1] = found[row]
            value = cost(more, tasks, beliefs, later, rules)
            if value < least:
                place, least = row, value
        if place < 0:
            break
        more[-1] = found[place]
        members, best = more, least
        if not beside or found[place, START] > 0.0:
            places -= 1
        start, length = found[place, START], found[place, LENGTH]
        processors = np.ceil(found[place, SLOTS] / rules[TASKS]) * rules[UNIT]
        profile = taken(profile, start, start + length + rules[MARGIN], processors)
        most -= processors
    return np.copy(members)
