"""What one step of the donation is shown of a site."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from adaptor.daemon.donation.memory import Lender, midnight
from adaptor.daemon.pilots import Pilot
from adaptor.daemon.site_state import SiteState
from adaptor.donation.situation import DonatedUse, DonationView, NodeUse, NodeView
from adaptor.model import PilotState, QueueState, RunningJob
from adaptor.reports import NodeReport
from adaptor.scheduling.demand import BagDonationDemand
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor.scheduling.workers import Worker

Workers = Mapping[int, Sequence[Worker]]
"""By pilot, so that a step with many leases goes through the workers once."""


def workers_of(site: SiteState) -> Workers:
    """The workers of a site as they are now."""
    found: dict[int, list[Worker]] = {}
    for worker in site.core.broker.of_site(site.name):
        found.setdefault(worker.pilot, []).append(worker)
    return found


def donation_view(
    site: SiteState,
    lender: Lender,
    reports: Sequence[NodeReport] | None,
    demands: Sequence[BagDonationDemand],
    now: float,
) -> DonationView:
    """`reports`: what the scheduler says of the nodes; None: it does not answer."""
    return DonationView(
        now=now,
        nodes=None if reports is None else _nodes(site, lender, reports, now),
        rules=lender.rules,
        demands=tuple(demand.wanted for demand in demands),
        midnight=midnight(now),
    )


def _nodes(
    site: SiteState, lender: Lender, reports: Sequence[NodeReport], now: float
) -> tuple[NodeView, ...]:
    leases = {pilot.node: pilot for pilot in site.leases}
    workers = workers_of(site)
    shown = [_node(lender, report, leases.get(report.name), workers, now) for report in reports]
    named = {report.name for report in reports}
    return (*shown, *(_vanished(pilot) for node, pilot in leases.items() if node not in named))


def _node(lender: Lender, report: NodeReport, pilot: Pilot | None, workers: Workers, now: float) -> NodeView:
    use = report.use
    if pilot is not None and pilot.cancel_reason:  # on its way out: neither lent nor to be lent
        use, pilot = NodeUse.TAKEN, None
    elif pilot is not None and pilot.state is PilotState.SUBMITTING and use is NodeUse.TAKEN:
        use = NodeUse.IDLE  # by a job whose id is not known yet, most likely our own
    elif pilot is None and not lender.may_lend(report.name, now):
        use = NodeUse.TAKEN
    return NodeView(
        name=report.name,
        processors=report.processors,
        use=use,
        memory=report.memory,
        since=lender.idle_since(report.name) or now,
        planned=report.planned,
        donated=_lease(pilot, workers.get(pilot.id, ())) if pilot is not None else None,
    )


def _lease(pilot: Pilot, workers: Sequence[Worker]) -> DonatedUse:
    busy = sum(each.processors - each.free_processors if each.held else 0 for each in workers)
    awaited = any(each.awaited for each in workers)
    return DonatedUse(
        since=pilot.started or pilot.submitted,
        holder=str(pilot.id),
        busy=max(busy, 1) if awaited or any(each.held for each in workers) else 0,
    )


def _vanished(pilot: Pilot) -> NodeView:
    """A node that the scheduler does not name any more."""
    return NodeView(
        name=pilot.node,
        processors=pilot.request.p,
        use=NodeUse.AWAY,
        donated=DonatedUse(since=pilot.started or pilot.submitted, holder=str(pilot.id)),
    )


def tell_broker(site: SiteState, lender: Lender, reports: Sequence[NodeReport], now: float) -> None:
    """What may be started on lent nodes depends on how long they will stay idle."""
    site.core.broker.learn_hazard(site.name, lender.learner.hazard)
    planned = {report.name: report.planned for report in reports}
    closes = lender.closes(now)
    for pilot in site.leases:
        since = lender.idle_since(pilot.node) or pilot.started or pilot.submitted
        until = min(planned.get(pilot.node, math.inf), closes)
        site.core.broker.use_node(pilot.id, DonatedNode(since=since, until=until))


def with_lent(site: SiteState, queue: QueueState) -> QueueState:
    """The queue with the nodes that agents hold as if they were in use: formal requests go elsewhere.

    The scheduler shows what preemptible jobs hold by itself.
    """
    if site.lender is None or site.lender.config.mode != "agent":
        return queue
    held = tuple(
        RunningJob(f"lent {pilot.node}", pilot.request.p, (pilot.started or queue.now) + pilot.request.tr)
        for pilot in site.leases
    )
    return msgspec.structs.replace(queue, running=(*queue.running, *held)) if held else queue
