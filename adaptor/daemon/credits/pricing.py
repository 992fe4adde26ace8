"""From a site's configuration to what its time costs and what may be spent there."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from adaptor.budget.accounting.credits import millionths
from adaptor.budget.accounting.entries import Budget
from adaptor.budget.accounting.periods import Calendar
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.config.schema import SiteConfig
from backends.registry import backend_type


class Costs(msgspec.Struct, frozen=True):
    """Of one site."""

    tariff: Tariff
    budget: Budget | None = None


DEFAULT = Costs(Tariff(price_explicit=1.0, price_donated=1.0))
"""A credit is a processor-hour."""


def costs_of(configs: Mapping[str, SiteConfig]) -> dict[str, Costs]:
    return {name: Costs(_tariff(config), _budget(name, config)) for name, config in configs.items()}


def _tariff(config: SiteConfig) -> Tariff:
    price = config.price
    return Tariff(
        price_explicit=price.explicit,
        price_donated=price.explicit if price.donated is None else price.donated,
        price_gpu=price.gpu or 0.0,
        charging_unit=int(config.charging_unit),
        grace=math.ceil(_overrun(config)),
    )


def _overrun(config: SiteConfig) -> float:
    """Seconds that a pilot may run beyond its limit."""
    if config.overrun is not None:
        return float(config.overrun)
    return backend_type(config.backend).overrun(config)


def _budget(name: str, config: SiteConfig) -> Budget | None:
    given = config.budget
    if given is None:
        return None
    calendar = Calendar(given.period, given.zone) if given.period else None
    return Budget(amount=millionths(given.credits, "credits"), site=name, calendar=calendar)
