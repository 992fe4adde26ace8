"""The processors that are free now, by how long they stay free. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from adaptor.crafting.profile import Profile


class Hole(msgspec.Struct, frozen=True):
    """Processors that are free now."""

    processors: int
    duration: float
    """Seconds until others need them; may be `math.inf`."""


def holes(profile: Profile, now: float) -> list[Hole]:
    """Processors that are free now, the longest first: each processor once, until another job needs it.

    The holes are the area below the profile as far as it only falls; where it rises again, later jobs begin.
    """
    steps = [(time, free) for time, free in profile.steps()]
    least, found = profile.free_at(now), list[Hole]()
    for time, free in steps:
        if time > now and free < least:
            found.append(Hole(least - free, time - now))
            least = free
    if least:
        found.append(Hole(least, math.inf))
    return found[::-1]


def merged(found: Sequence[Hole], most: int, longest: float) -> list[Hole]:
    """At most `most` classes of holes: those whose lengths differ least become one, of the shorter length.

    Args:
        longest: seconds beyond which the length makes no difference.
    """
    classes = list(found)
    while len(classes) > max(1, most):
        losses = [
            long.processors * (min(long.duration, longest) - min(short.duration, longest))
            for long, short in pairwise(classes)
        ]
        first = losses.index(min(losses))
        long, short = classes[first : first + 2]
        classes[first : first + 2] = [Hole(long.processors + short.processors, short.duration)]
    return classes
