"""Options that would have been better for a bag, computed from what was measured. Pure.

A claim about free slots is a count on the queue as it was last read: the tasks that could start at once.
Options that would not have made it larger are not advised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from adaptor.api import MeasuredView
from adaptor.crafting.availability import Availability
from adaptor.crafting.fits import RequestShape
from adaptor.crafting.situation import Demand, SiteRules
from adaptor.model import QueueState
from adaptor.resources import TaskSize
from adaptor.units import format_clock, format_duration, format_size

FEWEST = 5  # results from which anything is concluded
_WORTH = 1.5  # the request must be this multiple of what is enough
_MARGIN = 1.25  # on top of the largest that was measured
_LONG = 4  # a first request longer than this multiple of its longest task was a guess in the dark
_SHORT = 5.0  # seconds of tasks whose starts may take more than they do
_LOST = 0.3  # share of the paid time that is worth a word


class SeenQueue(msgspec.Struct, frozen=True):
    """The queue of a site as it was last read, and how requests are shaped there."""

    rules: SiteRules
    queue: QueueState

    def startable(self, task: TaskSize, seconds: float) -> int:
        """Tasks of this size that could start now and run for that time."""
        shape = RequestShape.for_demand(self.rules, self.queue, Demand(runtime=seconds, task=task))
        free = Availability(self.queue).profile(shape.chunk)
        now = self.queue.now
        return shape.slots(shape.fit(free.minimum(now, now + seconds)))


def advise(seen: MeasuredView, queues: Sequence[SeenQueue]) -> list[str]:
    """Sentences, the most useful first; empty where what was asked fits what was used.

    Args:
        queues: of the sites that may run the bag, as far as they are known; it may take seconds to plan them.
    """
    if seen.done < FEWEST:
        return []
    found = [_memory(seen, queues), _processors(seen, queues), _time(seen, queues), _starts(seen)]
    return [each for each in found if each]


def _memory(seen: MeasuredView, queues: Sequence[SeenQueue]) -> str:
    asked, enough = seen.task.memory, round_size(seen.memory * _MARGIN)
    if not asked or not seen.memory or enough * _WORTH > asked:
        return ""
    told = f"asked {format_size(asked)} of memory, used at most {format_size(seen.memory)}"
    smaller = msgspec.structs.replace(seen.task, memory=enough)
    return _with_slots(seen, queues, told, f"`--mem {format_size(enough)}`", smaller)


def _processors(seen: MeasuredView, queues: Sequence[SeenQueue]) -> str:
    asked, used = seen.task.processors, seen.cpu / seen.wall if seen.wall else 0.0
    enough = max(1, math.ceil(used * 1.1))
    if seen.task.nodes > 1 or not used or enough * _WORTH > asked:
        return ""
    told = f"asked {asked} processors for each task, used {used:.1f} on average"
    smaller = msgspec.structs.replace(seen.task, processors=enough)
    return _with_slots(seen, queues, told, f"`--cpus {enough}`", smaller)


def _with_slots(
    seen: MeasuredView, queues: Sequence[SeenQueue], told: str, option: str, smaller: TaskSize
) -> str:
    mean = seen.wall / seen.done
    before = sum(each.startable(seen.task, mean) for each in queues)
    after = sum(each.startable(smaller, mean) for each in queues)
    if not queues:
        return f"{told}: {option} is enough"
    if after <= before:
        return ""
    return f"{told}: {option} would have found {_more(before, after)} ({_when(queues)})"


def _time(seen: MeasuredView, queues: Sequence[SeenQueue]) -> str:
    enough = round_time(seen.longest * _MARGIN)
    if seen.first_tr is None or seen.first_tr < _LONG * enough:
        return ""
    mean, longest = format_duration(seen.wall / seen.done), format_duration(seen.longest)
    told = (
        f"tasks take {mean}, at most {longest}; as nothing was known of them, the first request asked for "
        f"{format_duration(seen.first_tr)}"
    )
    before = sum(each.startable(seen.task, seen.first_tr) for each in queues)
    after = sum(each.startable(seen.task, enough) for each in queues)
    if queues and after <= before:
        return ""
    option = f"`--time {format_duration(enough)}`"
    if not queues:
        return f"{told}: say {option}"
    return f"{told}: {option} would have found {_more(before, after)} ({_when(queues)})"


def _starts(seen: MeasuredView) -> str:
    mean, lost = seen.wall / seen.done, 1 - seen.used / seen.paid if seen.paid else 0.0
    if mean >= _SHORT or lost < _LOST:
        return ""
    return (
        f"tasks take {format_duration(mean)}, and {100 * lost:.0f} % of the paid time passed outside of them:"
        " several commands in one task need fewer starts"
    )


def _more(before: int, after: int) -> str:
    if not before:
        return f"{after:,} free slots instead of none"
    return f"{after / before:.2g} × as many free slots: {after:,} instead of {before:,}"


def _when(queues: Sequence[SeenQueue]) -> str:
    return f"in the queue of {format_clock(max(each.queue.now for each in queues))}"


def round_size(size: float) -> int:
    """The next of 64M, 96M, 128M, 192M, 256M, …, in bytes."""
    step = 64 << 20
    while step < size:
        if step * 1.5 >= size:
            return step * 3 // 2
        step *= 2
    return step


def round_time(seconds: float) -> float:
    """The next whole minute, from ten minutes on the next five, from an hour on the next quarter."""
    step = 60 if seconds <= 600 else 300 if seconds <= 3600 else 900
    return float(math.ceil(seconds / step) * step)
