"""Rebuild the broker from the journal: after a restart, a crash, or an outage of the disk."""

from __future__ import annotations

import sqlite3
from collections import Counter

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.errors import UnknownBagError
from adaptor.journal.bag_rows import end_of_bag, read_needs, requeued_work, unpack_task
from adaptor.journal.credits import budgets_of_bags, entries
from adaptor.journal.database import guarded
from adaptor.journal.journal import Journal
from adaptor.journal.pilot_rows import pilots_in_system
from adaptor.model import REPORTED, AttemptOutcome, TaskState
from adaptor.protocol.messages import AttemptKey
from adaptor.scheduling.bag import Bag, Guard
from adaptor.scheduling.blocking import look_at
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.donation_facts import DonatedNode, Preempted
from adaptor.scheduling.losses import LostAttempt
from adaptor.scheduling.state import TOGETHER, PaidCopy, SchedulingState, SiteTerms
from adaptor.scheduling.task_links import link_of
from adaptor.scheduling.workers import HeldLease, Worker


def recover(journal: Journal, sites: dict[str, SiteTerms], now: float) -> Broker:
    """The broker with all bags that have not ended, what was learned of them, and their workers.

    A worker that held leases is entered as `awaited`: its tasks stay with it until it says Hello, or
    until it has been silent for too long.
    """
    broker = Broker(sites)
    with guarded(journal.path):
        db = journal.connection
        open_bags = db.execute(
            "SELECT id FROM bag WHERE ended IS NULL"
            " OR id IN (SELECT DISTINCT bag FROM attempt WHERE outcome IS NULL)"
        ).fetchall()
        for (bag_id,) in open_bags:
            bag = _read_bag(db, bag_id)
            broker.state.enter(bag)
            if bag.spec.aims:
                broker.keep_apart(bag_id)
            _recall_runtimes(db, broker, bag)
            _recall_preemptions(db, bag)
        _await_workers(db, broker, now)
        for bag in list(broker.state.bags.values()):
            look_at(broker.state, bag, bag.blocked)
    for row in journal.read(pilots_in_system):
        rows = db.execute(
            "SELECT bag, task, number, worker, node, ended FROM attempt"
            " WHERE pilot = ? AND outcome = ? AND (suspect OR started IS NOT NULL)",
            (row.id, AttemptOutcome.LOST.value),
        )
        broker.state.lost[row.id] = {
            AttemptKey(bag, task, number): LostAttempt(worker, node, ended)
            for bag, task, number, worker, node, ended in rows
        }
        if row.bag is not None:
            broker.own_pilot(row.id, row.bag)
        if row.node:
            broker.use_node(row.id, DonatedNode(since=row.started or row.submitted))
    for budgeted in budgets_of_bags(journal.read(entries)):
        broker.keep_apart(budgeted)
    _recall_copies(broker.state)
    changes, _ = broker.drain()  # of tasks that were appended, and not yet looked at
    journal.write(changes, now)
    return broker


def load_bag(journal: Journal, bag: int) -> Bag:
    """Read a bag with the state of its tasks. Raises UnknownBagError."""
    with guarded(journal.path):
        return _read_bag(journal.connection, bag)


def _read_bag(db: sqlite3.Connection, bag_id: int) -> Bag:
    row = db.execute(
        "SELECT spec, tasks, retried, runtime, first_done, open, events, linked, guard FROM bag WHERE id = ?",
        (bag_id,),
    ).fetchone()
    if row is None:
        raise UnknownBagError(bag_id)
    spec, total, retried, runtime, first_done, is_open, events, linked, guard = row
    bag = Bag(bag_id, msgspec.msgpack.decode(spec, type=BagSpec), total, read_needs(db, bag_id))
    if guard is not None:
        bag.guard = msgspec.msgpack.decode(guard, type=Guard)
    bag.retried, bag.runtime, bag.first_done = retried, runtime, first_done
    bag.open, bag.events = bool(is_open), events
    _read_losses(db, bag)
    # All others wait, and have never run.
    others = db.execute(
        "SELECT number, state, attempts, charged FROM task WHERE bag = ?"
        " AND (state <> ? OR attempts <> 0 OR charged <> 0)",
        (bag_id, TaskState.WAITING.value),
    )
    bag.restore(others)
    bag.fill()
    if linked:
        _read_links(db, bag)
    for parent in (*bag.spec.after, *bag.spec.after_any):
        try:
            end = end_of_bag(db, parent)
        except UnknownBagError:
            continue
        if end is None:
            bag.awaits.add(parent)
        elif end is not TaskState.DONE and parent in bag.spec.after:
            bag.spoilers[parent] = end
    _read_attempts(db, bag)
    worked = requeued_work(db, bag_id)
    bag.progress = {task: seconds for task, seconds in worked.items() if not bag.state(task).ended}
    bag.squares = _squares(db, bag_id, worked)
    return bag


def _read_links(db: sqlite3.Connection, bag: Bag) -> None:
    """Read after which others the tasks run that have no result yet."""
    rows = db.execute(
        "SELECT number, input FROM task WHERE bag = ? AND state <> ?", (bag.id, TaskState.DONE.value)
    )
    for number, packed in rows:
        bag.dependencies.add(number, link_of(unpack_task(packed)))


def _squares(db: sqlite3.Connection, bag: int, worked: dict[int, float]) -> float:
    """The sum of the squared runtimes of done tasks; `worked`: what they have worked in earlier attempts."""
    of_done = (bag, AttemptOutcome.DONE.value)
    if not worked:
        found = db.execute(
            "SELECT SUM(wall * wall) FROM attempt WHERE bag = ? AND outcome = ?", of_done
        ).fetchone()
        return float(found[0] or 0.0)
    rows = db.execute("SELECT task, wall FROM attempt WHERE bag = ? AND outcome = ?", of_done)
    return float(sum((wall + worked.get(task, 0.0)) ** 2 for task, wall in rows))


def _read_losses(db: sqlite3.Connection, bag: Bag) -> None:
    """Read which tasks are suspects, before they are queued accordingly."""
    rows = db.execute(
        "SELECT task.number, attempt.number FROM attempt JOIN task"
        " ON task.bag = attempt.bag AND task.number = attempt.task"
        " WHERE attempt.bag = ? AND attempt.suspect AND task.state <> ?",
        (bag.id, TaskState.DONE.value),
    )
    for task, attempt in rows:
        bag.losses.add(task, attempt)


def _read_attempts(db: sqlite3.Connection, bag: Bag) -> None:
    """Read the attempts that workers hold, and those that were given up but may still have a result."""
    marks = ",".join("?" * len(REPORTED))
    rows = db.execute(
        "SELECT task, number, outcome, worker FROM attempt WHERE bag = ?"  # noqa: S608
        f" AND (outcome IS NULL OR outcome NOT IN ({marks}))",
        (bag.id, *(outcome.value for outcome in REPORTED)),
    )
    for task, attempt, outcome, worker in rows:
        if outcome is None and bag.state(task) is TaskState.LEASED:
            bag.live.setdefault(task, set()).add(attempt)
        elif TOGETHER not in worker or bag.sizes.of(task).nodes > 1:  # else: put back with fewer nodes
            bag.set_adrift(task, attempt)


def _recall_runtimes(db: sqlite3.Connection, broker: Broker, bag: Bag) -> None:
    """Teach the learners the runtimes of the bag's attempts again."""
    attempts = db.execute(
        "SELECT pilot.site, attempt.task, attempt.outcome, attempt.wall FROM attempt"
        " LEFT JOIN pilot ON pilot.id = attempt.pilot"
        " WHERE attempt.bag = ? AND attempt.outcome IN (?, ?) AND attempt.wall IS NOT NULL"
        " ORDER BY attempt.ended",
        (bag.id, AttemptOutcome.DONE.value, AttemptOutcome.WALLTIME.value),
    )
    worked = requeued_work(db, bag.id)
    for site, task, outcome, last in attempts:
        wall = last + worked.get(task, 0.0) if outcome == AttemptOutcome.DONE.value else last
        done = outcome == AttemptOutcome.DONE.value
        if site not in broker.state.sites:  # the configuration no longer has it
            if done:
                broker.state.note_runtime(bag.id, task, wall)
        elif done:
            broker.state.finished(bag, site, task, wall)
        else:
            broker.state.cut(bag, site, task, wall)


def _recall_preemptions(db: sqlite3.Connection, bag: Bag) -> None:
    """Count how often each unfinished task has lost a donated node."""
    rows = db.execute(
        "SELECT attempt.task, COUNT(*), MAX(COALESCE(attempt.wall, attempt.ended - attempt.started, 0))"
        " FROM attempt JOIN pilot ON pilot.id = attempt.pilot"
        " WHERE attempt.bag = ? AND attempt.outcome IN (?, ?) AND attempt.started IS NOT NULL"
        " AND pilot.donated_node <> '' GROUP BY attempt.task",
        (bag.id, AttemptOutcome.PREEMPTED.value, AttemptOutcome.LOST.value),
    )
    for task, times, ran in rows:
        if not bag.state(task).ended:
            bag.preempted[task] = Preempted(times, ran)


def _await_workers(db: sqlite3.Connection, broker: Broker, now: float) -> None:
    held = db.execute(
        "SELECT attempt.worker, attempt.node, pilot.id, pilot.site, attempt.bag, attempt.task,"
        " attempt.number, attempt.leased, pilot.p FROM attempt JOIN pilot ON pilot.id = attempt.pilot"
        " WHERE attempt.outcome IS NULL ORDER BY attempt.leased"
    )
    workers, taken = broker.state.workers, Counter[int]()
    for id, node, pilot, site, bag, task, number, leased, processors in held:
        known = broker.state.bags[bag]
        size = known.sizes.of(task)
        several = TOGETHER in id
        taken[pilot] += size.total_processors
        ids, nodes = (id.split(TOGETHER), node.split(TOGETHER)) if several else ([id], [node])
        for one, its_node in zip(ids, nodes, strict=True):
            worker = workers.get(one)
            if worker is None:
                worker = workers[one] = _awaited(one, pilot, site, its_node, now)
            worker.held[AttemptKey(bag, task, number)] = HeldLease(
                leased=min(leased, now),  # the clock may have been set back
                cpus=size.processors,
                line=known.lines.of(task).number if one == ids[0] else None,
                suspect=task in known.losses,
                group=tuple(ids) if several else (),
                takes_part=one != ids[0],
                in_reserve=taken[pilot] > processors,
            )
            broker.state.held_processors[bag, site] += size.processors
        broker.state.leases[bag, known.lines.of(task).number, site] += 1


def _awaited(id: str, pilot: int, site: str, node: str, now: float) -> Worker:
    worker = Worker(
        id, pilot=pilot, site=site, node=node, processors=0, memory=0, deadline=float("inf"), seen=now
    )
    worker.awaited = True
    return worker


def _recall_copies(state: SchedulingState) -> None:
    """Mark all attempts of a task but the first as replicas: they must not begin another charging unit."""
    for worker in state.workers.values():
        for key in worker.held:
            live = state.bags[key.bag].live.get(key.task, ())
            if key.bag in state.alone and key.attempt > min(live, default=key.attempt):
                state.copies[key] = PaidCopy(worker.id, None)
