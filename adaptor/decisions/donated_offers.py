"""What the donated nodes of a site offer a bag now, beside its formal requests (De Rose et al. 2008, §5).

Which of the two strategies serves a bag is decided by cost and time left: both are offers to the same
allocation. Only nodes that the bag has or would be given now are offered; nobody waits for nodes that may
never become idle.
"""

from __future__ import annotations

from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.statements import Statements
from adaptor.budget.estimation.task_time import TaskTime
from adaptor.budget.provisioning.site_offers import SiteOffer
from adaptor.crafting.situation import Demand
from adaptor.decisions.memory import donated_nodes
from adaptor.decisions.requests import known_shortest, tariff_for
from adaptor.decisions.snapshot import DonationFacts, SiteFacts
from adaptor.donation.deciding import decide
from adaptor.donation.fitting import slots_on
from adaptor.donation.situation import DonationDemand, LeaveNodes, NodeView, UseNodes
from adaptor.scheduling.facts import BagFacts


def donated_offer(
    ledger: Statements, site: SiteFacts, bag: BagFacts, demand: Demand, task: TaskTime, now: float
) -> SiteOffer | None:
    """None: donated time is not cheaper there, or the bag may not run on donated nodes, or gets none now.

    A task that is aborted because a local job takes its node starts again from scratch. So it takes its
    mean over the probability that the node stays idle for so long, at most.
    """
    donation = site.donation
    tariff = tariff_for(ledger, site, demand.task)
    cheaper = tariff.price("donated") < tariff.price("explicit")
    if donation is None or not cheaper or bag.spec.allocation != "mixed" or bag.spec.slots:
        return None
    wanted = _wanted(bag, site, demand)
    nodes = _nodes(site, donation, bag, wanted, now)
    slots = sum(slots_on(node, node.processors, wanted) for node in nodes)
    if not slots:
        return None
    finishes = max(donation.rules.last_fit, _mean_survival(nodes, donation, task.mean, now))
    return SiteOffer(
        name=donated_nodes(site.name),
        price=in_credits(tariff.price("donated")) * bag.spec.cpus,
        processors=slots,
        task=TaskTime(task.mean / finishes, task.deviation / finishes),
        charging_unit=float(tariff.charging_unit),
    )


def _wanted(bag: BagFacts, site: SiteFacts, demand: Demand) -> DonationDemand:
    return DonationDemand(
        waiting=demand.waiting,
        task=demand.task,
        needs=known_shortest(site, bag, demand),
    )


def _nodes(
    site: SiteFacts, donation: DonationFacts, bag: BagFacts, wanted: DonationDemand, now: float
) -> list[NodeView]:
    """Those that the bag keeps, and those that it would be given if it were alone."""
    by_name = {node.name: node for node in donation.nodes or ()}
    names = {pilot.node for pilot in site.donated if pilot.bag == bag.id and not pilot.leaving}
    for decision in decide(donation.state(now, [wanted]), donation.hazard):
        match decision:
            case UseNodes(nodes=nodes):
                names.update(nodes)
            case LeaveNodes(nodes=nodes):
                names.difference_update(nodes)
            case _:
                pass
    return [by_name[name] for name in sorted(names) if name in by_name]


def _mean_survival(nodes: list[NodeView], donation: DonationFacts, seconds: float, now: float) -> float:
    return sum(donation.hazard.survival(now - node.since, seconds) for node in nodes) / len(nodes)
