"""One bag in memory."""

from __future__ import annotations

import msgspec
import pytest

from adaptor.bag_spec import BagSpec
from adaptor.scheduling.bag import Bag

SPEC = BagSpec(name="b", cwd="/", output="/o", environment={})


def bag(tasks: int, **options: object) -> Bag:
    spec = BagSpec(name="b", cwd="/", output="/out", environment={}, **options)  # type: ignore[arg-type]
    return Bag(1, spec, tasks)


def test_a_task_may_have_more_attempts_than_fit_into_16_bits() -> None:
    made = bag(1)
    made.restore([(0, "waiting", 65_535, 0)])
    made.fill()
    made.lines.of(0).take(0)
    assert made.lease(0) == made.attempts(0) == 65_536
    other = bag(1)
    other.restore([(0, "waiting", 65_536, 0)])
    assert other.attempts(0) == 65_536


def test_a_random_order_is_the_same_after_a_restart() -> None:
    spec = msgspec.structs.replace(SPEC, order="random")
    bag, again = Bag(7, spec, 100), Bag(7, spec, 100)
    bag.fill()
    assert sorted(bag.waiting) == list(range(100))
    assert list(bag.waiting) != list(range(100))
    done = set(list(bag.waiting)[:40])
    again.restore((task, "done" if task in done else "waiting", 1, 0) for task in range(100))
    again.fill()
    assert list(again.waiting) == list(bag.waiting)[40:]


def test_two_bags_have_two_orders() -> None:
    spec = msgspec.structs.replace(SPEC, order="random")
    one, other = Bag(1, spec, 100), Bag(2, spec, 100)
    one.fill()
    other.fill()
    assert list(one.waiting) != list(other.waiting)


@pytest.mark.parametrize(
    ("wishes", "budget", "order"),
    [
        ({}, False, "file"),
        ({}, True, "random"),
        ({"prefer": "cheap"}, False, "random"),
        ({"deadline": 1e9}, False, "random"),
        ({"prefer": "cheap", "order": "file"}, True, "file"),
        ({"order": "random"}, False, "random"),
    ],
)
def test_a_bag_that_is_forecast_runs_in_random_order(
    wishes: dict[str, object], budget: bool, order: str
) -> None:
    assert msgspec.structs.replace(SPEC, **wishes).with_order(budget=budget).order == order
