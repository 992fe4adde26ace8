"""What a planning step is shown of a site."""

from __future__ import annotations

from adaptor.config.schema import SiteConfig
from adaptor.crafting.situation import Demand, PilotView, SiteRules, SiteView
from adaptor.daemon.pilots import Pilot
from adaptor.daemon.site_state import SiteState
from adaptor.model import Limits, QueueState
from backends.base import Backend


def rules_of(site: SiteState) -> SiteRules:
    return site_rules(site.config, site.backend, site.limits, site.pad)


def site_rules(config: SiteConfig, backend: Backend, limits: Limits, pad: float) -> SiteRules:
    """How requests are shaped at a site; `pad` as configured, or as learned."""
    return SiteRules(
        limits=limits,
        time_resolution=backend.time_resolution,
        slot_margin=backend.slot_margin,
        pad=pad,
        granularity=(config.processors_per_node or 1) if config.whole_nodes else 1,
    )


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
