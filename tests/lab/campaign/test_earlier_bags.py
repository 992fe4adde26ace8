"""What stands for a bag in a trace, and how far the next one is from it."""

from __future__ import annotations

import pytest

from adaptor_simulation.traces.swf_read import parse_trace
from lab.campaign.earlier_bags import KEYS, bags_of, foretold

DAY = 86_400


def jobs(first: int, runtimes: list[int], user: int = 1, program: int = 7, status: int = 1) -> list[str]:
    """Jobs of one bag, a minute apart, each of which starts at once."""
    return [
        f"1 {first + 60 * place} 0 {run} 4 -1 -1 4 3600 -1 {status} {user} 1 {program} -1 -1 -1 -1"
        for place, run in enumerate(runtimes)
    ]


def test_the_next_bag_of_a_kind_is_held_against_the_earlier_ones() -> None:
    lines = [
        *jobs(0, [100, 100, 100]),
        *jobs(DAY, [400, 400, 400]),
        *jobs(2 * DAY, [50, 50, 50], program=8),
        *jobs(3 * DAY, [10, 10]),
        *jobs(4 * DAY, [10, 10, 10], status=0),
    ]
    trace = parse_trace("\n".join(lines).encode(), "trace")
    bags = bags_of(trace, KEYS["user, executable"])
    assert [bag.runtimes for bag in bags] == [[100.0] * 3, [400.0] * 3, [50.0] * 3]
    (found,) = foretold(bags)
    assert (found.before, found.error, found.earlier.mean) == (1, pytest.approx(4.0), pytest.approx(100.0))
    assert len(list(foretold(bags_of(trace, KEYS["user"])))) == 2


def test_a_bag_that_has_not_ended_says_nothing_yet() -> None:
    trace = parse_trace("\n".join([*jobs(0, [DAY] * 3), *jobs(DAY // 2, [60] * 3)]).encode(), "trace")
    assert list(foretold(bags_of(trace, KEYS["user"]))) == []
