"""Bags are paused, resumed and changed; tasks are cancelled and tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from adaptor import api
from adaptor.bag_spec import BagSpec
from adaptor.daemon.client.bags import ONE_NODE, check, largest_request, queues_of
from adaptor.daemon.client.credits import change_budget, check_begin, check_budget, check_deadline
from adaptor.daemon.client.new_tasks import out_of_bounds, own_needs, words_of
from adaptor.daemon.client.running import RunningDaemon, answers
from adaptor.daemon.core import Core
from adaptor.decisions.new_bags import check_times, impossible_tasks
from adaptor.errors import UsageError
from adaptor.journal.recovery import load_bag
from adaptor.resources import OwnNeeds
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.blocking import END_WORDS
from adaptor.units import counted


@answers(api.Pause)
async def _pause(running: RunningDaemon, question: api.Pause) -> list[int]:
    changed = [bag for bag in question.bags if running.core.broker.pause(bag)]
    return await _changed(running, changed)


@answers(api.Resume)
async def _resume(running: RunningDaemon, question: api.Resume) -> list[int]:
    now = running.core.now()
    changed = [bag for bag in question.bags if running.core.broker.resume(bag, now)]
    return await _changed(running, changed)


@answers(api.ChangeOptions)
async def _change(running: RunningDaemon, question: api.ChangeOptions) -> list[int]:
    """Change options of bags. Raises UsageError: a value makes no sense for one of the bags; none is
    changed."""
    broker, now, needs = running.core.broker, running.core.now(), question.needs
    specs = _changed_specs(running, question.bags, question.options)
    for spec in specs.values():
        check(running, spec, own_needs([]))
        check_times(spec, {})
    bags = [found for bag in specs if (found := broker.state.bags.get(bag)) is not None and not found.ended]
    if needs is not None:
        for bag in bags:
            _check_needs(running, bag, bag.not_ended(), needs, specs[bag.id])
    changed = [bag.id for bag in bags if broker.change_options(bag.id, specs[bag.id], now)]
    await _change_budgets(running.core, changed, question.options)
    if needs is not None:
        for bag in bags:
            await _change_needs(running.core, bag, needs)
    return await _changed(running, changed)


async def _change_needs(core: Core, bag: Bag, needs: OwnNeeds) -> None:
    """Let the unfinished tasks of a bag need something else. Raises JournalError: not all of them do."""
    changed = 0
    for part in _parts(bag.not_ended()):
        changed += core.broker.change_needs(bag.id, part, needs, core.now())
        await core.commit()
        await asyncio.sleep(_PAUSE)
    text = f"{counted(changed, 'unfinished task')} of bag {bag.id} changed to {words_of(needs)}"
    core.journal.explain(core.now(), "", "needs", text, bags=[bag.id])


async def _changed(running: RunningDaemon, bags: list[int]) -> list[int]:
    for site in running.sites:
        running.core.broker.send_home(site)
    await running.core.commit()
    running.wake_sites()
    return bags


def _changed_specs(
    running: RunningDaemon, bags: Sequence[int], wanted: api.OptionChanges
) -> dict[int, BagSpec]:
    """Options of each bag after a change.

    Raises UsageError: there is no such bag, or a new value makes no sense for one.
    """
    core, now = running.core, running.core.now()
    specs = {bag: changed_spec(core.journal.bag_spec(bag), wanted) for bag in bags}
    check_begin(wanted.begin, now)
    if wanted.deadline is not None or wanted.begin is not None:
        for spec in specs.values():
            check_deadline(wanted.deadline or spec.deadline, now, wanted.begin)
    running.notifier.check(wanted.notify or ())
    if wanted.budget is not None:
        check_budget(core, bags, wanted.budget)
    return specs


async def _change_budgets(core: Core, bags: Iterable[int], wanted: api.OptionChanges) -> None:
    """Change the budgets of bags. Raises JournalError."""
    if wanted.budget is not None:
        await core.commit()
        for bag in bags:
            change_budget(core, bag, wanted.budget)


def changed_spec(spec: BagSpec, wanted: api.OptionChanges) -> BagSpec:
    """The options of a bag after a change."""
    options = msgspec.structs.asdict(wanted).items()
    changes = {name: value for name, value in options if value is not None and name != "budget"}
    if wanted.max_running == 0:
        changes["max_running"] = None
    return msgspec.structs.replace(spec, **changes)


AT_ONCE = 5_000  # tasks of a bag that one commit cancels or puts back
_PAUSE = 0.002  # seconds between two of them, in which others are answered


def _numbers(bag: Bag, tasks: Iterable[int] | None) -> Sequence[int]:
    return range(bag.total) if tasks is None else sorted(set(tasks))


def _at_once(bag: Bag, tasks: Sequence[int]) -> bool:
    """Whether these tasks are one part: those that run after each other are, since each decides on others."""
    return len(tasks) <= AT_ONCE or bool(bag.dependencies)


def _parts(tasks: Sequence[int]) -> Iterator[Sequence[int]]:
    return (tasks[begin : begin + AT_ONCE] for begin in range(0, len(tasks), AT_ONCE))


@answers(api.Cancel)
async def cancel(running: RunningDaemon, question: api.Cancel) -> int:
    """Cancel unfinished tasks; their number. Raises JournalError: not all of them are cancelled."""
    cancelled = 0
    for bag in question.bags:
        cancelled += await _cancel(running.core, bag, question)
    await running.core.commit()
    running.wake_sites()
    return cancelled


async def _cancel(core: Core, id: int, question: api.Cancel) -> int:
    bag = core.broker.state.bags.get(id)
    if bag is None:
        return 0
    if question.tasks is None:
        core.broker.close(id)
    numbers = _numbers(bag, question.tasks)
    if _at_once(bag, numbers):
        return core.broker.cancel(id, numbers, unstarted=question.unstarted, enough=question.enough)
    cancelled = 0
    bag.held_back = True
    try:
        for part in _parts(numbers):
            cancelled += core.broker.cancel(id, part, unstarted=question.unstarted, enough=question.enough)
            await core.commit()
            await asyncio.sleep(_PAUSE)
    finally:
        bag.held_back = False
    return cancelled


@answers(api.Retry)
async def retry(running: RunningDaemon, question: api.Retry) -> int:
    """Put failed and cancelled tasks back, with the needs and options of the question; their number.

    Raises:
        UsageError: there is no such bag, no site could ever run one of the tasks, a new option makes no
            sense, or bags could not run because of those before them; none is put back.
        JournalError: it is not written down.
    """
    core, needs, options = running.core, question.needs, question.options
    known = core.broker.state.bags
    # Bags run after earlier ones only: those come first.
    bags = [known.get(id) or load_bag(core.journal, id) for id in sorted(set(question.bags))]
    _check_spoilers(bags)
    if options != api.OptionChanges():
        specs = _changed_specs(running, [bag.id for bag in bags], options)
        for bag in bags:
            own = needs.time if needs is not None else None
            check_times(msgspec.structs.replace(specs[bag.id], time=own or specs[bag.id].time), {})
            if options.sites is not None:
                check(running, specs[bag.id], own_needs([]))
    else:
        specs = {}
    if needs is not None:
        for bag in bags:
            _check_needs(running, bag, bag.may_retry(question.tasks), needs, specs.get(bag.id, bag.spec))
    again = 0
    for bag in bags:
        again += await _retry(core, bag, question, specs.get(bag.id))
    await _change_budgets(core, [bag.id for bag in bags], options)
    if needs is not None and again:
        numbers = ", ".join(str(bag.id) for bag in bags)
        text = f"{counted(again, 'task')} of bag {numbers} put back with {words_of(needs)}"
        core.journal.explain(core.now(), "", "needs", text, bags=[bag.id for bag in bags])
    running.wake_sites()
    return again


async def _retry(core: Core, bag: Bag, question: api.Retry, spec: BagSpec | None) -> int:
    """Put tasks of a bag back. `spec`: the options that the bag has from now on; None: as before."""
    numbers = _numbers(bag, question.tasks)
    if _at_once(bag, numbers):
        again = core.broker.retry(bag, core.now(), numbers, question.needs, spec)
        await core.commit()
        return again
    again = 0
    for part in _parts(numbers):
        bag = core.broker.state.bags.get(bag.id) or load_bag(core.journal, bag.id)
        again += core.broker.retry(bag, core.now(), part, question.needs, spec)
        await core.commit()
        await asyncio.sleep(_PAUSE)
    return again


def _check_spoilers(bags: Sequence[Bag]) -> None:
    """Raises UsageError: a bag runs after one which is not among them, and which has no results for it."""
    again = {bag.id for bag in bags}
    for bag in bags:
        for parent, end in bag.spoilers.items():
            if parent not in again:
                raise UsageError(
                    f"bag {bag.id} runs after bag {parent}, which {END_WORDS[end]}, so it would not"
                    f" start; retry that first: adaptor retry {parent} && adaptor retry {bag.id}"
                )


def _check_needs(
    running: RunningDaemon, bag: Bag, tasks: Sequence[int], needs: OwnNeeds, spec: BagSpec
) -> None:
    """Check new needs of tasks. `spec`: the options that the bag will have.

    Raises UsageError: one of these tasks could never run with these needs in place of its own.
    """
    if problem := out_of_bounds(needs):
        raise UsageError(f"{problem}; nothing is changed")
    if spec.allocation == "transparent" and (needs.nodes or 1) > 1:
        raise UsageError(ONE_NODE)
    if needs.time is not None:
        check_times(msgspec.structs.replace(spec, time=needs.time), {})
    sizes = {}
    for task in tasks:
        try:
            sizes[task] = needs.over(bag.sizes.of(task))
        except ValueError as error:
            raise UsageError(f"bag {bag.id}, task {task}: {error}; nothing is changed") from None
    refused = impossible_tasks(sizes, queues_of(running, spec), largest_request(running, spec))
    if refused:
        first = min(refused)
        raise UsageError(f"bag {bag.id}, task {first}: {refused[first]}; nothing is changed")
