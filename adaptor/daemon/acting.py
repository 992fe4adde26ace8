"""Carrying actions out: requests are submitted and withdrawn, nodes are given back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from adaptor.crafting.situation import Reshape, ShapeAt, Withdraw, Withhold
from adaptor.daemon.several import several
from adaptor.daemon.site import Site
from adaptor.daemon.submitting import Answer, reshape, submit
from adaptor.decisions.actions import (
    Action,
    End,
    Explain,
    GiveUp,
    KeepForecast,
    LengthenPad,
    Remark,
    SubmitRequest,
    Wake,
    WithdrawStuck,
    WithholdNodes,
)
from adaptor.scheduling.workers import Worker
from adaptor.units import counted
from backends.agents.agents import at_once
from backends.base import SchedulerError

log = logging.getLogger(__name__)

LONGEST = 30.0
"""Seconds after which no more donated nodes are used: what was seen of the nodes is old by then."""


async def carry_out(site: Site, actions: Sequence[Action]) -> None:
    """Do as was decided, as long as the scheduler takes requests. Raises JournalError."""
    work = _Work(site)
    try:
        for for_nodes, together in groupby(actions, _is_for_node):
            if for_nodes:
                await work.use_nodes([each for each in together if isinstance(each, SubmitRequest)])
                continue
            for action in together:
                await work.do(action)
    finally:
        site.memory.submitting = ()
    await cancel_unwanted(site)


def _is_for_node(action: Action) -> bool:
    return isinstance(action, SubmitRequest) and bool(action.node)


class _Work:
    """The actions of one step on their way."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._until = site.core.now() + LONGEST
        self._refused: set[ShapeAt] = set()
        """The shapes of tasks for which no formal request was taken, with the partition."""
        self._failed = False
        """Whether the scheduler failed at a formal request."""
        self._no_more_nodes = False
        self._node_problem = ""
        self._next = asyncio.Lock()

    async def do(self, action: Action) -> None:
        match action:
            case SubmitRequest():
                await self._submit(action)
            case Withhold(reason):
                if not self._refused and not self._failed:
                    self._site.withhold(reason)
            case WithholdNodes(reason):
                _withhold_nodes(self._site, self._node_problem or reason)
            case Reshape():
                await reshape(self._site, action)
            case GiveUp():
                await _give_up(self._site, action)
            case KeepForecast():
                self._site.core.keep_forecast(action)
            case Wake(name):
                self._site.core.wakes[name].set()
            case _:
                _change(self._site, action)

    async def use_nodes(self, actions: Sequence[SubmitRequest]) -> None:
        """Submit pilots for nodes: to a scheduler one by one; agents are started on several at a time.

        Raises JournalError.
        """
        count = 1 if self._is_preemptible else at_once(self._site.config)
        await several(self._submit_for_node, actions, count)

    async def _submit(self, action: SubmitRequest) -> None:
        await self._prepare()
        shape = (action.demand.shape, action.crafted.partition)
        if self._failed or shape in self._refused:
            return
        answer = await submit(self._site, action)
        self._failed = answer is Answer.NONE
        if answer is Answer.REFUSED:
            self._refused.add(shape)

    async def _prepare(self) -> None:
        """Before each submission; it follows without a pause."""
        async with self._next:
            await cancel_unwanted(self._site)
        self._site.memory.submitting = self._site.memory.submitting[1:]  # it has a pilot from now on

    @property
    def _is_preemptible(self) -> bool:
        donation = self._site.memory.settings.donation
        return donation is not None and donation.preemptible

    async def _submit_for_node(self, action: SubmitRequest, pool: ThreadPoolExecutor) -> None:
        """What the scheduler says of one node it most likely says of all; agents fail one by one."""
        await self._prepare()
        site, donation = self._site, self._site.memory.donation
        if self._no_more_nodes or donation is None:
            return
        if site.core.now() >= self._until:
            self._no_more_nodes = True
            site.wake.set()
            return
        if await submit(site, action, pool) is Answer.TAKEN:
            return
        self._node_problem = f"{action.node} could not be used: {donation.refusals(action.node).reason}"
        self._no_more_nodes |= self._is_preemptible or donation.failing.waiting(site.core.now())


async def _give_up(site: Site, action: GiveUp) -> None:
    """Raises JournalError."""
    core = site.core
    if tasks := core.broker.give_up(action.bag, action.reason, action.task):
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


async def cancel_unwanted(site: Site) -> None:
    """Cancel the pilots that have a reason to go and are still there."""
    now = site.core.now()
    unwanted = [pilot for pilot in site.pilots.values() if pilot.job is not None and pilot.to_cancel(now)]
    jobs = [pilot.job for pilot in unwanted if pilot.job is not None]
    if jobs and await site.cancel(jobs):
        for pilot in unwanted:
            pilot.cancel_sent = now
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
