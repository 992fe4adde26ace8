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
from adaptor.decisions.actions import Prolong
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.questions import Answer, Intend, IntendChange, Reply, RequestChanged, Submit
from adaptor.errors import AdaptorError, JournalError
from adaptor.journal.credits import write_entry
from adaptor.model import Request
from adaptor.processes.commands import module_command
from adaptor.reports import Remedy
from backends.base import ChangeRefused, PilotOrder, SubmitRefused, SubmitUncertain


def intend(site: Site, intent: Intend) -> Reply:
    """Write down which pilots are about to be asked for, and reserve what they may cost.

    Raises JournalError: none is written down.
    """
    core, first = site.core, intent.submits[0]
    now, ledger, payers = core.now(), core.treasury.ledger, first.demand.payers
    problem = ""

    def reserve(db: sqlite3.Connection, id: int) -> bool:
        nonlocal problem
        try:
            entry = ledger.reserve(
                id, site.name, intent.asked, first.kind, payers, now, first.per, first.crafted.paid
            )
            write_entry(db, entry)
        except OverBudgetError as error:
            problem = str(error)
        return not problem

    crafted = [submit.crafted for submit in intent.submits]
    pilots = core.journal.add_pilots(
        site.name, site.tag_prefix, crafted, now, first.demand.bag, reserve, first.node
    )
    if pilots and not first.node:
        site.withheld.clear()
    return Reply(now=now, pilot=pilots.start, tags=tuple(map(site.tag_of, pilots)), problem=problem)


def reserve_more(site: Site, intent: IntendChange | Prolong) -> Reply:
    """Reserve what a change may cost, before it is asked for, or more time. Raises JournalError."""
    now, treasury = site.core.now(), site.core.treasury
    try:
        if isinstance(intent, Prolong):
            treasury.prolong(intent.pilot, intent.paid)
        else:
            treasury.hold_for(intent.action.pilot, intent.asked)
    except OverBudgetError as error:
        return Reply(now=now, problem=str(error))
    return Reply(now=now)


async def submit(site: Site, asked: Submit, pool: ThreadPoolExecutor | None) -> Reply:
    """Submit equal pilots. `pool`: threads for the call that waits; None: those of all calls."""
    pilots, demand, request = asked.pilots, asked.demand, asked.pilots[0].request

    def call() -> tuple[str, ...]:
        order = _order_of(site, pilots[0], request, demand, len(pilots))
        if len(pilots) > 1:
            return tuple(site.backend.submit_array(order))
        return (site.backend.submit(order),)

    return await _order(site, pool, call)


async def reshape(site: Site, action: Reshape) -> Reply:
    """Change the request of a queued pilot."""
    pilot = site.pilots[action.pilot]
    job, request = pilot.job, action.crafted.request
    assert job is not None

    def call() -> tuple[str, ...]:
        site.backend.reshape(job, _order_of(site, pilot, request, action.demand))
        return (job,)

    return await _order(site, None, call)


async def _order(site: Site, pool: ThreadPoolExecutor | None, call: Callable[[], tuple[str, ...]]) -> Reply:
    """Call the scheduler in a thread, and put the jobs or the error into a reply. Raises JournalError."""
    try:
        jobs = await asyncio.get_running_loop().run_in_executor(pool, call)
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
    return Reply(now=site.core.now(), jobs=jobs)


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


def _order_of(site: Site, pilot: Pilot, request: Request, demand: Demand, pilots: int = 1) -> PilotOrder:
    """The order to the scheduler for a pilot, or for the first of several equal ones.

    Several have the folder of their array, in which each makes its own once it runs (`backends.arrays`).

    Raises AdaptorError: the folder cannot be made.
    """
    path = site.folder(pilot)
    folder = site.machine.private_folder(path if pilots == 1 else path.parent)
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
        pilots=pilots,
    )
