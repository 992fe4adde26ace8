"""Submitting and changing requests: the intent is written down first, then the scheduler is asked.

The intent of a change is what it may cost; what the scheduler has of a request in the end is read from its
answers.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from adaptor.budget.errors import OverBudgetError
from adaptor.crafting.situation import Demand, Reshape
from adaptor.daemon.remote.machines import python_of
from adaptor.daemon.site import Site
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.questions import Answer, Intend, Reply, RequestChanged, Submit
from adaptor.errors import AdaptorError, JournalError
from adaptor.journal.credits import write_entry
from adaptor.model import Request
from adaptor.processes.commands import module_command
from adaptor.reports import Remedy
from backends.base import ChangeRefused, PilotOrder, SubmitRefused, SubmitUncertain


def intend(site: Site, intent: Intend) -> Reply:
    """Write down that this is about to be asked, and reserve what it may cost. Raises JournalError."""
    core, action, asked = site.core, intent.action, intent.asked
    now, treasury = core.now(), core.treasury
    try:
        if isinstance(action, Reshape):
            treasury.hold_for(action.pilot, asked)
            return Reply(now=now)

        def reserve(db: sqlite3.Connection, id: int) -> None:
            entry = treasury.ledger.reserve(id, site.name, asked, action.kind, action.payers, now, action.per)
            write_entry(db, entry)

        id = core.journal.add_pilot(
            site.name, site.tag_prefix, action.crafted, now, action.demand.bag, reserve, action.node
        )
    except OverBudgetError as error:
        return Reply(now=now, problem=str(error))
    if not action.node:
        site.withheld.clear()
    return Reply(now=now, pilot=id, tag=f"{site.tag_prefix}{id}")


async def submit(site: Site, asked: Submit, pool: ThreadPoolExecutor | None) -> Reply:
    """`pool`: for the call that waits; None: that of all calls."""
    pilot, demand = asked.pilot, asked.demand
    return await _order(
        site, pool, lambda: site.backend.submit(_order_of(site, pilot, pilot.request, demand))
    )


async def reshape(site: Site, action: Reshape) -> Reply:
    """Change the request of a queued pilot."""
    pilot = site.pilots[action.pilot]
    job, request = pilot.job, action.crafted.request
    assert job is not None
    return await _order(
        site, None, lambda: site.backend.reshape(job, _order_of(site, pilot, request, action.demand))
    )


async def _order(site: Site, pool: ThreadPoolExecutor | None, call: Callable[[], str | None]) -> Reply:
    """What became of an order to the scheduler, which may return a job. Raises JournalError."""
    try:
        job = await asyncio.get_running_loop().run_in_executor(pool, call)
    except JournalError:
        raise
    except AdaptorError as error:
        answer, remedy = Answer.FAILED, Remedy.OTHER
        if isinstance(error, SubmitRefused):
            remedy = error.remedy
        if isinstance(error, (SubmitRefused, ChangeRefused)):
            answer = Answer.REFUSED
        elif isinstance(error, SubmitUncertain):
            answer = Answer.UNCERTAIN
        return Reply(now=site.core.now(), answer=answer, remedy=remedy, problem=str(error))
    return Reply(now=site.core.now(), job=job or "")


def change_request(site: Site, changed: RequestChanged) -> None:
    """Write down what a pilot asks for now; its reservation changes with it. Raises JournalError."""
    pilot, treasury = changed.pilot, site.core.treasury
    site.core.journal.change_request(
        pilot.id,
        pilot.request,
        pilot.predicted_start,
        changed.reason,
        lambda db, id: treasury.change(db, id, changed.asked),
    )


def _order_of(site: Site, pilot: Pilot, request: Request, demand: Demand) -> PilotOrder:
    """What a pilot asks its scheduler for. Raises AdaptorError: the pilot's folder cannot be made."""
    folder = site.machine.private_folder(site.folder(pilot))
    return PilotOrder(
        tag=pilot.tag,
        request=request,
        task=demand.task,
        directory=folder,
        worker=module_command(python_of(site.config), "adaptor.worker"),
        environment={
            "ADAPTOR_ACCESS": str(site.access),
            "ADAPTOR_PILOT": str(pilot.id),
            "ADAPTOR_DIRECTORY": str(folder),
            **({"ADAPTOR_GPU_TYPE": demand.task.gpu_type} if demand.task.gpu_type else {}),
        },
        node=pilot.node,
        partition=pilot.partition,
    )
