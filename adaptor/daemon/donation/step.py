"""One step of the donation at a site: look at the nodes, decide, act."""

from __future__ import annotations

import time
from collections.abc import Sequence

from adaptor.crafting.words import counted
from adaptor.daemon.acting import issue
from adaptor.daemon.donation.leases import Choice
from adaptor.daemon.donation.memory import Lender
from adaptor.daemon.donation.observation import donation_view, tell_broker, workers_of
from adaptor.daemon.holdoff import why_of_no_use
from adaptor.daemon.pilots import Pilot
from adaptor.daemon.site_state import SiteState
from adaptor.donation.deciding import decide
from adaptor.donation.situation import LeaveNodes, NodeUse, UseNodes, UseNoMore
from adaptor.model import PilotState
from adaptor.reports import NodeReport
from adaptor.scheduling.demand import BagDonationDemand
from adaptor.units import format_duration

QUEUED_TOO_LONG = 90.0
"""Seconds that a lease may wait in the scheduler's queue, which looks at it every half a minute or so."""
SUSPENDED = 60.0
"""Seconds for which a lease may be on a node that a local job has: longer, and it was only suspended."""
FORLORN = 60.0
"""Seconds without a worker after which a lease is given up: nobody else may notice its end."""
LONGEST = 30.0
"""Seconds after which a step lends no more: what it has seen of the nodes is old by then."""


async def lend_and_take_back(site: SiteState) -> None:
    """Lend what is idle, give back what is wanted. Raises JournalError."""
    lender = site.lender
    if lender is None:
        return
    demands = site.core.broker.donation_demands(site.name)
    if not demands and not site.leases:
        _say(site, lender, "")
        return
    lender.forget_unwatched(time.time())
    for pilot in site.leases:
        lender.suppose_idle(pilot.node, pilot.started or pilot.submitted)
    jobs = [pilot.job for pilot in site.leases if pilot.job is not None]
    reports = await site.ask(lambda: site.backend.nodes(jobs))
    now = time.time()
    if reports is not None:
        lender.observe(reports, now)
        tell_broker(site, lender, reports, now)
        ours = {pilot.node for pilot in site.leases}
        lender.idle = sum(each.use is NodeUse.IDLE and each.name not in ours for each in reports)
    await _act(site, lender, reports or (), demands, now, answered=reports is not None)


async def _act(
    site: SiteState,
    lender: Lender,
    reports: Sequence[NodeReport],
    demands: Sequence[BagDonationDemand],
    now: float,
    *,
    answered: bool,
) -> None:
    nodes = {report.name: report for report in reports}
    if answered:
        _forget_false_alarms(site, lender, nodes)
    view = donation_view(site, lender, reports if answered else None, demands, now)
    choice = Choice(site, lender, demands, now)
    reason = why_of_no_use(site) or _why_none(lender, now)
    may_lend = not reason
    for decision in decide(view, lender.learner.hazard):
        match decision:
            case LeaveNodes():
                _take_back(site, lender, decision, nodes, now)
            case UseNodes() if may_lend:
                reason = await _lend(site, lender, decision, nodes, choice, now + LONGEST)
                may_lend = not reason
            case UseNoMore():
                reason = reason or choice.reason or decision.reason
    _withdraw_late(site, lender, now)
    _give_up_forlorn(site, lender, now)
    _say(site, lender, reason or choice.reason)


def _why_none(lender: Lender, now: float) -> str:
    for failures, what in (
        (lender.fruitless, "ended without running a task"),
        (lender.failing, "could not be made"),
    ):
        if failures.waiting(now):
            return (
                f"{failures.failures} leases in a row {what} ({failures.reason}); "
                f"next try in {format_duration(failures.until - now)}"
            )
    return ""


async def _lend(
    site: SiteState,
    lender: Lender,
    decision: UseNodes,
    nodes: dict[str, NodeReport],
    choice: Choice,
    until: float,
) -> str:
    """Lend these nodes, one lease each, the rest in the next step; why it goes no further, empty: it does."""
    problem = ""
    for name in decision.nodes:
        if time.time() >= until:
            site.wake.set()
            break
        found = choice.lease(nodes[name], decision)
        if found is None:
            continue
        if await issue(site, found.issue, found.shares, node=name):
            lender.failing.succeeded()
            continue
        why = lender.refusals(name).reason
        lender.failing.failed(time.time(), why)
        problem = f"{name} could not be lent: {why}"
        if lender.config.mode == "preemptible" or lender.failing.waiting(time.time()):
            break  # what the scheduler says of one node it most likely says of all
    return problem


def _take_back(
    site: SiteState, lender: Lender, decision: LeaveNodes, nodes: dict[str, NodeReport], now: float
) -> None:
    by_node = {pilot.node: pilot for pilot in site.leases}
    for name in decision.nodes:
        report = nodes.get(name)
        taken = report is not None and report.use is NodeUse.TAKEN
        pilot = by_node[name]
        if not (taken and _yields(lender, pilot, now)):
            _end(site, pilot, decision.reason)


def _yields(lender: Lender, pilot: Pilot, now: float) -> bool:
    """Whether the scheduler is about to preempt a lease, with its own grace time."""
    if lender.config.mode != "preemptible" or pilot.state is not PilotState.RUNNING:
        return False
    return now - lender.yielding.setdefault(pilot.id, now) < SUSPENDED


def _forget_false_alarms(site: SiteState, lender: Lender, nodes: dict[str, NodeReport]) -> None:
    """A scheduler may change its mind on the nodes that it gives to a job."""
    for id in list(lender.yielding):
        pilot = site.pilots.get(id)
        report = nodes.get(pilot.node) if pilot is not None else None
        if report is not None and report.use is NodeUse.IDLE:
            del lender.yielding[id]


def _withdraw_late(site: SiteState, lender: Lender, now: float) -> None:
    """A lease that still waits in the queue waits for a node that somebody else has, or at a limit."""
    for pilot in site.leases:
        late = pilot.state is PilotState.QUEUED and now - pilot.submitted > QUEUED_TOO_LONG
        if late and not pilot.cancel_reason:
            lender.waited_in_vain(pilot.node, now)
            waited = format_duration(now - pilot.submitted)
            _end(site, pilot, f"the scheduler has not started it on node {pilot.node} for {waited}")


def _give_up_forlorn(site: SiteState, lender: Lender, now: float) -> None:
    """A lease without any worker holds a node for nothing."""
    leases = {pilot.id: pilot for pilot in site.leases if pilot.state is PilotState.RUNNING}
    for known in (lender.forlorn, lender.yielding):
        for id in known.keys() - leases.keys():
            del known[id]
    workers = workers_of(site)
    for id, pilot in leases.items():
        lender.has_started(pilot.node)
        if id in workers:
            lender.forlorn.pop(id, None)
        elif now - lender.forlorn.setdefault(id, now) > FORLORN:
            _end(site, pilot, f"no worker of it has been heard of for {format_duration(FORLORN)}")


def _end(site: SiteState, pilot: Pilot, reason: str) -> None:
    if not pilot.cancel_reason:
        pilot.cancel_reason = reason
        site.explain("withdrawn", reason, pilot)


def _say(site: SiteState, lender: Lender, reason: str) -> None:
    """Keep why no more is lent, once; a step without a reason forgets it."""
    if reason == lender.reason:
        return
    if reason:
        held = counted(len(site.leases), "node")
        row = site.explain("withheld", f"{held} lent, no more for now: {reason}", replacing=lender.row)
        lender.row = row
    else:
        lender.row = None
    lender.reason = reason
