"""First estimates of runtimes where a budget pays for less than what is assumed of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

from adaptor.budget.accounting.statements import Statements
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.crafting.fits import most_slots, width
from adaptor.crafting.situation import PREPAID, SiteRules
from adaptor.decisions.requests import paid_in_parts, per_processor
from adaptor.model import QueueState
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.units import round_up

_LEAST = 10.0  # seconds


def least_time(rules: SiteRules) -> float:
    """Seconds that a task is taken to need at the least: a request for less would be mostly its pad."""
    return max(rules.pad, _LEAST)


def estimate_by_budgets(
    name: str,
    rules: Mapping[str, SiteRules],
    queues: Mapping[str, QueueState | None],
    broker: Broker,
    ledger: Statements,
) -> None:
    """Tell the broker, of each bag with a budget of whose runtimes nothing is known, how long a task may take
    at a site if the budget is to pay for all of them.

    The whole budget is divided among a slot for each task, or as many as the sites have. What a site assumes
    before the first task has finished is often an hour. With it a budget of minutes would hold a request for
    one or two tasks, however short they are, and the bag would take many times as long as without a budget.

    Args:
        rules: of all sites.
        queues: of all sites, as last seen; None: not seen yet.
    """
    for number in broker.state.alone:
        bag, balance = broker.state.bags.get(number), ledger.budget_of(number)
        if bag is None or balance is None or not bag.spec.allows(name):
            continue
        if broker.state.learner(number, name).knows:
            continue
        there = {each: rules[each] for each in rules if bag.spec.allows(each)}
        slots = sum(most_slots(site, queues[each], bag.task) for each, site in there.items())
        # The same at all sites: a site is not slower because it costs less.
        paid = min(
            _paid_for(bag, balance.budget.amount, slots, site, queues[each], ledger.tariff(each))
            for each, site in there.items()
        )
        broker.state.afford(number, name, paid, in_parts=paid_in_parts(bag.spec))


def _paid_for(
    bag: Bag, amount: int, slots: int, site: SiteRules, queue: QueueState | None, tariff: Tariff
) -> float:
    """Seconds for each task of a bag at a site, where all its sites together have this number of slots."""
    wide, least, total = width(queue, bag.task), least_time(site), max(1, bag.total)
    if paid_in_parts(bag.spec):
        amount = int(PREPAID * amount)
    tariff = tariff.of_pilots(per_processor(site, queue, bag.task))
    shortest = round_up(least + site.pad, site.time_resolution)
    most = tariff.affordable_seconds("explicit", amount, wide) // shortest
    hosts = max(1, min(total, slots, most))  # even one too many: reasons name its cost
    paid = tariff.affordable_seconds("explicit", amount, hosts * wide)
    return max(least, (paid - site.pad) / math.ceil(total / hosts))
