"""Bags are opened, get tasks, and are published; their events."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterable

import msgspec

from adaptor import api
from adaptor.bag_spec import BUNDLES, BagSpec
from adaptor.bundles.archives import is_there
from adaptor.daemon.client.admission import told_of
from adaptor.daemon.client.credits import budget_writer, check_begin, check_deadline
from adaptor.daemon.client.new_tasks import (
    OwnNeedsOf,
    check_own_times,
    new_tasks,
    out_of_bounds,
    own_needs,
    own_sizes,
    prepared,
    reasons_of,
)
from adaptor.daemon.client.running import RunningDaemon, answers
from adaptor.daemon.core import Core
from adaptor.daemon.site import Site
from adaptor.decisions.new_bags import check_can_run, check_sites, check_times, impossible_tasks
from adaptor.errors import UsageError
from adaptor.journal import adding
from adaptor.journal.adding import FORGOTTEN, OpenedBag, input_of, inputs_of, opened, replace_tasks
from adaptor.journal.bag_rows import bag_of_key, end_of_bag, read_needs
from adaptor.journal.recovery import load_bag
from adaptor.journal.resuming import left_to_run
from adaptor.journal.views import events
from adaptor.kinds.recognising import kinds_of
from adaptor.model import QueueState, TaskState
from adaptor.resources import OwnNeeds, TaskSize

OVER_SSH = (
    "over ssh nodes get no copy of what a bag stages: they need folders of the same paths, and read these"
)
FIRST_LOOK = 5.0
"""Seconds for which a new bag waits at most until queues that no step has read yet are read."""
ONE_NODE = "each donated node has a pilot of its own: a bag with allocation transparent has --nodes 1"


@answers(api.Open)
def open_bag(running: RunningDaemon, question: api.Open) -> int:
    """Open a bag without tasks, which `publish` makes visible; the number of one that is published, or 0.

    Raises:
        UsageError: its options contradict each other, or the configuration.
        JournalError: it is not written down.
    """
    journal, now, spec = running.core.journal, running.core.now(), question.spec
    with journal.transaction() as db:
        if (known := bag_of_key(db, question.key)) is not None:
            return known
        if opened(db, question.key) is None:
            _check_sites(running, spec)
            running.notifier.check(spec.notify)
            check_begin(spec.begin, now)
            check_deadline(spec.deadline, now, spec.begin)
            adding.open_bag(db, question, now)
    return 0


@answers(api.Publish)
async def publish(running: RunningDaemon, question: api.Publish) -> api.Submitted:
    """Publish a bag: it runs, without what earlier ones have done if it is to continue them.

    Raises:
        UsageError: it could never run, and is forgotten.
        JournalError: it is not written down.
    """
    journal = running.core.journal
    there = journal.read(opened, question.key)
    if there is None:
        if (known := journal.read(bag_of_key, question.key)) is not None:
            return api.Submitted(known)
        raise UsageError(FORGOTTEN)
    if there.question.spec.task != TaskSize() or journal.read(read_needs, there.bag):
        await _read_queues(running, there.question.spec)
    try:
        return await _published(running, there, question)
    except UsageError:
        running.retention.forget_unpublished(question.key)
        raise


async def _read_queues(running: RunningDaemon, spec: BagSpec) -> None:
    """Read the queues of its sites that no step has read yet, so that a bag that no node holds is refused at
    once. A scheduler that does not answer within FIRST_LOOK refuses nothing."""
    sites = [running.sites[name] for name in _sites_of(running, spec)]
    unseen = [site for site in sites if site.memory.seen is None and not site.memory.problem]
    looks = [running.core.looking.start(read_queue(site)) for site in unseen]
    if looks:
        await asyncio.wait(looks, timeout=FIRST_LOOK)


async def read_queue(site: Site) -> None:
    site.memory.read(await site.look(patient=False))


async def _published(running: RunningDaemon, there: OpenedBag, question: api.Publish) -> api.Submitted:
    core, given, taken_over = running.core, there.question, list[api.TakenOver]()
    id, now = there.bag, core.now()
    with core.journal.transaction(durable=True) as db:
        if question.resume and there.total:
            left, taken_over = left_to_run(db, given.spec, inputs_of(db, id), given.file)
            if not left:
                return api.Submitted(0, taken_over)
            if taken_over:
                there = replace_tasks(db, there, left)
        new = new_tasks(db, there)
        asked = given.spec.with_order(budget=given.budget is not None)
        asked = msgspec.structs.replace(asked, kinds=new.kinds)
        earlier = core.earlier.of(asked)
        spec = earlier.settled(asked, queues_of(running, asked).values())
        if not new.own.total and not question.open:
            raise UsageError("a bag needs at least one task")
        _check_staged(core, spec, new.own)
        refused = check(running, spec, new.own)
        with_budget = budget_writer(core, running.sites, spec, given.budget, earlier.tasks)
        gated = bool(_awaited_bags(core, spec))
        adding.publish(db, there, spec, now, open=question.open, gated=gated)
        _note_owner(core, db, there, now)
        if with_budget is not None:
            with_budget(db, id)
    if with_budget is not None:
        core.broker.keep_apart(id)
    bag = load_bag(core.journal, id)
    bag.earlier = earlier.tasks
    core.broker.refuse(bag, refused)
    core.broker.add_bag(bag, now, new=True)
    await core.commit()
    _explain(running, id, spec, earlier.texts(asked, spec))
    if new.own.total:  # else its first tasks do: a look at the queue now would only put that one off
        running.wake_sites()
    return api.Submitted(id, taken_over, len(refused), reasons_of(new.own, refused))


def _explain(running: RunningDaemon, bag: int, spec: BagSpec, earlier: Iterable[str]) -> None:
    """Write what its user should know of a new bag. `earlier`: what follows from earlier ones."""
    core = running.core
    for name in _sites_of(running, spec) if spec.staged else ():
        if running.sites[name].remote_folder is not None:
            core.journal.explain(core.now(), name, "problem", OVER_SSH, bags=[bag])
    for text in earlier:
        core.journal.explain(core.now(), "", "earlier", text, bags=[bag])


def _check_staged(core: Core, spec: BagSpec, own: OwnNeedsOf) -> None:
    """Raises UsageError: what it stages is not there, or its tasks could not see it."""
    if not spec.staged:
        return
    option = "--stage" if spec.container is None else "--container"
    if spec.nodes > 1 or any((needs.nodes or 1) > 1 for needs in own.needs.values()):
        raise UsageError(
            f"{option}: for tasks on one node each; a task on several reads the folders themselves"
        )
    if spec.container is not None and (spec.script is not None or spec.interpreter is not None):
        raise UsageError(
            "--container: for lines and commands; a batch script and calls start their own container"
        )
    if spec.bundle is None or not is_there(core.directory, spec.bundle.digest):
        raise UsageError(
            f"{option}: {core.directory / BUNDLES}: the archive is not there: submit the bag again"
        )


def _note_owner(core: Core, db: sqlite3.Connection, there: OpenedBag, now: float) -> None:
    """Write whose bag it is, if a key with a grant submits it."""
    if owner := there.question.owner:
        core.grants.add_bag(db, owner, there.bag, now, told_of(there, input_of(db, there.bag, 0)))
        core.ledger.join(there.bag, owner)


@answers(api.Add)
async def add(running: RunningDaemon, question: api.Add) -> api.Added:
    """Add tasks to a bag that is open, or not published yet; those that were added before count once.

    Raises:
        UsageError: there is no such bag, it is closed, tasks before these are missing, it has the calls of
            another program, or the needs of a task contradict each other.
        JournalError: the tasks are not written down.
    """
    core, tasks = running.core, question.tasks
    rows = None if question.first or question.bag else await prepared(tasks, question.file)
    id = question.bag or core.journal.read(bag_of_key, question.key) or 0
    known = core.broker.state.bags.get(id)  # None: it is not published, has ended, or there is none
    calls = known is not None and known.spec.interpreter is not None
    own = own_needs(tasks, file=question.file)
    refused = {} if known is None else _impossible(running, known.spec, own)
    # Calls may start before they are on the disk; all others are, with their first leases: one wait.
    with core.journal.transaction(durable=known is not None and not calls) as db:
        done = adding.add(
            db,
            id,
            question.key,
            question.first,
            tasks,
            core.now(),
            file=question.file,
            rows=rows,
            alone=calls,
            gated=known is not None and known.gated,
        )
        if known is None or done.repeated or not done.tasks:
            if calls:
                core.journal.sync()  # the part may have been written without an answer
            return api.Added(done.first, done.tasks)
        waiting, sizes, refilled = known.count(TaskState.WAITING), len(known.lines), known.expected > 0
        with core.ahead():
            core.broker.append(
                id,
                done.tasks,
                core.now(),
                links=done.links,
                needs={done.first + place: needs for place, needs in own.needs.items()},
                refused={done.first + place: why for place, why in refused.items()},
            )
            if not known.spec.kinds:  # its first tasks
                spec = msgspec.structs.replace(known.spec, kinds=kinds_of(known.spec, tasks))
                core.broker.learn_kinds(known, spec, core.earlier.of(spec).tasks)
            written = core.write()
    await core.tell(*written)
    more = known.count(TaskState.WAITING) > 2 * waiting or len(known.lines) > sizes
    if more or (known.expected and not refilled):  # else the next look at the queue is early enough
        running.wake_sites()
    if calls:
        core.journal.sync()  # while the first of them run
    reasons = reasons_of(own_needs(tasks, done.first, question.file), refused)
    return api.Added(done.first, done.tasks, len(refused), reasons)


def _awaited_bags(core: Core, spec: BagSpec) -> set[int]:
    """The bags that must end before a new one starts.

    Raises UsageError: there is no such bag, or one has ended so that the new one would never start.
    """
    awaits = set()
    for parent in (*spec.after, *spec.after_any):
        end = core.journal.read(end_of_bag, parent)
        if end is None:
            awaits.add(parent)
        elif end is not TaskState.DONE and parent in spec.after:
            raise UsageError(
                f"bag {parent} has {end.value} tasks, so a bag after it would never start: retry it, or say"
                f" --after-any {parent}"
            )
    return awaits


@answers(api.Close)
async def close(running: RunningDaemon, question: api.Close) -> list[int]:
    """Let these bags take no more tasks; those that were open.

    Raises:
        UsageError: there is no such bag.
        JournalError: it is not written down.
    """
    core = running.core
    for bag in question.bags:
        core.journal.bag_spec(bag)
    closed = [bag for bag in question.bags if core.broker.close(bag)]
    await core.commit()
    if closed:
        running.wake_sites()
    return closed


@answers(api.GetEvents)
async def wait_for_events(running: RunningDaemon, question: api.GetEvents) -> list[api.BagEvents]:
    """Events of the bags after those that the client has.

    Waits for the first one, at most `wait` seconds, unless all bags have ended.

    Raises:
        UsageError: there is no such bag.
        JournalError: the journal cannot be read.
    """
    core, until = running.core, time.monotonic() + question.wait
    while True:
        left = until - time.monotonic()
        if left <= 0 or core.may_have_news(question.since):
            found = core.journal.read(events, question)
            changed = any(news.last > question.since[news.bag] or news.more for news in found)
            if changed or left <= 0 or all(news.ended for news in found):
                return found
        if not await core.listeners.wait(question.since, left):
            until = 0.0


def check(running: RunningDaemon, spec: BagSpec, own: OwnNeedsOf) -> dict[int, str]:
    """Reasons for tasks with needs of their own that no site could ever run, by task.

    Raises UsageError: no site could ever run any task of the bag, or one contradicts itself.
    """
    _check_sites(running, spec)
    if problem := out_of_bounds(OwnNeeds(time=spec.time)):
        raise UsageError(problem)
    refused = _impossible(running, spec, own)
    if not own.all:
        check_can_run(spec, queues_of(running, spec))
        largest, processors = largest_request(running, spec), spec.task.total_processors
        if processors > largest:
            raise UsageError(
                f"tasks of {processors} cpus fit into no request: max_proc is {largest}; raise"
                " `limits.max_proc` in the configuration, then: adaptor daemon restart"
            )
    elif len(refused) == own.total:
        raise UsageError(f"{own.name(0)}: {refused[0]}")
    check_times(spec, {name: running.core.terms[name].longest for name in _sites_of(running, spec)})
    return refused


def _check_sites(running: RunningDaemon, spec: BagSpec) -> None:
    """Raises UsageError: a site that the bag names is not there, or none donates the nodes that it needs."""
    check_sites(spec.sites, running.sites)
    if spec.allocation == "transparent":
        names = spec.sites or tuple(running.sites)
        if all(running.sites[name].config.donation is None for name in names):
            raise UsageError(
                f"no node is donated at {' or '.join(names)}: a bag with allocation transparent needs a site "
                "with `donation:` in the configuration"
            )


def _impossible(running: RunningDaemon, spec: BagSpec, own: OwnNeedsOf) -> dict[int, str]:
    """Reasons for new tasks with needs of their own that no site could ever run, by place.

    Raises UsageError: the needs of a task contradict each other, or the options of its bag.
    """
    if spec.allocation == "transparent" and (
        spec.nodes > 1 or any((needs.nodes or 1) > 1 for needs in own.needs.values())
    ):
        raise UsageError(ONE_NODE)
    if not own.needs:
        return {}
    sizes = own_sizes(spec, own)
    check_own_times(spec, own)
    return impossible_tasks(sizes, queues_of(running, spec), largest_request(running, spec))


def _sites_of(running: RunningDaemon, spec: BagSpec) -> list[str]:
    return [name for name in spec.sites or running.sites if name in running.sites]


def queues_of(running: RunningDaemon, spec: BagSpec) -> dict[str, QueueState | None]:
    return {name: running.sites[name].memory.seen for name in _sites_of(running, spec)}


def largest_request(running: RunningDaemon, spec: BagSpec) -> int:
    """Processors of the largest request that any site takes."""
    return max((running.sites[name].memory.limits.max_proc for name in _sites_of(running, spec)), default=0)
