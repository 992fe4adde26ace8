"""Prices, charging units and budgets of sites, and what is wrong with them."""

from __future__ import annotations

import pytest

from adaptor.budget.accounting.entries import Budget
from adaptor.budget.accounting.periods import Calendar
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.config.loading import parse_config
from adaptor.daemon.treasury import costs_of
from adaptor.errors import ConfigError

SITE = "sites:\n  a:\n    backend: slurm\n"


def test_a_credit_is_a_processor_hour_by_default() -> None:
    costs = costs_of(parse_config(SITE, "f").sites)["a"]
    assert costs.tariff.price_explicit == costs.tariff.price_donated == 1
    assert costs.tariff.charge("explicit", 1, 3600) == 1_000_000
    assert costs.budget is None


def test_all_that_can_be_said() -> None:
    text = SITE + (
        "    price: {explicit: 2, donated: 0.5}\n    charging_unit: 10m\n    overrun: 1m\n"
        "    budget: {credits: 5000, period: month, zone: Europe/Lisbon}\n"
    )
    costs = costs_of(parse_config(text, "f").sites)["a"]
    assert costs.tariff == Tariff(price_explicit=2, price_donated=0.5, charging_unit=600, grace=60)
    assert costs.budget == Budget(amount=5_000_000_000, site="a", calendar=Calendar("month", "Europe/Lisbon"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "price: {explicit: 0}",
            r"f:4: sites.a.price.explicit: must be from 0.000001 to 1000000000, not 0",
        ),
        ("price: {explicit: -1}", "price.explicit: must be from 0.000001"),
        ("price: {explicit: .nan}", "price.explicit: must be from 0.000001"),
        ("price: {donated: 2}", "price.donated: 2 is more than explicit"),
        ("price: {explicitt: 2}", "did you mean `explicit`"),
        ("charging_unit: 2h", "charging_unit: must be whole seconds from 1s to 1h, not 2h"),
        ("charging_unit: 0", "charging_unit: must be whole seconds"),
        ("budget: {credits: 0}", "budget.credits: must be from 0.000001"),
        ("budget: {}", "missing required field `credits`"),
        ("budget: {credits: 1, period: fortnight}", "budget.period"),
        ("budget: {credits: 1, period: day, zone: Europe/Nowhere}", "budget.zone: time zone"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(line: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_config(f"{SITE}    {line}\n", "f")
