"""Serving the command line: one question, one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from adaptor.daemon.client.credits import (
    budget_writer,
    change_budget,
    check_deadline,
    forecast_view,
    live_credits,
    why_paused,
)
from adaptor.daemon.client.site_views import read_slots, site_view
from adaptor.daemon.core import Core
from adaptor.daemon.removed_sites import settle_site
from adaptor.daemon.site import Site
from adaptor.decisions.new_bags import check_can_run
from adaptor.errors import AdaptorError, UsageError
from adaptor.journal.queries import READING, answer
from adaptor.journal.recovery import load_bag
from adaptor.protocol import control
from adaptor.scheduling.bag import Bag
from adaptor.views import BagView, DaemonView, PilotRecord

_LONGEST_QUICK_LOOK = 10_000
"""Bytes."""


class RunningDaemon(Protocol):
    """The running daemon as far as a question may reach it."""

    @property
    def core(self) -> Core: ...
    @property
    def sites(self) -> Mapping[str, Site]: ...
    @property
    def stalled(self) -> str:
        """Why nothing can be written down now; empty: it can."""

    def view(self) -> DaemonView: ...
    def wake_sites(self) -> None: ...
    def stop(self, *, pilots: bool) -> None:
        """End the daemon soon; with `pilots`, cancel them first."""


def takes_time(data: bytes) -> bool:
    """Whether a question is one that a scheduler is asked for. A new bag, which may be large, is not read."""
    if len(data) > _LONGEST_QUICK_LOOK:
        return False
    try:
        return isinstance(control.decode_question(data), control.GetSlots)
    except msgspec.DecodeError:
        return False


async def serve(running: RunningDaemon, data: bytes) -> control.Answer:
    """The answer to one question; any failure is an answer too. Raises JournalError."""
    try:
        question = control.decode_question(data)
    except msgspec.DecodeError as error:
        return control.Failure(f"the daemon does not understand this question: {error}", usage=True)
    try:
        if isinstance(question, READING):
            core = running.core
            told = answer(core.journal.connection, question, core.now(), core.treasury.ledger)
            return _live(running, told)
        return await _do(running, question)
    except UsageError as error:
        return control.Failure(str(error), usage=True)


async def _do(running: RunningDaemon, question: control.Question) -> control.Answer:
    match question:
        case control.GetSites():
            return control.Sites([site_view(site) for site in running.sites.values()])
        case control.GetSlots():
            return control.Slots(await read_slots(running.sites, question.sites))
        case control.GetDaemon():
            return control.Daemon(running.view())
        case control.Stop():
            running.stop(pilots=question.pilots)
            return control.Stopping()
    if running.stalled:
        raise AdaptorError(f"the daemon cannot write its journal now: {running.stalled}")
    match question:
        case control.Submit():
            return control.Submitted(await _submit(running, question.bag))
        case control.Cancel():
            return control.Changed(await _cancel(running, question.bags))
        case control.Retry():
            return control.Changed(await _retry(running, question.bags))
        case control.SetBudget() | control.SettleSite():
            return await _change_credits(running, question)
    raise UsageError("the daemon does not know this message: does it run another version of the adaptor?")


async def _submit(running: RunningDaemon, given: control.BagInput) -> int:
    spec = given.spec.with_order(budget=given.budget is not None)
    _check(running, given)
    now = running.core.now()
    check_deadline(spec.deadline, now)
    with_budget = budget_writer(running.core, running.sites, spec, given.budget)
    id = running.core.journal.add_bag(spec, given.tasks, now, with_budget)
    if with_budget is not None:
        running.core.broker.keep_apart(id)
    bag = Bag(id, running.core.journal.bag_spec(id), len(given.tasks))
    bag.fill()
    running.core.broker.add_bag(bag, now)
    await running.core.commit()
    running.wake_sites()
    return id


def _check(running: RunningDaemon, given: control.BagInput) -> None:
    """Raises UsageError: no site could ever run the bag."""
    spec = given.spec
    unknown = [name for name in spec.sites if name not in running.sites]
    if unknown:
        known = ", ".join(running.sites)
        raise UsageError(f"there is no site {unknown[0]!r}; the configuration has: {known}")
    if not given.tasks:
        raise UsageError("a bag needs at least one task")
    if spec.allocation == "transparent":
        _check_donation(running, spec.sites or tuple(running.sites))
    memories = {name: running.sites[name].memory for name in spec.sites or running.sites}
    check_can_run(spec, {name: memory.seen for name, memory in memories.items()})
    largest = max(memory.limits.max_proc for memory in memories.values())
    if spec.cpus > largest:
        raise UsageError(f"tasks of {spec.cpus} cpus fit into no request: max_proc is {largest}")


def _check_donation(running: RunningDaemon, names: Sequence[str]) -> None:
    if all(running.sites[name].config.donation is None for name in names):
        raise UsageError(
            f"no node is donated at {' or '.join(names)}: a bag with allocation transparent needs a site "
            "with `donation:` in the configuration"
        )


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


async def _cancel(running: RunningDaemon, bags: list[int]) -> int:
    cancelled = sum(running.core.broker.cancel(bag) for bag in bags)
    await running.core.commit()
    running.wake_sites()
    return cancelled


async def _retry(running: RunningDaemon, bags: list[int]) -> int:
    journal, broker = running.core.journal, running.core.broker
    loaded = [load_bag(journal, bag) for bag in bags]
    again = sum(broker.retry(bag, running.core.now()) for bag in loaded)
    await running.core.commit()
    running.wake_sites()
    return again


def _live(running: RunningDaemon, told: control.Answer) -> control.Answer:
    """What the journal tells, with what only the running daemon knows."""
    match told:
        case control.Bags():
            return control.Bags([_live_bag(running, bag) for bag in told.bags], told.record)
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
    started = min(bag.running, running.core.broker.started(bag.id))
    paused, forecast = why_paused(running.core, bag), forecast_view(running.core, bag)
    waiting = bag.waiting + bag.running - started
    return msgspec.structs.replace(bag, running=started, waiting=waiting, paused=paused, forecast=forecast)


def _live_pilot(running: RunningDaemon, record: PilotRecord) -> PilotRecord:
    site = running.sites.get(record.site)
    pilot = site.pilots.get(record.id) if site else None
    workers = len(running.core.broker.of_pilot(record.id))
    return msgspec.structs.replace(record, workers=workers, note=pilot.note if pilot else "")
