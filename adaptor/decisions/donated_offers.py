"""The donated nodes of sites as offers besides formal requests: those that are there, those that will come.

De Rose et al. (2008, §5): "the decision as to what strategy to use to request resources is based on the cost
of the resources and the time available to obtain the results".
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.budget.provisioning.task_time import TaskTime
from adaptor.crafting.situation import Demand
from adaptor.decisions.memory import donated_nodes
from adaptor.decisions.requests import known_shortest, tariff_for
from adaptor.decisions.snapshot import DonationFacts, SiteFacts, Snapshot
from adaptor.donation.deciding import decide
from adaptor.donation.fitting import closes, least_probability, nodes_to_come, slots_on
from adaptor.donation.situation import DonationDemand, LeaveNodes, NodeUse, NodeView, UseNodes
from adaptor.forecast.bag_facts import BagFacts


def donated_places(
    snapshot: Snapshot, bag: BagFacts, at: Mapping[str, Demand], times: Mapping[str, TaskTime], *, later: bool
) -> dict[str, tuple[SiteOffer, ...]]:
    """Donated nodes by place, of the sites where they cost less than formal requests.

    Args:
        at: by site, the waiting tasks.
        times: by site, the runtime of a task.
        later: whether nodes count that are expected to become idle before the deadline.
    """
    found: dict[str, tuple[SiteOffer, ...]] = {}
    for name, demand in at.items():
        donating = _donating(snapshot, name, bag, demand)
        if donating is None:
            continue
        here, coming = donating.here(times[name]), donating.coming(times[name]) if later else None
        if here is not None:
            found[donated_nodes(name)] = (here,) if coming is None else (here, coming)
        elif coming is not None:
            found[f"{name} (donated later)"] = (coming,)
    return found


def _donating(snapshot: Snapshot, name: str, bag: BagFacts, demand: Demand) -> _Donating | None:
    """Offer of donated nodes to a bag; None: donated time is not cheaper there, or none of its tasks may run
    on them."""
    site, tariff = snapshot.sites[name], tariff_for(snapshot.ledger, snapshot.sites[name], demand.task)
    cheaper = tariff.price("donated") < tariff.price("explicit")
    if site.donation is None or not cheaper or bag.spec.allocation != "mixed":
        return None
    if demand.waiting <= demand.formal_only:
        return None
    wanted = DonationDemand(
        waiting=demand.waiting - demand.formal_only, task=demand.task, needs=known_shortest(site, bag, demand)
    )
    return _Donating(
        site=site,
        donation=site.donation,
        bag=bag,
        wanted=wanted,
        tariff=tariff,
        nodes=_nodes(site, site.donation, bag, wanted),
    )


class _Donating(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a site's donated nodes as an offer to a bag."""

    site: SiteFacts
    donation: DonationFacts
    bag: BagFacts
    wanted: DonationDemand
    tariff: Tariff
    nodes: list[NodeView]
    """Nodes that the bag has or gets now."""

    @property
    def price(self) -> float:
        """Credits for an hour of the processors of a task."""
        return in_credits(self.tariff.price("donated")) * self.bag.spec.cpus

    def here(self, task: TaskTime) -> SiteOffer | None:
        """The nodes that are there now; None: none is."""
        slots = sum(slots_on(node, node.processors, self.wanted.task) for node in self.nodes)
        if not slots:
            return None
        return SiteOffer(
            name=donated_nodes(self.site.name),
            price=self.price,
            processors=slots,
            task=self._restarted(task, self._staying(task.mean) / len(self.nodes)),
            charging_unit=float(self.tariff.charging_unit),
        )

    def coming(self, task: TaskTime) -> SiteOffer | None:
        """The nodes that are expected besides those by the bag's deadline.

        Hours of donation that begin later do not count. Other bags may get the same nodes. Each idle period
        begins charging units of its own, so they are part of the price.

        None: none is expected, or how long the bag's tasks run is not known yet.
        """
        bag, rules, hazard = self.bag, self.donation.rules, self.donation.hazard
        if bag.spec.deadline is None or not bag.known_at(self.site.name).known:
            return None
        now = self.donation.now
        seconds = min(bag.spec.deadline, closes(rules.hours, now, self.donation.midnight)) - now
        coming = nodes_to_come(
            hazard, self.donation.idleness, seconds, self.wanted.needs, least_probability("mixed", rules)
        )
        if coming is None:
            return None
        serving = [node for node in self.donation.known if node.use is not NodeUse.AWAY]
        slots_of_all = sum(slots_on(node, node.processors, self.wanted.task) for node in serving)
        found = self._more(coming.nodes, seconds) * slots_of_all / max(1, len(serving))
        if found <= 0:
            return None
        slots, unit = math.ceil(found), self.tariff.charging_unit
        charged = max(unit, coming.lasting + unit / 2)
        return SiteOffer(
            name=f"{donated_nodes(self.site.name)} later",
            price=self.price * charged / coming.lasting,
            processors=slots,
            task=self._restarted(task, hazard.survival(coming.age, task.mean)),
            wait=seconds - (seconds - coming.wait) * found / slots,
        )

    def _restarted(self, task: TaskTime, finishes: float) -> TaskTime:
        """The time of a task on nodes that stay idle until its end with this probability.

        A task that is aborted because a local job takes its node starts again from scratch. So it takes its
        mean over the probability, at most.
        """
        finishes = max(self.donation.rules.last_fit, finishes)
        return TaskTime(task.mean / finishes, task.deviation / finishes)

    def _more(self, coming: float, seconds: float) -> float:
        """Nodes to come that replace none that is there now, within the rules."""
        rules, here = self.donation.rules, len(self.nodes)
        more = coming + self._staying(seconds) - here - rules.reserve_nodes
        return more if rules.max_nodes is None else min(more, rules.max_nodes - here)

    def _staying(self, seconds: float) -> float:
        """Nodes that are there and expected to be idle for `seconds` more."""
        now, hazard = self.donation.now, self.donation.hazard
        return sum(hazard.survival(now - node.since, seconds) for node in self.nodes)


def _nodes(site: SiteFacts, donation: DonationFacts, bag: BagFacts, wanted: DonationDemand) -> list[NodeView]:
    """Nodes that the bag keeps, and those that it would be given if it were alone."""
    by_name = {node.name: node for node in donation.nodes or ()}
    names = {pilot.node for pilot in site.donated if pilot.bag == bag.id and not pilot.leaving}
    for decision in decide(msgspec.structs.replace(donation, demands=(wanted,)), donation.hazard):
        match decision:
            case UseNodes(nodes=nodes):
                names.update(nodes)
            case LeaveNodes(nodes=nodes):
                names.difference_update(nodes)
            case _:
                pass
    return [by_name[name] for name in sorted(names) if name in by_name]
