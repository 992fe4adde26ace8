"""Acting on decisions: requests are submitted and withdrawn, nodes are given back."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time

from adaptor.budget.accounting.ledger import Shares
from adaptor.crafting.situation import Demand, Issue, Withdraw
from adaptor.daemon.credits.affording import billed
from adaptor.daemon.credits.treasury import DONATED, EXPLICIT
from adaptor.daemon.pilots import Pilot
from adaptor.daemon.remote.machines import python_of
from adaptor.daemon.site_state import SiteState, Withheld
from adaptor.errors import AdaptorError, JournalError
from adaptor.model import PilotState
from adaptor.scheduling.donation_facts import DonatedNode
from adaptor.scheduling.workers import Worker
from backends.base import PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain

log = logging.getLogger(__name__)


async def issue(site: SiteState, decision: Issue, shares: Shares, node: str = "") -> bool:
    """Write the intent down, then submit; whether the scheduler took it. Raises JournalError.

    `shares` are those of the bags that pay for it; `node` is the one that it lends, if it does.
    """
    crafted = decision.crafted
    now = time.time()
    pilot = _intend(site, decision, shares, now, node)
    if not node:
        site.withheld = Withheld()
    refusals = site.refusals_of(pilot)
    try:
        pilot.job = await asyncio.to_thread(lambda: site.backend.submit(_order(site, pilot, decision.demand)))
    except JournalError:
        raise
    except AdaptorError as error:
        refusals.failed(now, str(error))
        if isinstance(error, SubmitUncertain):
            pilot.note = f"whether the scheduler has it is not yet known: {error}"
            site.explain("problem", pilot.note, pilot)
        else:
            _refused(site, pilot, error)
        return False
    refusals.succeeded()
    if pilot.state is PilotState.SUBMITTING:
        pilot.move(PilotState.QUEUED)
    site.note_change(pilot)
    site.explain("issued", crafted.reason, pilot)
    return True


def _intend(site: SiteState, decision: Issue, shares: Shares, now: float, node: str) -> Pilot:
    """Write down that a request is about to be submitted, and reserve what it may cost."""
    crafted, bag = decision.crafted, decision.demand.bag
    request = crafted.request

    def reserve(db: sqlite3.Connection, id: int) -> None:
        kind = DONATED if node else EXPLICIT
        site.core.treasury.reserve(db, id, site.name, billed(site, request), kind, shares, now)

    id = site.core.journal.add_pilot(site.name, site.tag_prefix, crafted, now, bag, reserve, node)
    pilot = Pilot(id, f"{site.tag_prefix}{id}", request, now, crafted.predicted_start, bag=bag, node=node)
    site.pilots[id] = pilot
    if bag is not None:
        site.core.broker.own_pilot(id, bag)
    if node:
        site.core.broker.use_node(id, DonatedNode(since=now))
    return pilot


def _refused(site: SiteState, pilot: Pilot, error: AdaptorError) -> None:
    """The request is certainly not in the queue."""
    pilot.end(PilotState.REFUSED, time.time(), str(error))
    site.note_change(pilot)
    site.pilots.pop(pilot.id, None)
    site.core.broker.forget_pilot(pilot.id)
    site.core.treasury.settle([pilot.id])
    kind = "refused" if isinstance(error, SubmitRefused) else "problem"
    site.explain(kind, str(error), pilot)


def _order(site: SiteState, pilot: Pilot, demand: Demand) -> PilotOrder:
    """Raises AdaptorError: the pilot's folder cannot be made."""
    folder = site.machine.private_folder(site.folder(pilot))
    return PilotOrder(
        tag=pilot.tag,
        request=pilot.request,
        processors_per_task=demand.processors_per_task,
        memory_per_task=demand.memory_per_task,
        directory=folder,
        worker=(python_of(site.config), "-m", "adaptor.worker"),
        environment={
            "ADAPTOR_ACCESS": str(site.access),
            "ADAPTOR_PILOT": str(pilot.id),
            "ADAPTOR_DIRECTORY": str(folder),
        },
        node=pilot.node,
    )


def withdraw(site: SiteState, decision: Withdraw) -> None:
    pilot = site.pilots.get(decision.pilot)
    if pilot is not None and not pilot.cancel_reason:
        pilot.cancel_reason = decision.reason
        site.explain("withdrawn", decision.reason, pilot)


async def cancel_unwanted(site: SiteState) -> None:
    """Cancel the pilots that have a reason to go and are still there."""
    unwanted = [
        pilot
        for pilot in site.pilots.values()
        if pilot.cancel_reason and pilot.job is not None and not pilot.cancel_sent
    ]
    jobs = [pilot.job for pilot in unwanted if pilot.job is not None]
    if jobs and await site.cancel(jobs):
        for pilot in unwanted:
            pilot.cancel_sent = True
        site.wake.set()


async def release_node(site: SiteState, worker: Worker) -> None:
    """A worker has left its node and its pilot goes on: give the node back where that can be done.

    Raises:
        JournalError: it was given back, and that could not be written down.
    """
    pilot = site.pilots.get(worker.pilot)
    others = any(other.node != worker.node for other in site.core.broker.of_pilot(worker.pilot))
    if not site.backend.can_release or pilot is None or pilot.job is None or not others:
        return
    job = pilot.job
    try:
        await asyncio.to_thread(lambda: site.backend.release(job, [worker.node]))
    except SchedulerError as error:
        log.info("node %s of pilot %d was not given back: %s", worker.node, pilot.id, error)
        return
    site.core.journal.note_freed(pilot.id, worker.processors, time.time())
    site.explain("state", f"gave node {worker.node} back: no task was left for it", pilot)
