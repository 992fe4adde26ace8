"""The loops of `timelines.Timelines` compiled by numba; `compiled` is their typed face.

All kernels are in this one file, because numba's cache of a kernel does not notice a change of a kernel that
it calls in another file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

from adaptor.crafting.nodes.space import GPUS

Ints = npt.NDArray[np.int64]
Grid = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., Any])

DONE, FULL = -1, -1
"""`backfill` or `place` is through, else it returns the first job without room; `take` has no room."""
NOTHING_WANTED = 1 << 62
CHUNKS, ANY_GPUS, SCATTER, WHOLE, FIRST, LAST, SHAPE, FEWEST = 0, 1, 2, 3, 4, 5, 6, 7
"""Columns of the terms of an ask; `eligible[FIRST:LAST]` are its nodes: where `FIRST` is 0, all. Asks of one
shape are the same, durations included. All chunks take `FEWEST` nodes, or more."""


BLOCK = 64  # nodes of a list that are skipped together where none is open
GRID = 64.0  # seconds, of openings; a power of 2, so that no division is rounded
LAST_OPENING = 65535  # on the grid: then, some 48 days after the start of the plan, or later
INHERITED = 4  # shapes, the newest, from which a new one inherits openings

# No kernel makes an array, and counting references to them (_nrt) would take half of the time.
_OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False}


class State(NamedTuple):
    """N nodes of R dimensions, with room for W steps each, and S instants."""

    times: Floats
    """(N, W): row n has `lengths[n]` steps, the last of which never ends."""
    free: Ints
    """(N, W, R): free amounts of row n in each step."""
    lengths: Ints
    capacity: Ints
    """(N, R): amounts that a node has."""
    instants: Floats
    """(S): all at which anything changes on any node; `used[0]` of them."""
    total: Ints
    """(S, 1): the free processors of all nodes, from each instant on."""
    used: Ints
    """(3): the instants, the steps of the node with the most, and the rows of `latest`."""
    latest: Ints
    """(N, 1 + R): of what the last job got, the nodes and what it took of each."""
    least: Ints
    """(R): scratch of the kernels, as is `taken`."""
    taken: Ints
    heap: Floats
    """(N): the first openings, the last of which is the first of a heap."""
    openings: Grid
    """(M, N): by row the instants, on the grid, before which a node is of no use to a shape: holds only grow.
    The row of a shape is the rest of its number by M."""
    soonest: Grid
    """(M, N / BLOCK, rounded up): no node of a block of the shape's list opens earlier."""
    owner: Ints
    """(M): by row its shape; -1: none."""


def kernel(function: Function) -> Function:
    return cast(Function, njit(**_OPTIONS)(function))


@kernel
def step_at(times: Floats, length: int, time: float) -> int:
    """The step in which `time` lies; the first one for any time before."""
    low, high = 0, length
    while low < high:
        middle = (low + high) // 2
        if times[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return max(0, low - 1)


@kernel
def find_least(state: State, node: int, start: float, end: float, out: Ints) -> None:
    """Least that is free of a node at any instant of [start, end), by dimension, into `out`."""
    times, free, length = state.times[node], state.free[node], state.lengths[node]
    step = step_at(times, length, start)
    for dimension in range(out.shape[0]):
        out[dimension] = free[step, dimension]
    step += 1
    while step < length and times[step] < end:
        for dimension in range(out.shape[0]):
            out[dimension] = min(out[dimension], free[step, dimension])
        step += 1


@kernel
def split(times: Floats, free: Ints, length: int, time: float) -> tuple[int, int]:
    """The step that begins at `time`, made if it is missing, and the number of steps."""
    step = step_at(times, length, time)
    if times[step] == time:
        return step, length
    for later in range(length, step + 1, -1):
        times[later] = times[later - 1]
        for dimension in range(free.shape[1]):
            free[later, dimension] = free[later - 1, dimension]
    times[step + 1] = time
    for dimension in range(free.shape[1]):
        free[step + 1, dimension] = free[step, dimension]
    return step + 1, length + 1


@kernel
def hold(times: Floats, free: Ints, length: int, start: float, end: float, held: Ints) -> int:
    """Take what is held during [start, end); returns the number of steps."""
    start = max(start, times[0])
    if start >= end:
        return length
    first, length = split(times, free, length, start)
    last = length
    if end < np.inf:
        last, length = split(times, free, length, end)
    for step in range(first, last):
        for dimension in range(held.shape[0]):
            free[step, dimension] -= held[dimension]
    return length


@kernel
def hold_all(state: State, nodes: Ints, spans: Floats, held: Ints) -> None:
    """Row by row `(node, (begin, end), what is held)`; where they exceed a node, nothing of it is free."""
    for row in range(nodes.shape[0]):
        node = nodes[row]
        state.lengths[node] = hold(
            state.times[node], state.free[node], state.lengths[node], spans[row, 0], spans[row, 1], held[row]
        )
    for node in range(state.free.shape[0]):
        for step in range(state.lengths[node]):
            for dimension in range(state.free.shape[2]):
                state.free[node, step, dimension] = max(0, state.free[node, step, dimension])


@kernel
def chunks_on(least: Ints, capacity: Ints, each: Ints, terms: Ints) -> int:
    """Compiled form of `space.chunks_on`: chunks that a node holds in addition."""
    count, gpus = NOTHING_WANTED, 0
    for dimension in range(least.shape[0]):
        if terms[WHOLE] and least[dimension] != capacity[dimension]:
            return 0
        if each[dimension] > 0:
            count = min(count, least[dimension] // each[dimension])
        if dimension >= GPUS:
            gpus += least[dimension]
    if count == NOTHING_WANTED:
        return 0
    if terms[ANY_GPUS] > 0:
        count = min(count, gpus // terms[ANY_GPUS])
    return min(count, 1) if terms[SCATTER] else count


@kernel
def has_room(free: Ints, capacity: Ints, each: Ints, terms: Ints) -> bool:
    """Whether `chunks_on` is 1 or more; a division takes longer than all of this."""
    gpus, wanted = 0, False
    for dimension in range(free.shape[0]):
        if free[dimension] < each[dimension] or (terms[WHOLE] and free[dimension] != capacity[dimension]):
            return False
        wanted = wanted or each[dimension] > 0
        if dimension >= GPUS:
            gpus += free[dimension]
    return wanted and gpus >= terms[ANY_GPUS]


@kernel
def taken_by(chunks: int, least: Ints, capacity: Ints, each: Ints, terms: Ints, out: Ints) -> None:
    """Compiled form of `space.taken_by`: amounts that the chunks take of a node, written into `out`."""
    left = chunks * terms[ANY_GPUS]
    for dimension in range(least.shape[0]):
        out[dimension] = capacity[dimension] if terms[WHOLE] else chunks * each[dimension]
        if dimension >= GPUS and not terms[WHOLE]:
            more = min(left, least[dimension] - out[dimension])
            out[dimension] += more
            left -= more


@kernel
def opening(state: State, node: int, not_before: float, each: Ints, terms: Ints, tr: float) -> float:
    """The first instant from which on a node holds a chunk for tr seconds."""
    times, free, length = state.times[node], state.free[node], state.lengths[node]
    capacity = state.capacity[node]
    step = step_at(times, length, not_before)
    while step < length:
        if not has_room(free[step], capacity, each, terms):
            step += 1
            continue
        start = max(times[step], not_before)
        step += 1
        while step < length and times[step] < start + tr:
            if not has_room(free[step], capacity, each, terms):
                break
            step += 1
        if step == length or times[step] >= start + tr:
            return float(start)
    return np.inf


@kernel
def lower(heap: Floats, size: int, value: float) -> None:
    """Put a smaller value in the place of the largest, which is the first, of a heap."""
    place, child = 0, 1
    while child < size:
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= value:
            break
        heap[place] = heap[child]
        place, child = child, 2 * child + 1
    heap[place] = value


@kernel
def on_grid(state: State, time: float) -> int:
    """Place of a time on the grid, never later than the time."""
    return int(min((time - np.floor(state.instants[0])) / GRID, float(LAST_OPENING)))


@kernel
def off_grid(state: State, number: int) -> float:
    return float(np.floor(state.instants[0]) + GRID * number)


@kernel
def find_openings(
    state: State, eligible: Ints, each: Ints, terms: Ints, not_before: float, tr: float
) -> float:
    """Find openings of a shape; returns a time before which not all chunks have room.

    That is the opening of the last of the fewest nodes that hold all chunks. Only nodes that may be among
    the first to open are looked at; the last of the list come first, since jobs take the first.
    """
    fewest, heap, row = terms[FEWEST], state.heap, terms[SHAPE] % state.owner.shape[0]
    openings, all_soonest = state.openings[row], state.soonest[row]
    if fewest > terms[LAST] - terms[FIRST]:
        return np.inf
    heap[:fewest] = np.inf
    for block in range(blocks(terms) - 1, -1, -1):
        if off_grid(state, all_soonest[block]) >= heap[0]:
            continue
        soonest = LAST_OPENING
        first = terms[FIRST] + block * BLOCK
        for place in range(min(first + BLOCK, terms[LAST]) - 1, first - 1, -1):
            node = eligible[place]
            found = max(off_grid(state, openings[node]), not_before)
            if found < heap[0]:
                found = opening(state, node, found, each, terms, tr)
                openings[node] = on_grid(state, found)
                if found < heap[0]:
                    lower(heap, fewest, found)
            soonest = min(soonest, openings[node])
        all_soonest[block] = soonest
    return float(heap[0])


@kernel
def blocks(terms: Ints) -> int:
    """Number of blocks of the list of nodes of an ask."""
    return int((terms[LAST] - terms[FIRST] + BLOCK - 1) // BLOCK)


@kernel
def first_fit(state: State, eligible: Ints, each: Ints, terms: Ints, start: float, tr: float) -> float:
    """Start of a request, after `find_openings`: `start` if all chunks have room from then on for tr, else a
    time before which they have none. It is −∞ (not known) unless no node counts for more than one chunk."""
    left, least, later, row = terms[CHUNKS], state.least, np.inf, terms[SHAPE] % state.owner.shape[0]
    openings, all_soonest, now = state.openings[row], state.soonest[row], on_grid(state, start)
    next_opening = LAST_OPENING + 1
    # A node that has a GPU of some type at each instant need not have the same one all the time.
    single = terms[CHUNKS] == terms[FEWEST] and not terms[ANY_GPUS]
    for block in range(blocks(terms)):
        if all_soonest[block] > now:
            next_opening = min(next_opening, all_soonest[block])
            continue
        soonest = LAST_OPENING
        first = terms[FIRST] + block * BLOCK
        for place in range(first, min(first + BLOCK, terms[LAST])):
            node = eligible[place]
            if openings[node] > now:
                soonest = min(soonest, openings[node])
                next_opening = min(next_opening, openings[node])
                continue
            found = opening(state, node, start, each, terms, tr)
            openings[node] = on_grid(state, found)
            soonest = min(soonest, openings[node])
            if found > start:
                later = min(later, found)
            elif single:
                left -= 1
            else:
                find_least(state, node, start, start + tr, least)
                left -= chunks_on(least, state.capacity[node], each, terms)
            if left <= 0:
                return start
        all_soonest[block] = soonest
    if next_opening <= LAST_OPENING:
        later = min(later, off_grid(state, next_opening))
    return float(later) if single else -np.inf


@kernel
def take(state: State, eligible: Ints, each: Ints, terms: Ints, start: float, end: float) -> int:
    """Hold the first nodes that have room, of those that are open. `FULL`: no row has room for the steps."""
    if state.used[0] + 2 > state.instants.shape[0] or state.used[1] + 2 > state.times.shape[1]:
        return FULL
    left, processors, least, taken = terms[CHUNKS], 0, state.least, state.taken
    latest, count = state.latest, 0
    row, now = terms[SHAPE] % state.owner.shape[0], on_grid(state, start)
    for block in range(blocks(terms)):
        if left <= 0 or state.soonest[row, block] > now:
            continue
        first = terms[FIRST] + block * BLOCK
        for place in range(first, min(first + BLOCK, terms[LAST])):
            node = eligible[place]
            if left <= 0 or state.openings[row, node] > now:
                continue
            find_least(state, node, start, end, least)
            if has_room(least, state.capacity[node], each, terms):
                chunks = min(left, chunks_on(least, state.capacity[node], each, terms))
                taken_by(chunks, least, state.capacity[node], each, terms, taken)
                length = hold(state.times[node], state.free[node], state.lengths[node], start, end, taken)
                state.lengths[node], state.used[1] = length, max(state.used[1], length)
                latest[count, 0] = node
                for dimension in range(taken.shape[0]):
                    latest[count, 1 + dimension] = taken[dimension]
                count += 1
                processors += taken[0]
                left -= chunks
    taken[0], state.used[2] = processors, count
    state.used[0] = hold(state.instants, state.total, state.used[0], start, end, taken[:1])
    return 0


@kernel
def place(state: State, eligible: Ints, each: Ints, terms: Ints, known: Floats, first: int) -> int:
    """`take` for the jobs from `first` on, of which `(start, end)` is known."""
    for job in range(first, known.shape[0]):
        if take(state, eligible, each[job], terms[job], known[job, 0], known[job, 1]) == FULL:
            return job
    return DONE


@kernel
def earliest(state: State, eligible: Ints, each: Ints, terms: Ints, not_before: float, tr: float) -> float:
    """The first start, after `find_openings` for such a job; what all nodes have free rules instants out."""
    processors = terms[CHUNKS] * each[0]
    instants, count = state.instants, state.used[0]
    step = step_at(instants, count, not_before)
    while step < count:
        start = max(instants[step], not_before)
        look = step
        while look < count and (look == step or instants[look] < start + tr):
            if state.total[look, 0] < processors:
                break
            look += 1
        if look < count and (look == step or instants[look] < start + tr):
            step = look + 1
        else:
            fit = first_fit(state, eligible, each, terms, start, tr)
            if fit == start:
                return fit
            step = max(step + 1, step_at(instants, count, fit))
    return np.inf


@kernel
def asks_less(each: Ints, terms: Ints, trs: Floats, one: int, other: int) -> bool:
    """Whether job `one` would start wherever and whenever job `other` does."""
    if trs[one] > trs[other]:
        return False
    for term in (CHUNKS, ANY_GPUS, SCATTER, WHOLE):
        if terms[one, term] > terms[other, term]:
            return False
    among_all = terms[one, FIRST] == 0
    if not among_all and (terms[one, FIRST], terms[one, LAST]) != (terms[other, FIRST], terms[other, LAST]):
        return False
    more = 0
    for dimension in range(each.shape[1]):
        more += each[one, dimension] > each[other, dimension]
    return bool(more == 0)


class Shapes(NamedTuple):
    """The jobs that ask for the same: a long queue has far fewer of them than jobs."""

    example: Ints
    """One of the jobs of each shape."""
    latest: Floats
    """Latest start so far of the jobs of each shape; −∞: none was planned."""


@kernel
def inherit(state: State, each: Ints, terms: Ints, trs: Floats, shapes: Shapes, job: int) -> float:
    """Begin the row of a new shape with the openings of shapes that ask for less, the newest of them; returns
    the latest of all their starts."""
    start, rows, heirs = state.instants[0], state.owner.shape[0], 0
    row = state.openings[terms[job, SHAPE] % rows]
    state.owner[terms[job, SHAPE] % rows] = terms[job, SHAPE]
    row[:] = 0
    state.soonest[terms[job, SHAPE] % rows] = 0
    for shape in range(shapes.latest.shape[0] - 1, -1, -1):
        owned = heirs < INHERITED and state.owner[shape % rows] == shape
        more = shapes.latest[shape] > start or (owned and shapes.latest[shape] > -np.inf)
        if more and asks_less(each, terms, trs, shapes.example[shape], job):
            start = max(start, shapes.latest[shape])
            if owned:
                heirs += 1
                for node in range(row.shape[0]):
                    row[node] = max(row[node], state.openings[shape % rows, node])
    return float(start)


@kernel
def backfill(
    state: State,
    eligible: Ints,
    each: Ints,
    terms: Ints,
    trs: Floats,
    starts: Floats,
    shapes: Shapes,
    first: int,
) -> int:
    """Plan the jobs from `first` on. None starts before an earlier one that asks for less."""
    latest = shapes.latest
    for job in range(first, trs.shape[0]):
        shape = terms[job, SHAPE]
        start = max(latest[shape], state.instants[0])
        if state.owner[shape % state.owner.shape[0]] != shape:
            start = max(start, inherit(state, each, terms, trs, shapes, job))
        if job == first or terms[job - 1, SHAPE] != shape:  # else what is known of the openings still holds
            start = find_openings(state, eligible, each[job], terms[job], start, trs[job])
        if start < np.inf:
            start = earliest(state, eligible, each[job], terms[job], start, trs[job])
        if start < np.inf and take(state, eligible, each[job], terms[job], start, start + trs[job]) == FULL:
            return job
        starts[job] = latest[shape] = start
    return DONE
