"""New bags, more tasks for open ones, and the events of bags."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from adaptor import api
from adaptor.api import TaskInput
from adaptor.bag_spec import BUNDLES, BagSpec
from adaptor.bundles.archives import is_there
from adaptor.daemon.client.admission import told_of
from adaptor.daemon.client.credits import budget_writer, check_begin, check_deadline
from adaptor.daemon.client.new_tasks import (
    OwnNeedsOf,
    check_own_times,
    out_of_bounds,
    own_needs,
    own_sizes,
    prepared,
    reasons_of,
)
from adaptor.daemon.client.running import RunningDaemon, answers
from adaptor.daemon.core import Core
from adaptor.decisions.new_bags import check_can_run, check_sites, check_times, impossible_tasks
from adaptor.errors import UsageError
from adaptor.journal.bag_rows import AppendedTasks, bag_of_key, end_of_bag
from adaptor.journal.recovery import load_bag
from adaptor.journal.staging import StagedTasks, left_to_run
from adaptor.journal.views import events
from adaptor.kinds.recognising import kinds_of
from adaptor.model import QueueState, TaskState
from adaptor.resources import OwnNeeds
from adaptor.scheduling.bag import Bag

OVER_SSH = (
    "over ssh nodes get no copy of what a bag stages: they need folders of the same paths, and read these"
)
ONE_NODE = "each donated node has a pilot of its own: a bag with allocation transparent has --nodes 1"


@answers(api.Submit)
async def submit(running: RunningDaemon, question: api.Submit) -> api.Submitted:
    """A new bag, without what earlier ones have done if it is to continue them.

    Raises:
        UsageError: it could never run.
        JournalError: it is not written down.
    """
    given, taken_over = question.bag, list[api.TakenOver]()
    if question.resume and given.tasks:
        left, taken_over = left_to_run(running.core.journal.connection, given.spec, given.tasks)
        if not left:
            return api.Submitted(0, taken_over)
        given = msgspec.structs.replace(given, tasks=left)
        question = msgspec.structs.replace(question, bag=given)
    try:
        answer = await _new_bag(running, question)
    except UsageError:
        if question.staged:
            running.retention.forget_staged(question.key)
        raise
    return msgspec.structs.replace(answer, taken_over=taken_over)


@answers(api.Stage)
def stage(running: RunningDaemon, question: api.Stage) -> int:
    """Take tasks of a bag that is submitted later; the number of those that came for it by now.

    Raises:
        UsageError: those before them are not there, an id is taken, or they run after each other.
        JournalError: they are not written down.
    """
    journal, now = running.core.journal, running.core.now()
    return journal.stage(question.key, question.first, question.tasks, now, set(question.taken))


async def _new_bag(running: RunningDaemon, question: api.Submit) -> api.Submitted:
    """Make a bag: open it, append its tasks, and close it again unless it is to stay open."""
    given, core = question.bag, running.core
    # What is looked at below does not change before it is written.
    new = await prepared(core.journal, question)
    if question.key and (known := core.journal.read(bag_of_key, question.key)) is not None:
        return api.Submitted(known)
    if new is None:
        raise UsageError("the tasks that came for this bag are forgotten: submit it again")
    asked = msgspec.structs.replace(given.spec.with_order(budget=given.budget is not None), kinds=new.kinds)
    earlier = core.earlier.of(asked)
    spec = earlier.settled(asked, queues_of(running, asked).values())
    if not new.own.total and not question.open:
        raise UsageError("a bag needs at least one task")
    refused = check(running, spec, new.own)
    _check_staged(core, spec, new.own)
    running.notifier.check(spec.notify)
    now = core.now()
    check_begin(spec.begin, now)
    check_deadline(spec.deadline, now, spec.begin)
    with_budget = budget_writer(core, running.sites, spec, given.budget, earlier.tasks)
    awaits = _awaited_bags(core, spec)
    id = core.journal.add_bag(
        spec,
        new.rows,
        now,
        _with_owner(core, question, now, with_budget),
        open=question.open,
        key=question.key,
        gated=bool(awaits),
        taken=set(given.taken),
    )
    if with_budget is not None:
        core.broker.keep_apart(id)
    if isinstance(new.rows, StagedTasks):
        bag = load_bag(core.journal, id)
    else:
        bag = Bag(id, core.journal.bag_spec(id), new.own.total, new.own.needs)
        bag.open, bag.awaits = question.open, awaits
        bag.block(new.dependencies, range(bag.total) if awaits else new.rows.links)
        bag.fill()
    bag.earlier = earlier.tasks
    core.broker.refuse(bag, refused)
    core.broker.add_bag(bag, now, watched=True)
    await core.commit()
    for name in _sites_of(running, spec) if spec.staged else ():
        if running.sites[name].remote_folder is not None:
            core.journal.explain(core.now(), name, "problem", OVER_SSH, bags=[id])
    for text in earlier.texts(asked, spec):
        core.journal.explain(core.now(), "", "earlier", text, bags=[id])
    if new.own.total:  # else its first tasks do: a look at the queue now would only put that one off
        running.wake_sites()
    return api.Submitted(id, refused=len(refused), reasons=reasons_of(new.own, refused))


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


_Writer = Callable[[sqlite3.Connection, int], None]


def _with_owner(core: Core, question: api.Submit, now: float, also: _Writer | None) -> _Writer | None:
    """Add the owner to what `also` writes (a new bag's budget), if a key with a grant submits the bag."""
    if not question.owner:
        return also

    def write(db: sqlite3.Connection, bag: int) -> None:
        core.grants.add_bag(db, question.owner, bag, now, told_of(question, bag))
        core.ledger.join(bag, question.owner)
        if also is not None:
            also(db, bag)

    return write


@answers(api.Append)
async def append(running: RunningDaemon, question: api.Append) -> api.Appended:
    """Append tasks to an open bag; those that were appended before are not appended again.

    Raises:
        UsageError: there is no such bag, it is closed, the key stands for other tasks, it has the calls of a
            program, or the needs of a task contradict each other.
        JournalError: the tasks are not written down.
    """
    id, tasks, journal = question.bag, question.tasks, running.core.journal
    if _has_calls(running, id):
        raise UsageError(f"bag {id} has the calls of a program: no other tasks can be appended to it")
    write = partial(journal.append, id, question.key, tasks)
    return await _append(running, id, tasks, write, durable=True)  # with their first leases: one wait


@answers(api.AppendCalls)
async def append_calls(running: RunningDaemon, question: api.AppendCalls) -> None:
    """Append calls of the program whose bag it is. Workers may get them at once (`AppendCalls`).

    Raises:
        UsageError: there is no such bag, it has no calls, it is closed, calls before these are missing, or
            the needs of a call contradict each other.
        JournalError: the calls are not written down.
    """
    id, calls, journal = question.bag, question.calls, running.core.journal
    if _has_calls(running, id) is False:
        raise UsageError(f"bag {id} has tasks, and no calls of a program")
    write = partial(journal.append_calls, id, question.first, calls)
    await _append(running, id, calls, write, durable=False)
    journal.sync()  # while the first of them run


def _has_calls(running: RunningDaemon, id: int) -> bool | None:
    """Whether a bag is one of calls; None: it has ended, or there is none."""
    bag = running.core.broker.state.bags.get(id)
    return None if bag is None else bag.spec.interpreter is not None


async def _append(
    running: RunningDaemon,
    id: int,
    tasks: Sequence[TaskInput],
    write: Callable[..., AppendedTasks],
    *,
    durable: bool,
) -> api.Appended:
    """Append tasks to an open bag, in the journal and the broker. `write`: writes them into the journal."""
    core = running.core
    known = core.broker.state.bags.get(id)
    own = own_needs(tasks)
    refused = {} if known is None else _impossible(running, known.spec, own)
    with core.journal.transaction(durable=durable):
        done = write(gated=known is not None and known.gated)
        if done.repeated or not done.tasks:
            return api.Appended(done.first, done.tasks)
        bag = core.broker.state.bags[id]
        waiting, sizes, refilled = bag.count(TaskState.WAITING), len(bag.lines), bag.expected > 0
        with core.ahead():
            core.broker.append(
                id,
                done.tasks,
                core.now(),
                links=done.links,
                needs={done.first + place: needs for place, needs in own.needs.items()},
                refused={done.first + place: why for place, why in refused.items()},
            )
            if not bag.spec.kinds:  # its first tasks
                spec = msgspec.structs.replace(bag.spec, kinds=kinds_of(bag.spec, tasks))
                core.broker.learn_kinds(bag, spec, core.earlier.of(spec).tasks)
            written = core.write()
    await core.tell(*written)
    more = bag.count(TaskState.WAITING) > 2 * waiting or len(bag.lines) > sizes
    if more or (bag.expected and not refilled):  # else the next look at the queue is early enough
        running.wake_sites()
    reasons = reasons_of(own_needs(tasks, done.first), refused)
    return api.Appended(done.first, done.tasks, len(refused), reasons)


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
    check_sites(spec.sites, running.sites)
    if spec.allocation == "transparent":
        names = spec.sites or tuple(running.sites)
        if all(running.sites[name].config.donation is None for name in names):
            raise UsageError(
                f"no node is donated at {' or '.join(names)}: a bag with allocation transparent needs a site "
                "with `donation:` in the configuration"
            )
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
