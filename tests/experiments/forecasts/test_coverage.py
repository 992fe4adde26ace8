"""When a promise counts as not kept."""

from __future__ import annotations

import pytest

from adaptor.experiments.forecasts import coverage
from adaptor.experiments.forecasts.coverage import promises
from adaptor.experiments.forecasts.design import IMAGE, MOMENTS, NORMAL, Row


@pytest.fixture(autouse=True)
def two_kinds(monkeypatch):
    monkeypatch.setattr(coverage, "BAGS", (IMAGE, NORMAL))


def rows(kind, orders, missed):
    """Forecasts at three moments; in the first orders none of them holds the cost."""
    return [
        Row(
            bag=kind.key, prefer="cheap", unit=60, order=order, moment=moment, cost=1.0,
            cost_low=2.0 if order < missed else 0.5, cost_value=1.0, cost_high=2.0,
            end=10.0, end_low=5.0, end_value=10.0, end_high=15.0,
        )
        for order in range(orders)
        for moment in MOMENTS
    ]  # fmt: skip


def verdicts(orders, missed):
    found = promises(rows(IMAGE, orders, missed) + rows(NORMAL, orders, 0))
    return [each.verdict for each in found]


def test_few_orders_are_no_reason_to_cry_wolf():
    assert verdicts(2, 0) == ["kept", "kept"]
    assert verdicts(2, 1) == ["open", "kept"]
    assert verdicts(10, 3) == ["open", "kept"]


def test_what_chance_does_not_explain_is_not_kept():
    assert verdicts(10, 9) == ["NOT KEPT", "kept"]
    assert verdicts(40, 16) == ["NOT KEPT", "kept"]


def test_the_worst_kind_is_named_with_its_interval():
    cost, end = promises(rows(IMAGE, 10, 3) + rows(NORMAL, 10, 0))
    assert cost.found.startswith("85.0% of all, the least 70.0% [36%, 91%] (image rendering); median width")
    assert "100.0% of all" in end.found
    assert end.found.endswith("width 100% of the end")
