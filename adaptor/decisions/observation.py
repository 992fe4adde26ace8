"""Taking the snapshot of one step, the same for the daemon and for the simulation. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

import msgspec

from adaptor.budget.accounting.ledger import Ledger
from adaptor.crafting.situation import Demand
from adaptor.decisions.forecasting.needed import bags_at_work
from adaptor.decisions.forecasting.told import bags_ahead
from adaptor.decisions.memory import Memory
from adaptor.decisions.site_memory import SiteMemory
from adaptor.decisions.snapshot import SiteFacts, Snapshot
from adaptor.forecast.bag_facts import BagFacts
from adaptor.forecast.calibration import Kind
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.facts import facts_of


def take_snapshot(
    site: str,
    sites: Mapping[str, SiteMemory],
    broker: Broker,
    ledger: Ledger,
    memory: Memory,
    forecast_kept: Set[int],
    now: float,
    midnight: float,
    *,
    scores: Mapping[Kind, Sequence[float]] = MappingProxyType({}),
    foresees: bool = False,
) -> Snapshot:
    """The snapshot on which one step of `site` decides.

    Args:
        forecast_kept: bags whose first forecast is kept, ended ones too.
        sites: all sites that serve the same bags; the queue and the nodes of `site` were read for this step.
        midnight: some local midnight, epoch seconds.
        scores: by kind of forecast: errors of earlier ones, the oldest first.
        foresees: whether all bags are forecast, else only those for whom `bags_ahead` needs it.
    """
    state, bags = broker.state, bags_facts(broker)
    made = {bag: forecast for bag, forecast in memory.forecasts.items() if bag in state.bags}
    ahead = bags_ahead(state, made, now, None if foresees else forecast_kept)
    some_donate = any(known.donation is not None for known in sites.values())
    return Snapshot(
        site=site,
        sites=sites_facts(sites, broker, now, midnight),
        queue=sites[site].queue,
        demands=demands_of(broker, site, now),
        groups=broker.groups() if len(sites) > 1 or sites[site].donation is not None else (),
        donation_demands=broker.donation_demands(site) if some_donate else (),
        bags=bags,
        ledger=ledger.frozen(),
        memory=memory if made == memory.forecasts else msgspec.structs.replace(memory, forecasts=made),
        scores=scores,
        forecast_kept=frozenset(forecast_kept & state.bags.keys()),
        at_work=bags_at_work(state, made),
        ahead=tuple(bags.get(bag.id) or facts_of(state, bag) for bag in ahead),
        work=broker.has_work_for(site),
    )


def sites_facts(
    sites: Mapping[str, SiteMemory], broker: Broker, now: float, midnight: float
) -> dict[str, SiteFacts]:
    """Facts on every site as it was last observed."""
    workers = broker.state.workers.by_pilot
    return {name: site.facts(workers, now, midnight) for name, site in sites.items()}


def demands_of(broker: Broker, site: str, now: float | None = None) -> tuple[Demand, ...]:
    """The tasks for which a site's formal requests are made, and the bags that pay for them."""
    return tuple(
        msgspec.structs.replace(demand, payers=broker.sharers(site, demand))
        for demand in broker.demands(site, now)
    )


def bags_facts(broker: Broker) -> dict[int, BagFacts]:
    """The unfinished bags that have pilots of their own."""
    state = broker.state
    return {
        bag.id: facts_of(state, bag) for bag in state.bags.values() if bag.id in state.alone and bag.active
    }
