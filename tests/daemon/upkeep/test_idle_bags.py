from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from adaptor.daemon.upkeep.idle_bags import IdleBags


def bag(
    number: int = 1, *, total: int = 3, unfinished: int = 0, open: bool = True, idle: float = 10.0
) -> Any:
    return SimpleNamespace(
        id=number, total=total, unfinished=unfinished, open=open, spec=SimpleNamespace(close_idle=idle)
    )


def test_a_bag_closes_once_it_has_been_idle_for_long_enough() -> None:
    idle = IdleBags()
    assert idle.due([bag()], 100.0) == []
    assert idle.due([bag()], 109.0) == []
    assert idle.due([bag()], 110.0) == [1]


def test_new_and_unfinished_tasks_begin_the_time_anew() -> None:
    idle = IdleBags()
    idle.due([bag()], 100.0)
    assert idle.due([bag(total=4)], 111.0) == [], "one came and went between two looks"
    assert idle.due([bag(total=4, unfinished=1)], 122.0) == []
    assert idle.due([bag(total=4)], 133.0) == []
    assert idle.due([bag(total=4)], 143.0) == [1]


def test_the_bag_of_a_program_that_follows_it_stays_open() -> None:
    idle = IdleBags()
    assert idle.due([bag()], 100.0, {1}) == []
    assert idle.due([bag()], 111.0, {1}) == []
    assert idle.due([bag()], 112.0, {2}) == [], "it has gone"
    assert idle.due([bag()], 122.0, {2}) == [1]


def test_other_bags_stay_as_they_are() -> None:
    idle = IdleBags()
    others = [bag(1, idle=0.0), bag(2, open=False)]
    assert idle.due(others, 100.0) == []
    assert idle.due(others, 1000.0) == []
