"""Serving the command line: one question, one answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from adaptor.daemon.credits.spending import (
    budget_writer,
    change_budget,
    check_deadline,
    forecast_view,
    live_credits,
    why_paused,
)
from adaptor.daemon.site_views import read_slots, site_view
from adaptor.errors import AdaptorError, UsageError
from adaptor.journal.queries import READING, answer
from adaptor.journal.recovery import load_bag
from adaptor.protocol import control
from adaptor.scheduling.bag import Bag
from adaptor.views import BagView, PilotRecord

if TYPE_CHECKING:
    from adaptor.daemon.service import Service


_LONGEST_QUICK_LOOK = 10_000
"""Bytes."""


def takes_time(data: bytes) -> bool:
    """Whether a question is one that a scheduler is asked for. A new bag, which may be large, is not read."""
    if len(data) > _LONGEST_QUICK_LOOK:
        return False
    try:
        return isinstance(control.decode_question(data), control.GetSlots)
    except msgspec.DecodeError:
        return False


async def serve(service: Service, data: bytes) -> control.Answer:
    """The answer to one question; any failure is an answer too. Raises JournalError."""
    try:
        question = control.decode_question(data)
    except msgspec.DecodeError as error:
        return control.Failure(f"the daemon does not understand this question: {error}", usage=True)
    try:
        if isinstance(question, READING):
            return _live(service, answer(service.core.journal.connection, question, service.core.now()))
        return await _do(service, question)
    except UsageError as error:
        return control.Failure(str(error), usage=True)


async def _do(service: Service, question: control.Question) -> control.Answer:
    match question:
        case control.GetSites():
            return control.Sites([site_view(site) for site in service.sites.values()])
        case control.GetSlots():
            return control.Slots(await read_slots(service.sites, question.sites))
        case control.GetDaemon():
            return control.Daemon(service.view())
        case control.Stop():
            service.stop(pilots=question.pilots)
            return control.Stopping()
    if service.stalled:
        raise AdaptorError(f"nothing can be written down now: {service.stalled}")
    match question:
        case control.Submit():
            return control.Submitted(await _submit(service, question.bag))
        case control.Cancel():
            return control.Changed(await _cancel(service, question.bags))
        case control.Retry():
            return control.Changed(await _retry(service, question.bags))
        case control.SetBudget():
            changed = change_budget(service.core, question.bag, question.credits)
            service.wake_sites()
            return control.Credits(changed)
    raise UsageError("the daemon does not know this question")


async def _submit(service: Service, given: control.BagInput) -> int:
    spec = given.spec
    _check(service, given)
    now = service.core.now()
    check_deadline(spec.deadline, now)
    with_budget = budget_writer(service.core, service.sites, spec, given.budget)
    id = service.core.journal.add_bag(spec, given.tasks, now, with_budget)
    if with_budget is not None or spec.aims:
        service.core.broker.keep_apart(id)
    bag = Bag(id, service.core.journal.bag_spec(id), len(given.tasks))
    bag.fill()
    service.core.broker.add_bag(bag, now)
    await service.core.commit()
    service.wake_sites()
    return id


def _check(service: Service, given: control.BagInput) -> None:
    """Raises UsageError: no site could ever run the bag."""
    spec = given.spec
    unknown = [name for name in spec.sites if name not in service.sites]
    if unknown:
        known = ", ".join(service.sites)
        raise UsageError(f"there is no site {unknown[0]!r}; the configuration has: {known}")
    if not given.tasks:
        raise UsageError("a bag needs at least one task")
    if spec.allocation == "transparent":
        _check_donation(service, spec.sites or tuple(service.sites))
    limits = [service.sites[name].memory.limits for name in spec.sites or service.sites]
    largest = max(limit.max_proc for limit in limits)
    if spec.cpus > largest:
        raise UsageError(f"tasks of {spec.cpus} cpus fit into no request: max_proc is {largest}")


def _check_donation(service: Service, names: Sequence[str]) -> None:
    if all(service.sites[name].config.donation is None for name in names):
        raise UsageError(
            f"no node is donated at {' or '.join(names)}: a bag with allocation transparent needs a site "
            "with `donation:` in the configuration"
        )


async def _cancel(service: Service, bags: list[int]) -> int:
    cancelled = sum(service.core.broker.cancel(bag) for bag in bags)
    await service.core.commit()
    service.wake_sites()
    return cancelled


async def _retry(service: Service, bags: list[int]) -> int:
    journal, broker = service.core.journal, service.core.broker
    loaded = [load_bag(journal, bag) for bag in bags]
    again = sum(broker.retry(bag, service.core.now()) for bag in loaded)
    await service.core.commit()
    service.wake_sites()
    return again


def _live(service: Service, told: control.Answer) -> control.Answer:
    """What the journal tells, with what only the running daemon knows."""
    match told:
        case control.Bags():
            return control.Bags([_live_bag(service, bag) for bag in told.bags])
        case control.Pilots():
            return control.Pilots([_live_pilot(service, record) for record in told.pilots])
        case control.Report():
            requests = [_live_pilot(service, record) for record in told.report.requests]
            bag = _live_bag(service, told.report.bag)
            return control.Report(msgspec.structs.replace(told.report, requests=requests, bag=bag))
        case control.Credits():
            return control.Credits(live_credits(service.core, told.credits))
    return told


def _live_bag(service: Service, bag: BagView) -> BagView:
    """A task that a worker holds in reserve still waits, as its user sees it."""
    started = min(bag.running, service.core.broker.started(bag.id))
    paused, forecast = why_paused(service.core, bag), forecast_view(service.core, bag)
    waiting = bag.waiting + bag.running - started
    return msgspec.structs.replace(bag, running=started, waiting=waiting, paused=paused, forecast=forecast)


def _live_pilot(service: Service, record: PilotRecord) -> PilotRecord:
    site = service.sites.get(record.site)
    pilot = site.pilots.get(record.id) if site else None
    workers = len(service.core.broker.of_pilot(record.id))
    return msgspec.structs.replace(record, workers=workers, note=pilot.note if pilot else "")
