"""The pictures of the page as geometry: queues with the pilots in their holes, and strips inside pilots."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from adaptor import api
from adaptor.api import AttemptSpan, AttemptUse, QueuePicture
from adaptor.dashboard.page import PilotBox, SitePicture, Strip


def place(boxes: Iterable[PilotBox], held: Sequence[tuple[float, int]], processors: int) -> list[PilotBox]:
    """The boxes hung from the upper edge, next to each other and above what others hold.

    Which order leaves no box without room is not known beforehand, so a few are tried, and that with the
    fewest such boxes is taken. They are at the upper edge, over other boxes.

    Args:
        held: `(time, processors from then on)` of others, in order of time; they are drawn from 0 upwards.
        processors: the height of the picture.
    """
    given = list(boxes)
    times = [time for time, _ in held]
    orders = (
        sorted(given, key=lambda box: (box.start, -box.p, box.pilot)),
        sorted(given, key=lambda box: (box.start - box.end, box.pilot)),
        sorted(given, key=lambda box: (-box.p, box.pilot)),
        sorted(given, key=lambda box: (-box.end, box.pilot)),
    )
    best: list[PilotBox] = []
    for number, order in enumerate(orders):
        placed = _hung(order, times, held, processors)
        if not number or _misfits(placed) < _misfits(best):
            best = placed
        if not _misfits(best):
            break
    return best


def _misfits(placed: Sequence[PilotBox]) -> int:
    return sum(not each.fits for each in placed)


def _hung(
    order: Sequence[PilotBox], times: Sequence[float], held: Sequence[tuple[float, int]], processors: int
) -> list[PilotBox]:
    """Boxes, each as high as the ones before it allow."""
    placed: list[PilotBox] = []
    for box in order:
        first = max(0, bisect_right(times, box.start) - 1)
        last = bisect_left(times, box.end, first)
        base = max((count for _, count in held[first:last]), default=0)
        beside = [each for each in placed if each.start < box.end and box.start < each.end]
        bottom = _highest(box.p, beside, processors)
        fits = bottom >= base
        bottom = bottom if fits else max(0, processors - box.p)
        placed.append(msgspec.structs.replace(box, bottom=bottom, fits=fits))
    return placed


def _highest(p: int, beside: Sequence[PilotBox], processors: int) -> int:
    """The highest bottom at which a box overlaps no other; negative: there is no room at all."""
    for top in sorted({processors, *(each.bottom for each in beside)}, reverse=True):
        bottom = top - p
        if all(top <= each.bottom or each.bottom + each.p <= bottom for each in beside):
            return bottom
    return -1


def lanes(spans: Iterable[tuple[float, float, int]]) -> list[int]:
    """Lowest lane with enough free lanes above, for each span `(start, end, processors)` in order of start.

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
    """The first of `count` consecutive numbers in `free`; None: there are none."""
    for at in range(len(free) - count + 1):
        if free[at + count - 1] - free[at] == count - 1:
            return free[at]
    return None


PAST = 3600.0  # seconds of the past that are drawn at most
LEAST_AHEAD, MOST_AHEAD = 1800.0, 2 * 86400.0
"""Seconds of the future that are drawn at least, and at most beyond the own pilots."""
_MOST_NOTED = 400


class PastUse:
    """Processors of others at the looks that this page has seen; the daemon keeps only the last one."""

    def __init__(self) -> None:
        self._noted: dict[str, list[tuple[float, int]]] = defaultdict(list)

    def note(self, queue: QueuePicture) -> None:
        noted = self._noted[queue.place]
        if queue.observed is None or not queue.steps or (noted and noted[-1][0] >= queue.observed):
            return
        running = queue.steps[0].running
        if len(noted) > 1 and noted[-1][1] == noted[-2][1] == running:
            noted.pop()  # without a change, the first and the last look are enough
        noted.append((queue.observed, running))
        del noted[:-_MOST_NOTED]

    def since(self, place: str, begin: float) -> list[tuple[float, int]]:
        return [(time, held) for time, held in self._noted[place] if time >= begin]


def site_pictures(
    queues: Iterable[QueuePicture],
    past: PastUse,
    pilots: Sequence[api.PilotRecord],
    sites: Sequence[api.SiteView],
    now: float,
) -> list[SitePicture]:
    late = {site.name: max(0.0, site.late or 0.0) for site in sites}
    queues = list(queues)
    first = {queue.site: queue.partition for queue in reversed(queues)}
    there: dict[tuple[str, str], list[api.PilotRecord]] = defaultdict(list)
    for pilot in pilots:  # pilots on donated nodes name no partition
        there[pilot.site, pilot.partition or first.get(pilot.site, "")].append(pilot)
    return [
        _site_picture(
            queue,
            past.since(queue.place, now - PAST),
            there[queue.site, queue.partition],
            late.get(queue.site, 0.0),
            now,
        )
        for queue in queues
    ]


def _site_picture(
    queue: QueuePicture,
    past: list[tuple[float, int]],
    pilots: Sequence[api.PilotRecord],
    late: float,
    now: float,
) -> SitePicture:
    starts = {own.pilot: own.start for own in queue.starts}
    held = [*past[:-1], *((step.time, step.running + step.planned) for step in queue.steps)]
    drawn = [(pilot, span) for pilot in pilots if (span := _times(pilot, starts, now)) is not None]
    boxes = [
        PilotBox(
            pilot=pilot.id,
            start=start,
            end=end,
            p=pilot.holds,
            state=pilot.state,
            latest=start + late if late and pilot.started is None else None,
            used=pilot.used,
            wasted=pilot.wasted,
        )
        for pilot, (start, end) in drawn
    ]
    begin = max(now - PAST, min([now - 120, *(box.start for box in boxes if box.start < now)]))
    placed = place(boxes, held, queue.processors or max((box.p for box in boxes), default=1))
    own = max([box.end for box in boxes], default=now)
    last = queue.steps[-1].time if queue.steps else now
    ahead = max(LEAST_AHEAD, min(last, now + MOST_AHEAD) - now, own - now)
    return SitePicture(
        site=queue.place,
        observed=queue.observed,
        processors=queue.processors,
        begin=begin,
        end=now + 1.08 * ahead,
        past=past,
        steps=queue.steps,
        boxes=[each for each in placed if each.end > begin],
    )


def _times(pilot: api.PilotRecord, starts: Mapping[int, float], now: float) -> tuple[float, float] | None:
    """Begin and end of the time in which a pilot holds its processors; None: never, or not known."""
    if pilot.started is not None:
        end = pilot.ended if pilot.ended is not None else pilot.started + pilot.tr
        return pilot.started, max(end, pilot.started + 1)
    if pilot.ended is not None or pilot.state not in ("queued", "submitting"):
        return None
    start = starts.get(pilot.id, pilot.expected)
    return None if start is None else (max(start, now), max(start, now) + pilot.tr)


def strips(
    activity: api.Activity, running: Sequence[AttemptSpan], pilots: Sequence[api.PilotRecord]
) -> list[Strip]:
    """One for each pilot that has started, the newest first."""
    spans: dict[int, list[AttemptSpan]] = defaultdict(list)
    for span in (*activity.spans, *running):
        spans[span.pilot].append(span)
    busy: dict[int, list[tuple[AttemptUse, float, float, list[float]]]] = defaultdict(list)
    for known in activity.busy:
        busy[known.pilot].append((known.use, known.begin, known.width, known.processors))
    started = [pilot.id for pilot in pilots if pilot.started is not None]
    return [
        Strip(pilot=id, spans=_in_lanes(spans[id]), busy=busy[id]) for id in sorted(started, reverse=True)
    ]


def _in_lanes(
    spans: Sequence[AttemptSpan],
) -> list[tuple[int, int, float, float | None, AttemptUse, int, int]]:
    ordered = sorted(spans, key=lambda span: (span.started, span.bag, span.task))
    found = lanes(
        (span.started, math.inf if span.ended is None else span.ended, span.processors) for span in ordered
    )
    return [
        (lane, span.processors, span.started, span.ended, span.use, span.bag, span.task)
        for lane, span in zip(found, ordered, strict=True)
    ]
