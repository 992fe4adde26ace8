"""Serving the command line: one question, one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

import msgspec

from adaptor.advice import SeenQueue, advise
from adaptor.bag_spec import BagSpec
from adaptor.daemon.client.bags import append, cancel, close, retry, submit, wait_for_events
from adaptor.daemon.client.credits import change_budget, forecast_view, live_credits, why_paused
from adaptor.daemon.client.pictures import picture
from adaptor.daemon.client.plans import read_plan
from adaptor.daemon.client.site_views import read_slots, site_view
from adaptor.daemon.core import Core
from adaptor.daemon.removed_sites import settle_site
from adaptor.daemon.site import Site
from adaptor.daemon.upkeep.keeping import Keeper
from adaptor.daemon.upkeep.notifying import Notifier
from adaptor.errors import AdaptorError, UsageError
from adaptor.journal.queries import READING, answer
from adaptor.protocol import control
from adaptor.views import BagView, DaemonView, PilotRecord, TaskView

_LONG_QUESTIONS = control.GetSlots | control.GetPlan | control.Reload | control.GetAdvice | control.GetEvents
"""Those that ask schedulers, plan their queues, or wait for events."""
_LONGEST_QUICK_LOOK = 25_000
"""Bytes; more than GetEvents can have."""
_LARGE = 250_000
"""Bytes that take some 10 ms to decode."""


class RunningDaemon(Protocol):
    """The running daemon as far as a question may reach it."""

    @property
    def core(self) -> Core: ...
    @property
    def sites(self) -> Mapping[str, Site]: ...
    @property
    def keeper(self) -> Keeper: ...
    @property
    def notifier(self) -> Notifier: ...
    @property
    def stalled(self) -> str:
        """Why nothing can be written down now; empty: it can."""

    def view(self) -> DaemonView: ...
    def wake_sites(self) -> None: ...
    def stop(self, *, pilots: bool) -> None:
        """End the daemon soon; with `pilots`, cancel them first."""

    async def reload(self) -> control.Reloading:
        """Take over the configuration as it is now. Raises AdaptorError: it cannot be used."""


def takes_time(data: bytes) -> bool:
    """Whether a question is one that schedulers are asked or queues are planned for, or that waits.

    A large one, which has a new bag, is not read: it takes time.
    """
    if len(data) > _LONGEST_QUICK_LOOK:
        return True
    try:
        return isinstance(control.decode_question(data), _LONG_QUESTIONS)
    except msgspec.DecodeError:
        return False


async def _decoded(data: bytes) -> control.Question:
    """Raises msgspec.DecodeError."""
    if len(data) > _LARGE:
        return await asyncio.to_thread(control.decode_question, data)
    return control.decode_question(data)


async def serve(running: RunningDaemon, data: bytes) -> control.Answer:
    """The answer to one question; any failure is an answer too. Raises JournalError."""
    try:
        question = await _decoded(data)
    except msgspec.DecodeError as error:
        return control.Failure(f"the daemon does not understand this question: {error}", usage=True)
    try:
        if isinstance(question, control.GetEvents):
            return await wait_for_events(running.core, question)
        if isinstance(question, READING):
            core = running.core
            told = answer(core.journal.connection, question, core.now(), core.treasury.ledger)
            if isinstance(told, control.Advice):
                return await _advised(running, told)
            return _live(running, told)
        return await _do(running, question)
    except UsageError as error:
        return control.Failure(str(error), usage=True)


async def _do(running: RunningDaemon, question: control.Question) -> control.Answer:
    match question:
        case control.GetSites() | control.GetPicture() | control.GetDaemon():
            return _shown(running, question)
        case control.GetSlots() | control.GetPlan():
            return await _read(running, question)
        case control.Stop():
            running.stop(pilots=question.pilots)
            return control.Stopping()
    if running.stalled:
        raise AdaptorError(f"the daemon cannot write its journal now: {running.stalled}")
    match question:
        case control.Submit() | control.Append() | control.Close():
            return await _feed(running, question)
        case control.Pause() | control.Resume() | control.ChangeOptions():
            return control.ChangedBags(await _steer(running, question))
        case control.Cancel() | control.Retry() | control.Forget():
            return await _change_bags(running, question)
        case control.SetBudget() | control.SettleSite():
            return await _change_credits(running, question)
        case control.Reload():
            return await running.reload()
    raise UsageError("the daemon does not know this message: does it run another version of the adaptor?")


def _shown(
    running: RunningDaemon, question: control.GetSites | control.GetPicture | control.GetDaemon
) -> control.Answer:
    """What the daemon knows without asking anybody."""
    match question:
        case control.GetSites():
            return control.Sites([site_view(site) for site in running.sites.values()])
        case control.GetPicture():
            return picture(running.core, running.sites)
        case control.GetDaemon():
            return control.Daemon(running.view())


async def _read(running: RunningDaemon, question: control.GetSlots | control.GetPlan) -> control.Answer:
    """What schedulers are asked for first."""
    match question:
        case control.GetSlots():
            return control.Slots(await read_slots(running.sites, question.sites, question.task))
        case control.GetPlan():
            return control.Plan(await read_plan(running.core, running.sites, question))


async def _feed(
    running: RunningDaemon, question: control.Submit | control.Append | control.Close
) -> control.Answer:
    match question:
        case control.Submit():
            return await submit(running, question)
        case control.Append():
            return await append(running, question)
        case control.Close():
            return control.Closed(await close(running, question.bags))


async def _change_bags(
    running: RunningDaemon, question: control.Cancel | control.Retry | control.Forget
) -> control.Answer:
    match question:
        case control.Cancel():
            return control.Changed(await cancel(running, question))
        case control.Retry():
            return control.Changed(await retry(running, question))
        case control.Forget():
            return control.Forgotten(running.keeper.forget(question.bags))


async def _change_credits(
    running: RunningDaemon, question: control.SetBudget | control.SettleSite
) -> control.Answer:
    """More may be bought afterwards."""
    answer: control.Answer
    if isinstance(question, control.SetBudget):
        answer = control.Credits(change_budget(running.core, question.bag, question.credits))
    else:
        answer = control.Settled(await settle_site(running.core, question.site, question.ended))
    running.wake_sites()
    return answer


async def _steer(
    running: RunningDaemon, question: control.Pause | control.Resume | control.ChangeOptions
) -> list[int]:
    """The bags that it changes."""
    broker, now = running.core.broker, running.core.now()
    match question:
        case control.Pause():
            changed = [bag for bag in question.bags if broker.pause(bag)]
        case control.Resume():
            changed = [bag for bag in question.bags if broker.resume(bag, now)]
        case control.ChangeOptions():
            specs = {bag: changed_spec(running.core.journal.bag_spec(bag), question) for bag in question.bags}
            changed = [bag for bag, spec in specs.items() if broker.change_options(bag, spec, now)]
    for site in running.sites:
        broker.send_home(site)
    await running.core.commit()
    running.wake_sites()
    return changed


def changed_spec(spec: BagSpec, wanted: control.ChangeOptions) -> BagSpec:
    """The options of a bag after a change."""
    changes = {
        name: value
        for name in ("priority", "retries", "max_fails")
        if (value := getattr(wanted, name)) is not None
    }
    if wanted.max_running is not None:
        changes["max_running"] = wanted.max_running or None
    return msgspec.structs.replace(spec, **changes)


def _live(running: RunningDaemon, told: control.Answer) -> control.Answer:
    """What the journal tells, with what only the running daemon knows."""
    match told:
        case control.Bags():
            live = [_live_bag(running, bag) for bag in told.bags]
            return msgspec.structs.replace(told, bags=live)
        case control.Tasks():
            return control.Tasks(_live_tasks(running, told.tasks))
        case control.Pilots():
            return control.Pilots([_live_pilot(running, record) for record in told.pilots])
        case control.Report():
            requests = [_live_pilot(running, record) for record in told.report.requests]
            bag = _live_bag(running, told.report.bag)
            return control.Report(msgspec.structs.replace(told.report, requests=requests, bag=bag))
        case control.Credits():
            return control.Credits(live_credits(running.core, told.credits))
    return told


def _live_bag(running: RunningDaemon, bag: BagView) -> BagView:
    """A task that a worker holds in reserve still waits, as its user sees it."""
    started = min(bag.running, len(running.core.broker.started(bag.id)))
    paused, forecast = why_paused(running.core, bag), forecast_view(running.core, bag)
    waiting = bag.waiting + bag.running - started
    return msgspec.structs.replace(bag, running=started, waiting=waiting, paused=paused, forecast=forecast)


async def _advised(running: RunningDaemon, told: control.Advice) -> control.Advice:
    """With the free slots of the queues as they were last read."""
    queues = [
        SeenQueue(site.memory.rules, site.memory.seen)
        for name, site in running.sites.items()
        if site.memory.seen is not None and (not told.measured.sites or name in told.measured.sites)
    ]
    return msgspec.structs.replace(told, lines=await asyncio.to_thread(advise, told.measured, queues))


def _live_tasks(running: RunningDaemon, tasks: list[TaskView]) -> list[TaskView]:
    """As `_live_bag`, for the tasks of one bag."""
    if not any(task.state == "running" for task in tasks):
        return tasks
    started = running.core.broker.started(tasks[0].bag)

    def live(task: TaskView) -> TaskView:
        if task.state != "running":
            return task
        if task.task not in started:
            return msgspec.structs.replace(task, state="waiting")
        return msgspec.structs.replace(task, started=started[task.task])

    return [live(task) for task in tasks]


def _live_pilot(running: RunningDaemon, record: PilotRecord) -> PilotRecord:
    site = running.sites.get(record.site)
    pilot = site.pilots.get(record.id) if site else None
    workers = len(running.core.broker.of_pilot(record.id))
    return msgspec.structs.replace(record, workers=workers, note=pilot.note if pilot else "")
