"""What a bag may ask for now, given what its user wants: budget, deadline, cheap or fast."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import msgspec

from adaptor.budget.accounting.credits import format_credits, in_credits, millionths, rounded_up
from adaptor.budget.estimation.forecast import Forecast
from adaptor.budget.estimation.runtime_sums import Sums
from adaptor.budget.provisioning.hosts import Hosts
from adaptor.budget.provisioning.pacing import Course, advise, terms_for
from adaptor.crafting.situation import Demand
from adaptor.crafting.words import counted
from adaptor.daemon.credits.affording import shape_of
from adaptor.daemon.credits.foresight import look_ahead, sites_of, slots_there, staying, tasks_of
from adaptor.daemon.site_state import SiteState
from adaptor.model import TaskState
from adaptor.scheduling.bag import Bag
from adaptor.units import format_duration, round_up


def aimed(site: SiteState, demands: Sequence[Demand], now: float) -> tuple[Demand, ...]:
    """The demands, each with the processors that may be asked for and why; pauses are noted at the site."""
    return tuple(_aimed(site, demand, now) for demand in demands)


def _aimed(site: SiteState, demand: Demand, now: float) -> Demand:
    bag = site.core.broker.books.bags.get(demand.bag) if demand.bag is not None else None
    if bag is None or not demand.waiting or not bag.spec.aims:
        return demand
    if why := _neither_can_be_kept(site, bag, now):
        site.paused[bag.id] = why
        return msgspec.structs.replace(demand, most=0, why_most=why)
    demand = msgspec.structs.replace(demand, longest=_until_deadline(site, bag, demand, now))
    if bag.spec.slots:
        return _as_chosen(site, bag, demand)
    advice = advise(_course(site, bag, now))
    hosts = _allotted(site, bag, advice.hosts)
    processors = shape_of(site, demand).processors_for(hosts)
    preference = f"bag {bag.id} ({_wish(bag)}): {advice.reason}"
    return msgspec.structs.replace(demand, most=processors, why_most=preference)


def _until_deadline(site: SiteState, bag: Bag, demand: Demand, now: float) -> int | None:
    """Seconds of a request whose last task begins before the deadline; None: it has none, or it is over."""
    if bag.spec.deadline is None or bag.spec.deadline <= now:
        return None
    seconds = bag.spec.deadline - now + demand.runtime + site.pad
    return round_up(math.ceil(seconds), site.backend.time_resolution)


def _allotted(site: SiteState, bag: Bag, hosts: int) -> int:
    """No more than the site's part by cost and time; all of that where the deadline needs it."""
    parting = site.peers.allotments.of(bag.id) if site.peers is not None else None
    if parting is None:
        return hosts
    mine = parting.slots(site.name)
    return mine if parting.urgent else min(hosts, mine)


def _as_chosen(site: SiteState, bag: Bag, demand: Demand) -> Demand:
    """No more slots at the site than were chosen from the quote (BaTS: the machine configuration)."""
    chosen = site.core.chosen.of(bag).get(site.name, 0)
    there = slots_there(site, bag)
    most = shape_of(site, demand).processors_for(max(0, chosen - there))
    slots = counted(chosen, "slot")
    why = f"bag {bag.id} has {slots} at {site.name} by its quote, {there} of them there or asked for"
    return msgspec.structs.replace(demand, most=most, why_most=why)


def _wish(bag: Bag) -> str:
    words: list[str] = [bag.spec.prefer or "cheap"]
    if bag.spec.deadline is not None:
        words.append("with a deadline")
    return " ".join(words)


def _course(site: SiteState, bag: Bag, now: float) -> Course:
    starts = site.core.broker.starts(bag.id)
    tariff = site.core.treasury.ledger.tariff(site.name)
    terms = site.core.terms[site.name]
    return Course(
        now=now,
        tasks=tasks_of(bag),
        sums=Sums(
            finished=bag.count(TaskState.DONE),
            total=bag.runtime,
            squares=bag.squares,
            running=len(starts),
            starts=sum(starts),
        ),
        hosts=[hosts for each in sites_of(site, bag) for hosts in _hosts(each, bag, now)],
        terms=terms_for(tariff.charging_unit, site.pad),
        hint=min(bag.spec.runtimes.get(site.name, terms.initial_tr), terms.longest),
        prefer=bag.spec.prefer,
        deadline=bag.spec.deadline,
    )


def _hosts(site: SiteState, bag: Bag, now: float) -> list[Hosts]:
    """The slots of its pilots at a site, queued and running."""
    found = []
    for pilot, slots in staying(site, bag):
        start = pilot.started if pilot.started is not None else max(now, pilot.predicted_start or now)
        found.append(Hosts(slots, start + site.pad, start + pilot.granted))
    return found


def _neither_can_be_kept(site: SiteState, bag: Bag, now: float) -> str:
    """Why the bag pauses and what it would need; empty: its budget or its deadline can still be kept."""
    balance = site.core.treasury.ledger.budget_of(bag.id)
    if balance is None or bag.spec.deadline is None:
        return ""
    ahead = site.core.outlooks.of(bag.id, now, lambda: look_ahead(site, bag, now))
    if ahead is None or ahead.cost.low <= in_credits(balance.budget.amount):
        return ""
    slots = _most_slots(site, bag)
    soonest = now + site.pad + ahead.work.low / max(1, slots)
    if soonest <= bag.spec.deadline:
        return ""
    return _needs(bag, ahead, balance.budget.amount, soonest, slots)


def _needs(bag: Bag, ahead: Forecast, budget: int, soonest: float, slots: int) -> str:
    cost = [
        format_credits(millionths(max(each, 1e-6), "a cost")) for each in (ahead.cost.low, ahead.cost.high)
    ]
    late = format_duration(soonest - (bag.spec.deadline or 0.0))
    end = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(soonest))
    enough = rounded_up(millionths(max(ahead.cost.high, 1e-6), "a cost"))
    return (
        f"bag {bag.id} is paused: neither its budget nor its deadline can be kept: it will cost {cost[0]} to "
        f"{cost[1]} credits, and the budget is {format_credits(budget)}; it takes until {end} at the least, "
        f"on {slots} slots, which is {late} late: adaptor budget {bag.id} --set {enough} lets it go on"
    )


def _most_slots(site: SiteState, bag: Bag) -> int:
    """The most tasks that its sites can run at the same time."""
    return sum(
        min(
            each.limits.max_pending_requests * each.limits.max_proc,
            each.seen.processors if each.seen else each.limits.max_proc,
        )
        // bag.spec.cpus
        for each in sites_of(site, bag)
    )
