"""Where things lie in the pictures: pilots beside the jobs of others, attempts in lanes. Pure."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import msgspec


class Box(msgspec.Struct, frozen=True):
    """Something that holds `p` processors from `start` to `end`."""

    id: int
    start: float
    end: float
    p: int


class Placed(msgspec.Struct, frozen=True):
    box: Box
    bottom: int
    fits: bool


def place(boxes: Iterable[Box], held: Sequence[tuple[float, int]], processors: int) -> list[Placed]:
    """The boxes hung from the upper edge, beside each other and above what others hold.

    Which order leaves no box without room is not known beforehand, so a few are tried, and that with the
    fewest such boxes is taken. They are at the upper edge, over other boxes.

    Args:
        held: `(time, processors from then on)` of others, in order of time; they are drawn from 0 upwards.
        processors: the height of the picture.
    """
    given = list(boxes)
    times = [time for time, _ in held]
    orders = (
        sorted(given, key=lambda box: (box.start, -box.p, box.id)),
        sorted(given, key=lambda box: (box.start - box.end, box.id)),
        sorted(given, key=lambda box: (-box.p, box.id)),
        sorted(given, key=lambda box: (-box.end, box.id)),
    )
    best: list[Placed] = []
    for number, order in enumerate(orders):
        placed = _hung(order, times, held, processors)
        if not number or _misfits(placed) < _misfits(best):
            best = placed
        if not _misfits(best):
            break
    return best


def _misfits(placed: Sequence[Placed]) -> int:
    return sum(not each.fits for each in placed)


def _hung(
    order: Sequence[Box], times: Sequence[float], held: Sequence[tuple[float, int]], processors: int
) -> list[Placed]:
    """Each box as high as the ones before it let it be."""
    placed: list[Placed] = []
    for box in order:
        base = _most(times, held, box.start, box.end)
        beside = [each for each in placed if each.box.start < box.end and box.start < each.box.end]
        bottom = _highest(box.p, beside, processors)
        fits = bottom >= base
        placed.append(Placed(box, bottom if fits else max(0, processors - box.p), fits))
    return placed


def _highest(p: int, beside: Sequence[Placed], processors: int) -> int:
    """The highest bottom at which a box overlaps no other; negative: there is no room at all."""
    for top in sorted({processors, *(each.bottom for each in beside)}, reverse=True):
        bottom = top - p
        if all(top <= each.bottom or each.bottom + each.box.p <= bottom for each in beside):
            return bottom
    return -1


def _most(times: Sequence[float], held: Sequence[tuple[float, int]], start: float, end: float) -> int:
    """The most that is held at any instant of [start, end)."""
    first = max(0, bisect_right(times, start) - 1)
    last = bisect_left(times, end, first)
    return max((count for _, count in held[first:last]), default=0)


def lanes(spans: Iterable[tuple[float, float, int]]) -> list[int]:
    """By span `(start, end, processors)` in order of start: the lowest lane from which on so many are free.

    A span of several processors takes neighbouring lanes.
    """
    found: list[int] = []
    free: list[int] = []
    busy: list[tuple[float, list[int]]] = []
    top = 0
    for start, end, processors in spans:
        while busy and busy[0][0] <= start:
            free.extend(heapq.heappop(busy)[1])
        free.sort()
        lane = _neighbours(free, processors)
        if lane is None:
            lane, top = top, top + processors
        else:
            free = [each for each in free if not lane <= each < lane + processors]
        found.append(lane)
        heapq.heappush(busy, (end, list(range(lane, lane + processors))))
    return found


def _neighbours(free: Sequence[int], count: int) -> int | None:
    """The lowest of so many neighbouring numbers; None: there are none."""
    for at in range(len(free) - count + 1):
        if free[at + count - 1] - free[at] == count - 1:
            return free[at]
    return None
