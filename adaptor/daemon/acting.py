"""Carrying actions out: nodes are used and given back, and the journal says what was done and why."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from adaptor.crafting.situation import Withdraw, Withhold
from adaptor.daemon.site import Site
from adaptor.daemon.submitting import submit
from adaptor.decisions.actions import (
    Action,
    End,
    Explain,
    GiveBack,
    GiveUp,
    KeepForecast,
    Remark,
    SubmitRequest,
    Wake,
    WithdrawStuck,
    WithholdNodes,
)
from adaptor.decisions.step import Answer
from adaptor.scheduling.workers import Worker
from adaptor.units import counted
from backends.base import SchedulerError
from backends.donation import nodes_at_once

log = logging.getLogger(__name__)

LONGEST = 30.0
"""Seconds after which no more donated nodes are used: what was seen of the nodes is old by then."""


async def carry_out(site: Site, action: Action) -> None:
    """Write an action down that the step has carried out, or that changes nothing at the site.

    Raises JournalError.
    """
    match action:
        case Withhold(reason):
            site.withhold(reason)
        case WithholdNodes(reason):
            _withhold_nodes(site, reason)
        case GiveBack():
            await site.core.commit()
            site.explain("withdrawn", action.reason, site.pilots[action.pilot])
        case Withdraw() | WithdrawStuck() | End():
            site.explain("withdrawn", action.reason, site.pilots[action.pilot])
        case Remark():
            site.explain("problem", action.text, site.pilots[action.pilot])
        case Explain(kind, text):
            site.explain(kind, text)
        case GiveUp():
            await site.core.commit()
        case KeepForecast():
            site.core.keep_forecast(action)
        case Wake(name):
            site.core.wakes[name].set()


def _withhold_nodes(site: Site, reason: str) -> None:
    donation = site.memory.donation
    if donation is None:
        return
    told = f"{counted(len(site.memory.donated), 'donated node')} in use, no more for now: {reason}"
    donation.row = site.explain("withheld", told, replacing=donation.row) if reason else None


async def use_nodes(site: Site, submits: Sequence[SubmitRequest]) -> str:
    """Submit pilots for nodes: to a scheduler one by one; agents are started on several at a time.

    Returns why one could not be used; empty: all could.

    Raises JournalError: one could not be written down.
    """
    donation = site.memory.settings.donation
    nodes = _NodeSubmits(site, is_preemptible=donation is not None and donation.preemptible)
    await several(nodes.submit, submits, nodes_at_once(site.config))
    return nodes.problem


class _NodeSubmits:
    """What the scheduler says of one node it most likely says of all; agents fail one by one."""

    def __init__(self, site: Site, *, is_preemptible: bool) -> None:
        self._site, self.is_preemptible = site, is_preemptible
        self._until = site.core.now() + LONGEST
        self._no_more = False
        self.problem = ""

    async def submit(self, action: SubmitRequest, pool: ThreadPoolExecutor) -> None:
        site, donation = self._site, self._site.memory.donation
        if self._no_more or donation is None:
            return
        if site.core.now() >= self._until:
            self._no_more = True
            site.wake.set()
            return
        if await submit(site, action, pool) is Answer.TAKEN:
            return
        self.problem = f"{action.node} could not be used: {donation.refusals(action.node).reason}"
        self._no_more |= self.is_preemptible or donation.failing.waiting(site.core.now())


async def release_node(site: Site, worker: Worker) -> None:
    """A worker has left its node and its pilot goes on: give the node back where that can be done.

    Raises JournalError: it was given back, and that could not be written down.
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
    now, treasury = site.core.now(), site.core.treasury
    charge = partial(treasury.give_back, pilot=pilot, processors=worker.processors, at=now)
    site.core.journal.note_freed(pilot.id, worker.processors, now, charge)
    site.explain("state", f"gave node {worker.node} back: no task was left for it", pilot)


T = TypeVar("T")


async def several(
    work: Callable[[T, ThreadPoolExecutor], Awaitable[None]], items: Iterable[T], at_once: int
) -> None:
    """Begin `work` on each item in order, on `at_once` of them at the same time.

    Its calls wait in threads of their own, which no other work needs if they hang. After the first problem it
    begins no more, waits for those that it has begun, and raises the problem.
    """
    pool = ThreadPoolExecutor(at_once, "several")
    turn = asyncio.Semaphore(at_once)
    problems: list[BaseException] = []

    async def do(item: T) -> None:
        async with turn:
            if problems:
                return
            try:
                await work(item, pool)
            except BaseException as problem:
                problems.append(problem)
                raise

    try:
        await asyncio.gather(*map(do, items), return_exceptions=True)
    finally:
        pool.shutdown(wait=False)
    if problems:
        raise problems[0]
