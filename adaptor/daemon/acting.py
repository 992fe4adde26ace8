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
from adaptor.decisions import actions
from adaptor.decisions.step import Answer
from adaptor.scheduling.workers import Worker
from adaptor.units import counted
from backends.base import SchedulerError
from backends.donation import nodes_at_once

log = logging.getLogger(__name__)

LONGEST = 30.0
"""Seconds after which no more donated nodes are used: what was seen of the nodes is old by then."""


async def carry_out(site: Site, action: actions.Action) -> None:
    """Write an action down that the step has carried out, or that changes nothing at the site.

    Raises JournalError.
    """
    match action:
        case Withhold(reason):
            site.withhold(reason)
        case actions.WithholdNodes(reason):
            _withhold_nodes(site, reason)
        case actions.GiveBack():
            await site.core.commit()
            site.explain("withdrawn", action.reason, site.pilots[action.pilot])
        case Withdraw() | actions.WithdrawStuck() | actions.End():
            site.explain("withdrawn", action.reason, site.pilots[action.pilot])
        case actions.Remark():
            site.explain("problem", action.text, site.pilots[action.pilot])
        case actions.Explain(kind, text):
            site.explain(kind, text)
        case actions.GiveUp():
            await site.core.commit()
        case actions.KeepForecast():
            site.core.keep_forecast(action)
        case actions.Wake(name):
            site.core.wakes[name].set()


def _withhold_nodes(site: Site, reason: str) -> None:
    if (donation := site.memory.donation) is not None:
        told = f"{counted(len(site.memory.donated), 'donated node')} in use, no more for now: {reason}"
        donation.row = site.explain("withheld", told, replacing=donation.row) if reason else None


async def use_nodes(site: Site, submits: Sequence[actions.SubmitRequest]) -> str:
    """Submit pilots for nodes: to a scheduler one by one; agents are started on several at a time.

    What the scheduler says of one node it most likely says of all; agents fail one by one. Returns why one
    could not be used; empty: all could. Raises JournalError: one could not be written down.
    """
    donation, settings = site.memory.donation, site.memory.settings.donation
    is_preemptible = settings is not None and settings.preemptible
    until, no_more, problem = site.core.now() + LONGEST, False, ""

    async def use(action: actions.SubmitRequest, pool: ThreadPoolExecutor) -> None:
        nonlocal no_more, problem
        if no_more or donation is None:
            return
        if site.core.now() >= until:
            no_more = True
            site.wake.set()
        elif await submit(site, action, pool) is not Answer.TAKEN:
            problem = f"{action.node} could not be used: {donation.refusals(action.node).reason}"
            no_more |= is_preemptible or donation.failing.waiting(site.core.now())

    await several(use, submits, nodes_at_once(site.config))
    return problem


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
