"""First estimates of runtimes where a budget pays for less than what is assumed of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

from adaptor.budget.accounting.ledger import Ledger
from adaptor.crafting.fits import most_slots, width
from adaptor.decisions.requests import per_processor
from adaptor.decisions.site_memory import SiteMemory
from adaptor.scheduling.broker import Broker

LEAST = 10.0  # seconds, the least that a task is taken to need


def within_budgets(site: SiteMemory, sites: Mapping[str, SiteMemory], broker: Broker, ledger: Ledger) -> None:
    """Tell the broker, of each bag with a budget of whose runtimes nothing is known, how long a task may take
    at a site if the budget is to pay for all of them.

    The whole budget is divided among a slot for each task, or as many as the sites have. What a site assumes
    before the first task has finished is often an hour. With it a budget of minutes would hold a request for
    one or two tasks, however short they are, and the bag would take many times as long as without a budget.
    """
    for number in broker.state.alone:
        bag, balance = broker.state.bags.get(number), ledger.budget_of(number)
        if bag is None or balance is None or not bag.spec.allows(site.name):
            continue
        if broker.state.learner(number, site.name).knows:
            continue
        task, total, pad = bag.task, max(1, bag.total), site.rules.pad
        tariff = ledger.tariff(site.name).of_pilots(per_processor(site.rules, site.seen, task))
        wide, amount = width(site.seen, task), balance.budget.amount
        there = [each for name, each in sites.items() if bag.spec.allows(name)]
        slots = sum(most_slots(each.rules, each.seen, task) for each in there)
        least = max(pad, LEAST)
        hosts = min(total, slots, int(tariff.affordable_seconds("explicit", amount, wide) / (2 * least)))
        if hosts:
            paid = tariff.affordable_seconds("explicit", amount, hosts * wide)
            broker.state.afford(number, site.name, max(least, (paid - pad) / math.ceil(total / hosts)))
