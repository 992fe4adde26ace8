"""Submitting and changing requests: the intent is written down first, then the scheduler is asked.

The intent of a change is what it may cost; what the scheduler has of a request in the end is read from its
answers.
"""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor

from adaptor.budget.errors import OverBudgetError
from adaptor.crafting.reasons import shown
from adaptor.crafting.situation import Demand, Reshape
from adaptor.daemon.remote.machines import python_of
from adaptor.daemon.site import Site, Withheld
from adaptor.decisions.actions import SubmitRequest
from adaptor.decisions.pilots import Pilot, request_told
from adaptor.decisions.requests import billed
from adaptor.decisions.step import Answer
from adaptor.errors import AdaptorError, JournalError
from adaptor.journal.credits import write_entry
from adaptor.model import PilotState, Request
from adaptor.processes.commands import module_command
from adaptor.reports import JobReport, JobState
from adaptor.units import format_duration
from backends.base import ChangeRefused, PilotOrder, SubmitRefused, SubmitUncertain


async def submit(site: Site, action: SubmitRequest, pool: ThreadPoolExecutor | None = None) -> Answer:
    """Write the intent down, then submit. Raises JournalError.

    `pool`: for the call that waits; None: that of all calls.
    """
    now, memory = site.core.now(), site.memory
    try:
        pilot = _intend(site, action, now)
    except OverBudgetError as error:  # another site has spent it since this was decided
        site.withhold(str(error))
        return Answer.REFUSED
    if not action.node:
        site.withheld = Withheld()
    try:
        job = await asyncio.get_running_loop().run_in_executor(
            pool, lambda: site.backend.submit(order_of(site, pilot, pilot.request, action.demand))
        )
    except JournalError:
        raise
    except AdaptorError as error:
        refused = isinstance(error, SubmitRefused)
        memory.not_submitted(pilot, str(error), now, refused=refused)
        if isinstance(error, SubmitUncertain):
            note = f"whether the scheduler has it is not yet known: {error}"
            pilot = memory.change(pilot, notes={"": note})
            site.explain("problem", pilot.note, pilot)
        else:
            _refused(site, pilot, error)
        return Answer.REFUSED if refused else Answer.NONE
    site.note_change(memory.submitted(pilot, job))
    site.explain("issued", action.crafted.reason, pilot)
    return Answer.TAKEN


async def reshape(site: Site, action: Reshape) -> Answer:
    """Change the request of a queued pilot. Raises JournalError."""
    pilot, crafted = site.pilots[action.pilot], action.crafted
    job, asked = pilot.job, billed(site.memory.rules, crafted.request)
    assert job is not None
    try:
        site.core.treasury.hold_for(pilot.id, asked)
    except OverBudgetError as error:  # another site has spent it since this was decided
        site.withhold(str(error))
        return Answer.NONE
    try:
        await asyncio.to_thread(
            lambda: site.backend.reshape(job, order_of(site, pilot, crafted.request, action.demand))
        )
    except JournalError:
        raise
    except AdaptorError as error:
        site.explain("problem", f"its request is not changed as far as known: {error}", pilot)
        site.wake.set()
        return Answer.REFUSED if isinstance(error, ChangeRefused) else Answer.NONE
    _write_request(site, pilot, crafted.request, crafted.predicted_start, crafted.reason)
    site.explain("reshaped", crafted.reason, pilot)
    return Answer.TAKEN


def take_in_request(site: Site, pilot: Pilot, report: JobReport) -> None:
    """Take in what the scheduler says that a pilot asks for. Raises JournalError."""
    reserved = site.core.treasury.ledger.open_pilots.get(pilot.id)
    if pilot.node or reserved is None:
        return
    known, held = billed(site.memory.rules, pilot.request), Request(reserved.p, reserved.tr)
    told = request_told(pilot, report, known, held)
    if told != known:
        site.memory.keep(pilot.reshaped_to(told, site.core.now()))
        _write_request(site, pilot, told, pilot.predicted_start, None)
        site.explain("state", _has_become(report, told, known), pilot)
    elif (told.p, told.tr) != (held.p, held.tr):
        with site.core.journal.transaction() as db:
            site.core.treasury.change(db, pilot.id, told)


def _has_become(report: JobReport, told: Request, known: Request) -> str:
    """What the scheduler has made of a request, or its owner by hand."""
    started = report.state is not JobState.QUEUED
    if started and told.p == known.p and known.least is not None and known.least <= told.tr < known.tr:
        got = format_duration(told.tr)
        return f"started with {got}: the free slot held that much of {shown(known)}"
    return f"the scheduler has it as {shown(told)}, no longer as {shown(known)}"


def _write_request(
    site: Site, pilot: Pilot, request: Request, predicted_start: float | None, reason: str | None
) -> None:
    """The request of a pilot is another one now; its reservation changes with it. Raises JournalError."""
    treasury, asked = site.core.treasury, billed(site.memory.rules, request)
    site.core.journal.change_request(
        pilot.id, request, predicted_start, reason, lambda db, id: treasury.change(db, id, asked)
    )


def _intend(site: Site, action: SubmitRequest, now: float) -> Pilot:
    """Write down that a request is about to be submitted, and reserve what it may cost.

    Raises OverBudgetError: a budget does not hold it; nothing is written down.
    """
    crafted, core = action.crafted, site.core

    def reserve(db: sqlite3.Connection, id: int) -> None:
        request = billed(site.memory.rules, crafted.request)
        ledger, gpus = core.treasury.ledger, action.gpus_per_processor
        write_entry(db, ledger.reserve(id, site.name, request, action.kind, action.payers, now, gpus))

    bag = action.demand.bag
    id = core.journal.add_pilot(site.name, site.tag_prefix, crafted, now, bag, reserve, action.node)
    return site.memory.add_pilot(core.broker, id, f"{site.tag_prefix}{id}", action, now)


def _refused(site: Site, pilot: Pilot, error: AdaptorError) -> None:
    """The request is certainly not in the queue."""
    refused = pilot.over(PilotState.REFUSED, site.core.now(), str(error))
    site.note_change(site.memory.keep(refused))
    site.memory.forget(site.core.broker, pilot)
    site.core.treasury.settle([pilot.id])
    site.explain("refused" if isinstance(error, SubmitRefused) else "problem", str(error), pilot)


def order_of(site: Site, pilot: Pilot, request: Request, demand: Demand) -> PilotOrder:
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
