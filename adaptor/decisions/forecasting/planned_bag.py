"""Forecast of a bag that is not submitted: the step of each site is decided as if it just had been. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from adaptor.api import PlannedRequest
from adaptor.bag_spec import BagSpec
from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.entries import NOT_SUBMITTED, Budget, bag_name
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.tariffs import HOUR
from adaptor.budget.provisioning.menu import menu
from adaptor.budget.provisioning.menu_line import Line
from adaptor.crafting.situation import Demand, SubmitRequest, Withhold
from adaptor.decisions.actions import Action
from adaptor.decisions.decide import decide
from adaptor.decisions.first_estimates import estimate_by_budgets
from adaptor.decisions.forecasting.known_bag import known_bag
from adaptor.decisions.observation import demands_of
from adaptor.decisions.offers import explicit_offer, task_time
from adaptor.decisions.requests import most_slots, tariff_for
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.forecast.bag_facts import BagFacts
from adaptor.forecast.forecast import forecast
from adaptor.forecast.other_bags import OtherBags
from adaptor.kinds.earlier import tells_enough
from adaptor.model import Estimate
from adaptor.resources import OwnNeeds
from adaptor.runtimes.known import EarlierTasks
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.facts import facts_of
from adaptor.scheduling.state import SiteTerms


class NewBag(msgspec.Struct, frozen=True, kw_only=True):
    """A bag that might be submitted."""

    spec: BagSpec
    tasks: int
    needs: Mapping[int, OwnNeeds] = {}
    """Needs of tasks that differ from those of `spec`, by task."""
    budget: int | None = None
    """Millionths of a credit."""
    earlier: Mapping[str, EarlierTasks] = {}
    """Runtimes of earlier bags of the same kinds, by site."""
    others: OtherBags = OtherBags()
    """Bags that would take turns with it."""

    def known_at(self, sites: Iterable[str]) -> bool:
        """Whether earlier bags tell enough at each of these sites to quote it without a sample."""
        return all(name in self.earlier and tells_enough(self.earlier[name]) for name in sites)


class PlannedBag(msgspec.Struct, frozen=True, kw_only=True):
    requests: tuple[PlannedRequest, ...]
    withheld: dict[str, str]
    """Reasons for no request, by site."""
    end: Estimate | None
    """Epoch seconds; None: none can be seen, or the budget pays for no request."""
    work: Estimate
    """Processor-seconds of all tasks."""
    cost: Estimate
    """Credits; of a bag that shares its pilots, for the work alone, at the mean price of its processors."""


def plan_bag(new: NewBag, snapshots: Mapping[str, Snapshot], terms: Mapping[str, SiteTerms]) -> PlannedBag:
    """The bag's requests at each site and its forecast, as if it were submitted now.

    Args:
        snapshots: by site at which it may run: those of a step now, with the queue just read.
        terms: of all these sites.
    """
    now = max(snapshot.now for snapshot in snapshots.values())
    broker = _broker(new, terms, now)
    ledger = _with_budget(new, snapshots, broker, now)
    first = next(iter(snapshots.values()))
    requests: list[PlannedRequest] = []
    withheld: dict[str, str] = {}
    unpaid, shares = set[str](), first.memory.shares
    made: dict[str, tuple[SubmitRequest, ...]] = {}
    for name in snapshots:
        planned = _with_bag(snapshots[name], ledger.fork(), broker, made)
        decision, counted = decide(planned), _counted(planned.demands)
        shares = decision.memory.shares
        if NOT_SUBMITTED in decision.memory.paused.get(name, {}):
            unpaid.add(name)
        made[name] = tuple(submit for submit in decision.submits if not submit.node)
        own = [submit for submit in made[name] if NOT_SUBMITTED in submit.demand.payers]
        for submit in own:
            request, reason = submit.crafted.request, submit.crafted.reason + counted
            start = submit.crafted.predicted_start
            requests.append(PlannedRequest(name, request.p, request.tr, start, reason))
        if not own:
            why = [*_withheld(decision.actions)]
            withheld[name] = why[0] + counted if why else "the tasks are planned elsewhere"
    bag = msgspec.structs.replace(_facts(broker), others=new.others)
    sites = {name: snapshots[name].sites[name] for name in snapshots}
    memory = msgspec.structs.replace(first.memory, shares=shares)
    found = forecast(known_bag(msgspec.structs.replace(first, sites=sites, memory=memory), bag))
    work = _times(found.work, _mean_processors(new))
    price = _mean_price(new, first.ledger, sites, requests)
    return PlannedBag(
        requests=tuple(requests),
        withheld=withheld,
        end=None if unpaid == set(snapshots) else found.end,
        work=work,
        cost=found.cost or _times(work, price / HOUR),
    )


def _mean_processors(new: NewBag) -> float:
    """Processors of a task, on average."""
    usual = new.spec.task
    others = [needs.over(usual).total_processors for needs in new.needs.values()]
    return (sum(others) + (new.tasks - len(others)) * usual.total_processors) / max(1, new.tasks)


def _mean_price(
    new: NewBag, ledger: Ledger, sites: Mapping[str, SiteFacts], requests: Iterable[PlannedRequest]
) -> float:
    """Credits of a processor-hour in these requests on average, or in all that the sites could get."""
    size, processors = new.spec.task, Counter[str]()
    for request in requests:
        processors[request.site] += request.p
    if not processors:
        slots = {name: most_slots(site, size) for name, site in sites.items()}
        processors = Counter(slots if any(slots.values()) else dict.fromkeys(sites, 1))
    prices = {
        name: in_credits(tariff_for(ledger, sites[name], size).price("explicit")) for name in processors
    }
    return sum(prices[name] * count for name, count in processors.items()) / processors.total()


def choices(new: NewBag, snapshots: Mapping[str, Snapshot], terms: Mapping[str, SiteTerms]) -> list[Line]:
    """Offers of a quote for the bag, from the cheapest slots to the fastest (Ricciardi & Hwang §3).

    Empty: nothing is known of its tasks at any site, or it makes no formal requests. Their wait in the queue
    does not count.

    Raises:
        AdaptorError: no site has a slot for such a task.
    """
    now = max(snapshot.now for snapshot in snapshots.values())
    facts, size = _facts(_broker(new, terms, now)), new.spec.task
    offers = [
        msgspec.structs.replace(
            explicit_offer(snapshot.ledger, snapshot.here, size, task_time(facts, name, now)),
            processors=most_slots(snapshot.here, size),
        )
        for name, snapshot in snapshots.items()
        if facts.known.told is not None or name in new.earlier
    ]
    if not offers or new.spec.allocation == "transparent":
        return []
    known = [each for name, each in new.earlier.items() if facts.known.told is None]
    factor = max((each.factor for each in known), default=1.0)
    return menu(new.tasks, offers, min((each.tasks for each in known), default=1), factor)


def _times(figure: Estimate, factor: float) -> Estimate:
    return Estimate(figure.low * factor, figure.value * factor, figure.high * factor)


def _broker(new: NewBag, terms: Mapping[str, SiteTerms], now: float) -> Broker:
    broker = Broker(dict(terms))
    bag = Bag(NOT_SUBMITTED, new.spec, new.tasks, new.needs)
    bag.fill()
    bag.earlier = new.earlier
    if new.budget is not None:
        broker.keep_apart(NOT_SUBMITTED)
    broker.add_bag(bag, now)
    return broker


def _withheld(actions: Iterable[Action]) -> Iterator[str]:
    """Why the new bag gets no request; those of other bags alone do not count."""
    for action in actions:
        if isinstance(action, Withhold) and (action.demand is None or NOT_SUBMITTED in action.demand.payers):
            yield action.reason


def _counted(demands: Iterable[Demand]) -> str:
    """Says whose tasks the reasons of a site count, too; empty: those of the bag alone."""
    shared = (demand.payers for demand in demands if NOT_SUBMITTED in demand.payers)
    others = {bag for payers in shared for bag in payers if bag != NOT_SUBMITTED}
    return f" (the tasks of {bag_name(*others)} count, too: they share pilots)" if others else ""


def _with_budget(new: NewBag, snapshots: Mapping[str, Snapshot], broker: Broker, now: float) -> Ledger:
    """The ledger with the budget of the bag, whose first estimates are as it pays for them."""
    ledger = next(iter(snapshots.values())).ledger.fork()
    if new.budget is not None:
        ledger.set_budget(Budget(amount=new.budget, bag=NOT_SUBMITTED), now)
        rules = {name: snapshot.here.rules for name, snapshot in snapshots.items()}
        queues = {name: snapshot.here.queue for name, snapshot in snapshots.items()}
        for name in snapshots:
            estimate_by_budgets(name, rules, queues, broker, ledger)
    return ledger


def _facts(broker: Broker) -> BagFacts:
    return facts_of(broker.state, broker.state.bags[NOT_SUBMITTED])


def _with_bag(
    snapshot: Snapshot, ledger: Ledger, broker: Broker, made: Mapping[str, tuple[SubmitRequest, ...]]
) -> Snapshot:
    """The step of a site as if the bag had just been submitted, and others had decided before."""
    sites = {
        name: msgspec.structs.replace(site, submitting=(*site.submitting, *made.get(name, ())))
        for name, site in snapshot.sites.items()
    }
    alone = {NOT_SUBMITTED: _facts(broker)} if NOT_SUBMITTED in broker.state.alone else {}
    return msgspec.structs.replace(
        snapshot,
        sites=sites,
        demands=_together(snapshot, broker),
        groups=(*snapshot.groups, *broker.groups()) if len(sites) > 1 else snapshot.groups,
        bags={**snapshot.bags, **alone},
        ledger=ledger,
        ahead=(),
        work=True,
    )


def _together(snapshot: Snapshot, broker: Broker) -> tuple[Demand, ...]:
    """The demands of all bags; tasks of one shape share their requests."""
    found = {demand.shape: demand for demand in snapshot.demands}
    for more in demands_of(broker, snapshot.site):
        demand = found.get(more.shape)
        found[more.shape] = more if demand is None else _joined(demand, more)
    return tuple(found.values())


def _joined(demand: Demand, more: Demand) -> Demand:
    return msgspec.structs.replace(
        demand,
        waiting=demand.waiting + more.waiting,
        runtime=max(demand.runtime, more.runtime),
        shortest=min(demand.shortest, more.shortest),
        payers={**demand.payers, **more.payers},
    )
