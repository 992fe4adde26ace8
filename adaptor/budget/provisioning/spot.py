"""Preemptible capacity at a price of its own: up to which price it pays (BaTS on the spot market)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from adaptor.budget.errors import BudgetError
from adaptor.budget.provisioning.offers import SiteOffer

Bidding = Literal["maximum", "current", "average"]


def break_even(preemptible: SiteOffer, others: Sequence[SiteOffer], less: float = 0.0) -> float:
    """The price up to which preemptible time is more cost-efficient than the best of the others.

    Max_i = T_p / T_i × c_p - ε (slide "Bidding Strategies"), in credits per processor-hour; p is the
    most profitable of the others and T are the times of a task. The useful share of each charging unit
    after the start-up counts too.

    Raises:
        BudgetError: there is no other to compare with.
    """
    if not others:
        raise BudgetError("nothing to compare preemptible time with: no site takes formal requests")
    best = min(others, key=effective_price)
    return effective_price(best) / _seconds_per_task(preemptible) - less


def effective_price(offer: SiteOffer) -> float:
    """Credits per processor-hour × seconds per task: the least is the most profitable."""
    return offer.price * _seconds_per_task(offer)


def _seconds_per_task(offer: SiteOffer) -> float:
    """The start-up is lost once in each unit, or with each task where units are shorter."""
    span = max(offer.charging_unit, offer.startup + offer.task.mean)
    return offer.task.mean * span / (span - offer.startup)


def bid(strategy: Bidding, current: float, highest: float) -> float | None:
    """The price to offer, in credits per processor-hour; None: preemptible time does not pay now.

    `highest` is the break-even. What is bid is kept; beyond it the time is taken from us.
    """
    if current > highest:
        return None
    return {"maximum": highest, "current": current, "average": (current + highest) / 2}[strategy]


def with_preemptible(
    offers: Sequence[SiteOffer], preemptible: Sequence[SiteOffer], lost: float = 0.0
) -> list[SiteOffer]:
    """The offers and those of the preemptible ones that pay, at their own price.

    `lost` is the share of preemptible time that is expected to be taken back before its tasks have
    ended; it makes each task there so much longer.

    Raises:
        BudgetError: a share that cannot be.
    """
    if not 0 <= lost < 1:
        raise BudgetError(f"the share of time that is taken back must be from 0 to below 1, not {lost:g}")
    real = [_with_loss(each, lost) for each in preemptible]
    return [*offers, *(each for each in real if each.price <= break_even(each, offers))]


def _with_loss(offer: SiteOffer, lost: float) -> SiteOffer:
    task = msgspec.structs.replace(
        offer.task, mean=offer.task.mean / (1 - lost), deviation=offer.task.deviation / (1 - lost)
    )
    return msgspec.structs.replace(offer, task=task)
