"""Hours of the day."""

from __future__ import annotations

import math
from collections.abc import Sequence

from adaptor.donation.situation import Hours

DAY = 86400.0


def closes(hours: Sequence[Hours], now: float, midnight: float) -> float:
    """Until when nodes may be used from `now` on: `math.inf` where always, `now` where they may not."""
    if not hours:
        return math.inf
    end = now
    for _ in range(len(hours) + 1):  # parts that touch are one
        longer = max((_end(part, end, midnight) for part in hours), default=end)
        if longer <= end:
            return end
        if longer - now >= DAY:
            return math.inf
        end = longer
    return end


def _end(part: Hours, at: float, midnight: float) -> float:
    """When the part of the day in which `at` lies is over; `at` where it does not lie in it."""
    into = round(at - midnight - part.begin, 3) % DAY  # the end of one part is the begin of the next
    length = (part.end - part.begin) % DAY or DAY
    return at - into + length if into < length else at
