"""In which order the demands of a site get their requests. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from adaptor.crafting.situation import Demand


def turns(
    demands: Sequence[Demand], uncovered: Sequence[int], served: Collection[int]
) -> Iterator[tuple[int, int]]:
    """Those to be served by priority, then by their uncovered share, the largest first.

    Each demand of a priority gets an equal part of the requests that are still allowed, so every one of them
    gets its first request before another one gets its second. Requests that one demand leaves go to the next.

    Args:
        uncovered: by demand, waiting tasks that no pilot covers.
        served: places of those with waiting tasks that get a turn.

    Yields:
        The place of a demand, and among how many, itself included, the requests that are left are divided.
    """
    order = sorted(
        served, key=lambda index: (-demands[index].priority, -uncovered[index] / demands[index].waiting)
    )
    for turn, index in enumerate(order):
        yield index, sum(demands[other].priority == demands[index].priority for other in order[turn:])
