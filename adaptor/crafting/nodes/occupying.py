"""Which nodes a request will most likely get, and the plan of the nodes beside it. Pure.

It gets the first ones with room, as schedulers fill them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

import msgspec

from adaptor.crafting.nodes.schedule import NodeSchedule
from adaptor.crafting.nodes.space import GPUS, MEMORY, PROCESSORS, Space, Vector, chunks_on, taken_by
from adaptor.crafting.nodes.timelines import Timeline
from adaptor.resources import Need, Part


def parts_of(plan: NodeSchedule, unit: Need, chunks: int, start: float, end: float) -> tuple[Part, ...]:
    """What so many chunks of `unit` take of each node during [start, end), beside all that is planned.

    Less than all of them where the nodes have no room for more.
    """
    ask = plan.space.of(unit)
    parts: list[Part] = []
    for node in plan.space.lists[ask.among]:
        least = _least(plan, node, start, end)
        capacity = plan.space.capacity[node]
        here = min(chunks, chunks_on(least, capacity, ask))
        if here > 0:
            parts.append(_part(plan.space, node, taken_by(here, least, capacity, ask)))
            chunks -= here
        if chunks <= 0:
            break
    return tuple(parts)


def holding(
    plan: NodeSchedule, parts: Iterable[Part], start: float, end: float, *, freed: bool = False
) -> NodeSchedule:
    """The plan in which these parts are held too during [start, end); those of other nodes do not count.

    `freed`: they are held no longer.
    """
    steps = list(plan.steps)
    for part in parts:
        found = plan.space.held(part)
        if found is not None:
            node, held = found
            line = Timeline.of(*steps[node])
            line.hold(start, end, tuple(-count for count in held) if freed else held)
            line.clamp()
            if freed:  # where the holds exceeded the node
                line.free = [tuple(map(min, step, plan.space.capacity[node])) for step in line.free]
            steps[node] = (line.times, line.free)
    return msgspec.structs.replace(plan, steps=steps)


def _least(plan: NodeSchedule, node: int, start: float, end: float) -> Vector:
    """By dimension, the least that is free on a node at any instant of [start, end)."""
    times, free = plan.steps[node]
    first = max(0, bisect_right(times, start) - 1)
    return tuple(map(min, zip(*free[first : bisect_left(times, end, first + 1)], strict=True)))


def _part(space: Space, node: int, taken: Vector) -> Part:
    there = space.nodes[node]
    gpus = zip(space.types, taken[GPUS:], strict=True)
    return Part(
        node=there.name,
        processors=taken[PROCESSORS],
        memory=0 if there.memory is None else taken[MEMORY],
        gpus=tuple((type, count) for type, count in gpus if count),
    )
