"""For whom a node is lent, for how long, and who pays for it."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from adaptor.budget.accounting.allowance import afford
from adaptor.budget.accounting.ledger import Shares
from adaptor.crafting.situation import Demand, Issue
from adaptor.daemon.credits.affording import billed
from adaptor.daemon.credits.treasury import DONATED
from adaptor.daemon.donation.memory import Lender
from adaptor.daemon.site_state import SiteState
from adaptor.donation.fitting import least_probability, room
from adaptor.donation.situation import UseNodes
from adaptor.model import CraftedRequest, Request
from adaptor.reports import NodeReport
from adaptor.scheduling.demand import BagDonationDemand
from adaptor.units import format_duration, round_down, round_up


class Wanted(msgspec.Struct, frozen=True):
    """Tasks for which one node is lent."""

    demands: tuple[BagDonationDemand, ...]
    """Of one bag with pilots of its own, or of all bags that share theirs."""
    tasks: int
    """How many of them the node can run at the same time."""

    @property
    def bag(self) -> int | None:
        return self.demands[0].bag if self.demands[0].own else None


class LeaseOrder(msgspec.Struct, frozen=True):
    """A lease that is within the budgets, and the bags that pay for it."""

    issue: Issue
    shares: Shares


class Choice:
    """Hands the nodes of a step out: the next one to those with the most tasks left without a place."""

    def __init__(
        self, site: SiteState, lender: Lender, demands: Sequence[BagDonationDemand], now: float
    ) -> None:
        together: dict[int | None, list[BagDonationDemand]] = {}
        for demand in demands:
            together.setdefault(demand.bag if demand.own else None, []).append(demand)
        self.reason = ""
        """Why somebody's tasks get no node; empty: nothing stood in the way."""
        self._site, self._lender, self._now = site, lender, now
        self._payers = {bag: tuple(of_bag) for bag, of_bag in together.items()}
        self._left = {
            bag: sum(each.wanted.waiting for each in of_bag)
            - _coming(site, bag, min(each.wanted.processors_per_task for each in of_bag))
            for bag, of_bag in self._payers.items()
        }

    def lease(self, node: NodeReport, decision: UseNodes) -> LeaseOrder | None:
        """None: no task is left that is likely to finish on the node and can be paid for."""
        while (wanted := self._next(node, decision.until)) is not None:
            found = _lease_of(self._site, self._lender, node, wanted, decision)
            if not isinstance(found, str):
                self._left[wanted.bag] -= wanted.tasks
                return found
            # Who cannot pay, or needs more time than there is, must not stand in the way of the others.
            self.reason = self.reason or found
            del self._payers[wanted.bag]
        if any(self._left[bag] > 0 for bag in self._payers):
            self.reason = self.reason or f"no waiting task fits into {node.name}"
        return None

    def _next(self, node: NodeReport, until: float) -> Wanted | None:
        for bag in sorted(self._payers, key=lambda bag: -self._left[bag]):
            if self._left[bag] <= 0:
                return None
            demands = tuple(
                each for each in self._payers[bag] if _slots(node, each) and self._fits(node, each, until)
            )
            if demands:
                return Wanted(demands, max(_slots(node, each) for each in demands))
        return None

    def _fits(self, node: NodeReport, demand: BagDonationDemand, until: float) -> bool:
        """Whether the shortest of the tasks is likely to finish there, as when the node was chosen."""
        lender, wanted = self._lender, demand.wanted
        age = self._now - (lender.idle_since(node.name) or self._now)
        probability = least_probability(wanted.allocation, lender.rules)
        return room(lender.learner.hazard, age, until - self._now, probability) >= wanted.needs


def beside_leases(site: SiteState, demand: Demand) -> Demand:
    """What is wanted of formal requests, without the tasks that leases are about to take."""
    coming = _coming(site, demand.bag, demand.processors_per_task)
    if not coming:
        return demand
    lent = [
        each
        for each in site.core.broker.donation_demands(site.name)
        if (each.bag if each.own else None) == demand.bag
        and each.wanted.processors_per_task == demand.processors_per_task
    ]
    mixed = sum(each.wanted.waiting for each in lent if each.wanted.allocation == "mixed")
    both = sum(each.wanted.waiting for each in lent)
    taken = min(mixed, coming * mixed // both) if both else 0
    return msgspec.structs.replace(demand, waiting=demand.waiting - taken)


def _coming(site: SiteState, bag: int | None, processors_per_task: int) -> int:
    """Tasks of a shape that leases can take whose workers are not there yet, at whatever site."""
    sites = [site] if site.peers is None else site.peers.sites.values()
    return sum(
        pilot.request.p // processors_per_task
        for each in sites
        for pilot in each.leases
        if pilot.bag == bag and pilot.first_hello is None and not pilot.cancel_reason
    )


def _slots(node: NodeReport, demand: BagDonationDemand) -> int:
    slots = node.processors // demand.wanted.processors_per_task
    if demand.memory_per_task and node.memory is not None:
        slots = min(slots, node.memory // demand.memory_per_task)
    return slots


def _lease_of(
    site: SiteState, lender: Lender, node: NodeReport, wanted: Wanted, decision: UseNodes
) -> LeaseOrder | str:
    """The lease as it may be made, or why it may not."""
    now = time.time()
    needs = min(demand.wanted.needs for demand in wanted.demands)
    resolution = site.backend.time_resolution
    least = billed(site, Request(node.processors, max(1, round_up(needs + site.pad, resolution))))
    longest = float(lender.config.max_tr or site.limits.max_tr)
    tr = round_down(min(longest, decision.until - now), resolution)
    if tr < least.tr:
        return (
            f"the shortest waiting task needs a lease of {format_duration(least.tr)}, and {node.name} can be "
            f"lent for {format_duration(tr)}{' (max_tr)' if tr == longest else ''}"
        )
    shares = {each.bag: float(each.wanted.waiting) for each in wanted.demands}
    allowance = site.core.treasury.allowance(site.name, DONATED, shares, now)
    found = afford(allowance, Request(node.processors, tr), least)
    if found.request is None:
        return found.reason
    request = Request(node.processors, max(least.tr, round_down(found.request.tr, resolution)))
    crafted = CraftedRequest(request, None, wanted.tasks, f"node {node.name}: {decision.reason}")
    return LeaseOrder(Issue(crafted, _demand(wanted)), shares)


def _demand(wanted: Wanted) -> Demand:
    first = wanted.demands[0]
    return Demand(
        processors_per_task=first.wanted.processors_per_task,
        memory_per_task=first.memory_per_task,
        waiting=sum(each.wanted.waiting for each in wanted.demands),
        runtime=max(1.0, first.wanted.needs),
        shortest=first.wanted.needs,
        bag=wanted.bag,
    )
