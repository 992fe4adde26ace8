"""What a planning step is shown of a site."""

from __future__ import annotations

from adaptor.crafting.situation import Demand, PilotView, SiteRules, SiteView
from adaptor.daemon.pilots import Pilot
from adaptor.daemon.site_state import SiteState
from adaptor.model import QueueState
from backends.rules import site_rules


def rules_of(site: SiteState) -> SiteRules:
    return site_rules(site.config, site.backend, site.limits, site.pad)


def view_of(
    site: SiteState, queue: QueueState | None, now: float, demands: tuple[Demand, ...] = ()
) -> SiteView:
    return SiteView(
        now=now,
        queue=queue,
        rules=rules_of(site),
        heuristic=site.config.heuristic,
        pilots=tuple(_view(site, pilot) for pilot in site.requests),
        demands=demands,
    )


def _view(site: SiteState, pilot: Pilot) -> PilotView:
    workers = [worker for worker in site.core.broker.of_pilot(pilot.id) if not worker.awaited]
    heard = pilot.first_hello is not None and bool(workers)
    return pilot.view(sum(worker.processors for worker in workers) if heard else None)
