"""When a promise counts as not kept."""

from __future__ import annotations

import msgspec
import pytest

from adaptor_experiments.forecasts.coverage import coverage, promises
from adaptor_experiments.forecasts.paid_bags import MOMENTS
from adaptor_experiments.forecasts.row import Row


def rows(bag, orders, missed):
    """Forecasts at three moments; in the first orders none of them holds the cost."""
    return [
        Row(
            where="cheap, 1m", bag=bag, number=order, tasks=9, at=1.0, moment=moment, cost=1.0,
            cost_low=2.0 if order < missed else 0.5, cost_value=1.0, cost_high=2.0,
            end=10.0, end_low=5.0, end_value=10.0, end_high=15.0,
        )
        for order in range(orders)
        for moment in MOMENTS
    ]  # fmt: skip


def verdicts(orders, missed):
    found = promises(rows("sorted", orders, missed) + rows("normal", orders, 0))
    return [each.verdict for each in found]


def test_few_orders_are_no_reason_to_cry_wolf():
    assert verdicts(2, 0) == ["kept", "kept"]
    assert verdicts(2, 1) == ["open", "kept"]
    assert verdicts(10, 3) == ["open", "kept"]


def test_what_chance_does_not_explain_is_not_kept():
    assert verdicts(10, 9) == ["NOT KEPT", "kept"]
    assert verdicts(40, 16) == ["NOT KEPT", "kept"]


def test_the_worst_kind_is_named_with_its_interval():
    cost, end = promises(rows("sorted", 10, 3) + rows("normal", 10, 0))
    assert "85.0% of all, the least 70.0% [33%, 92%] (sorted); median width" in str(cost)
    assert "100.0% of all" in str(end)
    assert str(end).endswith("width 100% of the end")


def test_of_a_sorted_bag_in_the_order_of_its_file_nothing_is_promised():
    found = promises(rows("sorted-file", 40, 40) + rows("normal", 40, 0))
    assert [each.verdict for each in found] == ["kept", "kept"]
    assert "100.0% of all" in str(found[0])
    assert promises(rows("sorted-file", 40, 40)) == []


def test_the_width_is_a_share_of_what_came():
    some = rows("normal", 10, 1)
    cost, end = (coverage(some, what) for what in ("cost", "end"))
    assert cost.width == pytest.approx(1.5)
    assert end.width == end.wide == pytest.approx(1.0)
    assert cost.share.value == pytest.approx(0.9)


def test_the_wide_ones_are_told():
    some = rows("normal", 10, 0)
    wide = [msgspec.structs.replace(row, cost_high=8.5) for row in some[:6]]
    found = coverage(wide + some[6:], "cost")
    assert (found.width, found.wide) == (pytest.approx(1.5), pytest.approx(8.0))
