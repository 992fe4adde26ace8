"""Carrying actions out: requests are submitted and withdrawn, nodes are given back, reasons are kept."""

from __future__ import annotations

import asyncio
import enum
import logging
import re
import sqlite3
from collections.abc import Sequence

from adaptor.budget.errors import OverBudgetError
from adaptor.crafting.situation import Demand, TaskShape, Withdraw, Withhold
from adaptor.daemon.remote.machines import python_of
from adaptor.daemon.site import Site, Withheld
from adaptor.decisions.actions import (
    Action,
    End,
    Explain,
    GiveUp,
    LengthenPad,
    Remark,
    SubmitRequest,
    Wake,
    WithdrawStuck,
    WithholdNodes,
)
from adaptor.decisions.pilots import Pilot
from adaptor.decisions.requests import billed
from adaptor.errors import AdaptorError, JournalError
from adaptor.model import PilotState
from adaptor.scheduling.workers import Worker
from adaptor.units import counted
from backends.base import PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain

log = logging.getLogger(__name__)

LONGEST = 30.0
"""Seconds after which no more donated nodes are used: what was seen of the nodes is old by then."""
_DIGITS = re.compile(r"[\d.]+")


async def carry_out(site: Site, actions: Sequence[Action]) -> None:
    """Do as was decided, as long as the scheduler takes requests. Raises JournalError."""
    work = _Work(site)
    try:
        for action in actions:
            await work.do(action)
    finally:
        site.memory.submitting = ()
    await cancel_unwanted(site)


class _Work:
    """The actions of one step on their way."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._until = site.core.now() + LONGEST
        self._refused: set[TaskShape] = set()
        """The shapes of tasks for which no formal request was taken."""
        self._failed = False
        """Whether the scheduler failed at a formal request."""
        self._no_more_nodes = False
        self._node_problem = ""

    async def do(self, action: Action) -> None:
        match action:
            case SubmitRequest():
                await self._submit(action)
            case Withhold(reason):
                if not self._refused and not self._failed:
                    _withhold(self._site, reason)
            case WithholdNodes(reason):
                _withhold_nodes(self._site, self._node_problem or reason)
            case GiveUp():
                await _give_up(self._site, action)
            case Wake(name):
                self._site.core.wakes[name].set()
            case _:
                _change(self._site, action)

    async def _submit(self, action: SubmitRequest) -> None:
        await cancel_unwanted(self._site)
        self._site.memory.submitting = self._site.memory.submitting[1:]  # it has a pilot from now on
        if action.node:
            await self._submit_for_node(action)
        elif not self._failed and action.demand.shape not in self._refused:
            answer = await submit(self._site, action)
            self._failed = answer is Answer.NONE
            if answer is Answer.REFUSED:
                self._refused.add(action.demand.shape)

    async def _submit_for_node(self, action: SubmitRequest) -> None:
        """What the scheduler says of one node it most likely says of all; agents fail one by one."""
        site, donation = self._site, self._site.memory.donation
        if self._no_more_nodes or donation is None:
            return
        if site.core.now() >= self._until:
            self._no_more_nodes = True
            site.wake.set()
            return
        if await submit(site, action) is Answer.TAKEN:
            return
        self._node_problem = f"{action.node} could not be used: {donation.refusals(action.node).reason}"
        preemptible = site.memory.settings.donation is not None and site.memory.settings.donation.preemptible
        self._no_more_nodes = preemptible or donation.failing.waiting(site.core.now())


class Answer(enum.Enum):
    """What became of a request."""

    TAKEN = enum.auto()
    REFUSED = enum.auto()
    """By the scheduler, or because a budget does not hold it: another request may be taken."""
    NONE = enum.auto()
    """The scheduler failed."""


async def _give_up(site: Site, action: GiveUp) -> None:
    """Raises JournalError."""
    core = site.core
    if tasks := core.broker.give_up(action.bag, action.reason):
        await core.commit()
        site.explain("problem", f"bag {action.bag}: gave {counted(tasks, 'task')} up: {action.reason}")
        for wake in core.wakes.values():
            wake.set()


def _change(site: Site, action: Withdraw | WithdrawStuck | End | Remark | Explain | LengthenPad) -> None:
    """What changes no more than what is remembered of the site, and what the user is told."""
    memory = site.memory
    match action:
        case Withdraw() | WithdrawStuck() | End():
            if (pilot := memory.withdraw(action, site.core.now())) is not None:
                site.explain("withdrawn", action.reason, pilot)
        case Remark():
            if (pilot := memory.remark(action)) is not None:
                site.explain("problem", action.text, pilot)
        case Explain(kind, text):
            site.explain(kind, text)
        case LengthenPad(pad):
            memory.lengthen_pad(site.core.broker, pad)


def _withhold(site: Site, reason: str) -> None:
    """Keep the reason; where only its numbers have changed, in place of the last one."""
    last = site.withheld
    if reason == last.text:
        return
    same = _DIGITS.sub("", reason) == _DIGITS.sub("", last.text)
    row = site.explain("withheld", reason, replacing=last.row if same else None)
    site.withheld = Withheld(reason, row)


def _withhold_nodes(site: Site, reason: str) -> None:
    """Keep why no more donated nodes are used, once; a step without a reason forgets it."""
    donation = site.memory.donation
    if donation is None or reason == donation.reason:
        return
    if reason:
        held = counted(len(site.memory.donated), "donated node")
        told = f"{held} in use, no more for now: {reason}"
        donation.row = site.explain("withheld", told, replacing=donation.row)
    else:
        donation.row = None
    donation.reason = reason


async def submit(site: Site, action: SubmitRequest) -> Answer:
    """Write the intent down, then submit. Raises JournalError."""
    now, memory = site.core.now(), site.memory
    try:
        pilot = _intend(site, action, now)
    except OverBudgetError as error:  # another site has spent it since this was decided
        _withhold(site, str(error))
        return Answer.REFUSED
    if not action.node:
        site.withheld = Withheld()
    try:
        job = await asyncio.to_thread(lambda: site.backend.submit(_order(site, pilot, action.demand)))
    except JournalError:
        raise
    except AdaptorError as error:
        refused = isinstance(error, SubmitRefused)
        memory.not_submitted(pilot, str(error), now, refused=refused)
        if isinstance(error, SubmitUncertain):
            pilot.note = f"whether the scheduler has it is not yet known: {error}"
            site.explain("problem", pilot.note, pilot)
        else:
            _refused(site, pilot, error)
        return Answer.REFUSED if refused else Answer.NONE
    memory.submitted(pilot, job)
    site.note_change(pilot)
    site.explain("issued", action.crafted.reason, pilot)
    return Answer.TAKEN


def _intend(site: Site, action: SubmitRequest, now: float) -> Pilot:
    """Write down that a request is about to be submitted, and reserve what it may cost.

    Raises:
        OverBudgetError: a budget does not hold it; nothing is written down.
    """
    crafted, core = action.crafted, site.core

    def reserve(db: sqlite3.Connection, id: int) -> None:
        request = billed(site.memory.rules, crafted.request)
        core.treasury.reserve(db, id, site.name, request, action.kind, action.payers, now)

    bag = action.demand.bag
    id = core.journal.add_pilot(site.name, site.tag_prefix, crafted, now, bag, reserve, action.node)
    return site.memory.add_pilot(core.broker, id, f"{site.tag_prefix}{id}", action, now)


def _refused(site: Site, pilot: Pilot, error: AdaptorError) -> None:
    """The request is certainly not in the queue."""
    pilot.end(PilotState.REFUSED, site.core.now(), str(error))
    site.note_change(pilot)
    site.memory.forget(site.core.broker, pilot)
    site.core.treasury.settle([pilot.id])
    site.explain("refused" if isinstance(error, SubmitRefused) else "problem", str(error), pilot)


def _order(site: Site, pilot: Pilot, demand: Demand) -> PilotOrder:
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


async def cancel_unwanted(site: Site) -> None:
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


async def release_node(site: Site, worker: Worker) -> None:
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
    site.core.journal.note_freed(pilot.id, worker.processors, site.core.now())
    site.explain("state", f"gave node {worker.node} back: no task was left for it", pilot)
