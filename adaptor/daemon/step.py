"""Drives the steps of a site (`adaptor.decisions.step`): asks, does and writes down what they want."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from adaptor.backoff import Pace
from adaptor.config.policy import policy_of
from adaptor.crafting.situation import Reshape, Withhold
from adaptor.daemon.clock import midnight
from adaptor.daemon.core import Core
from adaptor.daemon.ground.threads import Threads
from adaptor.daemon.observing import (
    charge,
    doubt,
    keep_learned,
    look_at_nodes,
    look_at_pilots,
    note_pilot,
    note_pilots,
)
from adaptor.daemon.resting import goes_by_the_clock, look_after
from adaptor.daemon.site import Site
from adaptor.daemon.sites import limits_of
from adaptor.daemon.submitting import change_request, intend, reserve_more, reshape, submit
from adaptor.decisions.actions import Explain, KeepForecast, Prolong, Wake, WithholdNodes
from adaptor.decisions.decide import Decision, decide
from adaptor.decisions.questions import (
    Answer,
    Ask,
    Cancel,
    Commit,
    Intend,
    IntendChange,
    PilotChanged,
    PilotsChanged,
    PilotsEnded,
    Question,
    Reply,
    RequestChanged,
    Steps,
    Submit,
    Together,
)
from adaptor.decisions.step import Step
from adaptor.reports import OwnJob
from backends.donation import nodes_at_once
from backends.registry import backend_type

BURST = 20  # looks at a queue that may follow each other at once: those of a bag that begins and ends


async def run(site: Site, may_step: Callable[[], bool]) -> None:
    """Step whenever woken, after the pause that the type of the scheduler asks for.

    Many short bags or pilots wake a site all the time: beyond a burst it is looked at twice as often as
    `poll_interval` says, and no more. On this machine no scheduler is asked. Where an operator sets the least
    time between two looks, that is kept also in bursts.

    Raises JournalError: a step could not be written down.
    """
    kind, clock = backend_type(site.config.backend), asyncio.get_running_loop().time
    floor = policy_of(site.config).keys.poll_interval
    if floor is not None:
        pace = Pace(0, float(floor))
    else:
        pace = Pace(BURST, 0.0 if kind.on_this_machine else site.memory.settings.poll / 2)
    while True:
        await site.wake.wait()
        site.wake.clear()
        if not site.polled:
            site.stirred = clock()
        site.polled, site.looked = False, clock()
        if may_step():
            await step(site)
        await asyncio.sleep(max(kind.pause, pace.pause(clock())))


def poll(site: Site) -> None:
    """Wake a site, to be called each `poll` seconds; where nothing happens, it is looked at more rarely."""
    now, usual = asyncio.get_running_loop().time(), site.memory.settings.poll
    if _may_rest(site) and now < site.looked + look_after(usual, now - site.stirred) - usual / 2:
        return  # the next call comes nearer to the time at which a look is due
    if not site.wake.is_set():
        site.polled = True
        site.wake.set()


def _may_rest(site: Site) -> bool:
    """Whether looks at it that find nothing new may become rarer."""
    core, kind = site.core, backend_type(site.config.backend)
    if kind.on_this_machine or len(core.sites) > 1:  # other sites divide tasks by what is seen here
        return False
    return not goes_by_the_clock(site.memory, core.broker, core.ledger, core.now())


async def step(site: Site) -> None:
    """Observe, decide, act. Raises JournalError."""
    await drive(site, step_of(site).run())
    keep_learned(site)


async def cancel_all(site: Site, reason: str) -> None:
    for pilot in site.pilots.values():
        site.memory.change(pilot, leaving=pilot.leaving or reason)
    await drive(site, step_of(site).cancel_unwanted())


def step_of(site: Site) -> Step:
    return Step(site.core, site.memory, site.core.now())


_CHANGES_NOTHING = (Ask, Commit, Withhold, WithholdNodes, Explain, KeepForecast)


async def drive(site: Site, steps: Steps, pool: ThreadPoolExecutor | None = None) -> None:
    """Answer the questions of a step. Raises JournalError.

    `pool`: for submits, which may hang; None: that of all calls.
    """
    with contextlib.closing(steps):
        question = next(steps, None)
        while question is not None:
            if not isinstance(question, _CHANGES_NOTHING):
                site.stirred = asyncio.get_running_loop().time()
            reply = await _reply(site, question, pool)
            try:
                question = steps.send(reply)
            except StopIteration:
                return


async def _reply(site: Site, question: Question, pool: ThreadPoolExecutor | None) -> Reply:
    match question:
        case Ask():
            return await _asked(site, question)
        case Cancel(jobs):
            return await _cancel(site, jobs)
        case Intend():
            return intend(site, question)
        case IntendChange() | Prolong():
            return reserve_more(site, question)
        case Submit():
            return await submit(site, question, pool)
        case Reshape():
            return await reshape(site, question)
        case Together(steps):
            await several(partial(drive, site), steps, nodes_at_once(site.config))
        case Commit():
            await site.core.commit()
        case PilotsEnded(pilots):
            await charge(site, pilots)
        case _:
            _note(site, question)
    return Reply(now=site.core.now())


def _note(site: Site, question: Question) -> None:
    match question:
        case RequestChanged():
            change_request(site, question)
        case PilotChanged(pilot, lost):
            note_pilot(site, pilot, lost)
        case PilotsChanged(pilots):
            note_pilots(site, pilots)
        case Withhold(reason, demand):
            site.withhold(reason, demand)
        case WithholdNodes(reason):
            site.withhold_nodes(reason)
        case Explain(kind, text, pilot, bags):
            site.explain(kind, text, pilot, bags)
        case KeepForecast():
            site.core.keep_forecast(question)
        case Wake(name):
            site.core.wakes[name].set()


async def _asked(site: Site, what: Ask) -> Reply:
    now = site.core.now
    match what:
        case Ask.LIMITS:
            limits = await site.ask(lambda: limits_of(site.config, site.backend))
            return Reply(limits=limits, now=now())
        case Ask.PILOTS:
            return await look_at_pilots(site)
        case Ask.NODES:
            return Reply(nodes=await look_at_nodes(site), now=now(), midnight=midnight(now()))
        case Ask.QUEUE:
            return Reply(queue=await site.look(), now=now())
        case Ask.DECISION:
            return Reply(decision=await _decision(site), now=now())


async def _decision(site: Site) -> Decision:
    """The step keeps it before any other site can take a snapshot: nothing is awaited in between."""
    core, memory = site.core, site.memory
    memory.unreachable = site.remote_folder.problem if site.remote_folder is not None else ""
    memory.unreachable_because = doubt(site)
    async with core.deciding:
        return await asyncio.to_thread(decide, core.snapshot(site.name, core.now()))


async def _cancel(site: Site, jobs: Collection[OwnJob]) -> Reply:
    def cancel() -> Answer:
        site.backend.cancel(jobs)
        return Answer.TAKEN

    return Reply(answer=await site.ask(cancel) or Answer.FAILED, now=site.core.now())


T = TypeVar("T")


async def several(
    work: Callable[[T, ThreadPoolExecutor | None], Awaitable[None]], items: Iterable[T], at_once: int
) -> None:
    """Begin `work` on each item in order, on `at_once` of them at the same time.

    Its calls wait in threads of their own, which no other work needs if they hang; if the system gives none,
    in those of all calls. After the first problem it begins no more, waits for those that it has begun, and
    raises the problem.
    """
    pool = None
    with contextlib.suppress(RuntimeError):
        pool = Threads(at_once, "several")
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
        if pool is not None:
            pool.shutdown(wait=False)
    if problems:
        raise problems[0]


_BEYOND_GRACE = 5.0  # seconds that schedulers have beyond the grace time of workers


async def end_pilots(core: Core, sites: Collection[Site]) -> None:
    """Cancel all pilots and observe their ends, for the longest grace time at most.

    Raises JournalError: an end could not be written down.
    """
    if not sites:
        return
    core.journal.note_user_change_of_all("pilots cancelled", core.now())
    grace = max(float(state.config.grace_time) for state in sites) + _BEYOND_GRACE
    tasks = [asyncio.create_task(_end(state)) for state in sites]
    done, silent = await asyncio.wait(tasks, timeout=grace)
    for task in silent:
        task.cancel()
    await asyncio.gather(*silent, return_exceptions=True)
    for task in done:
        task.result()


async def _end(state: Site) -> None:
    await cancel_all(state, "the daemon was stopped together with its pilots")
    floor = policy_of(state.config).keys.poll_interval
    while state.pilots:
        await asyncio.sleep(0.2 if floor is None else float(floor))
        await drive(state, step_of(state).observe_pilots())
        await drive(state, step_of(state).cancel_unwanted())
