"""Rebuild the broker from the journal: after a restart, a crash, or an outage of the disk."""

from __future__ import annotations

import sqlite3

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.errors import UnknownBagError
from adaptor.journal.credit_entries import budgets_of_bags, read_entries
from adaptor.journal.database import guarded
from adaptor.journal.journal import Journal
from adaptor.model import AttemptOutcome, TaskState
from adaptor.protocol.messages import AttemptKey
from adaptor.scheduling.bag import Bag
from adaptor.scheduling.broker import Broker
from adaptor.scheduling.donation_facts import DonatedNode, Preempted
from adaptor.scheduling.losses import LostAttempt
from adaptor.scheduling.state import PaidCopy, SchedulingState, SiteTerms
from adaptor.scheduling.workers import HeldLease, Worker


def recover(journal: Journal, sites: dict[str, SiteTerms], now: float) -> Broker:
    """The broker with all unfinished bags, what was learned of them, and the workers that held their tasks.

    A worker that held leases is entered as `awaited`: its tasks stay with it until it says Hello, or
    until it has been silent for too long.
    """
    broker = Broker(sites)
    with guarded(journal.path):
        db = journal.connection
        open_bags = db.execute(
            "SELECT id FROM bag WHERE waiting + leased > 0"
            " OR id IN (SELECT DISTINCT bag FROM attempt WHERE outcome IS NULL)"
        ).fetchall()
        for (bag_id,) in open_bags:
            bag = _read_bag(db, bag_id)
            broker.state.bags[bag_id] = bag
            if bag.spec.aims:
                broker.keep_apart(bag_id)
            _recall_runtimes(db, broker, bag)
            _recall_preemptions(db, bag)
        _await_workers(db, broker, now)
    for row in journal.pilots_in_system():
        broker.state.lost[row.id] = _lost_in(db, row.id)
        if row.bag is not None:
            broker.own_pilot(row.id, row.bag)
        if row.node:
            broker.use_node(row.id, DonatedNode(since=row.started or row.submitted))
    for budgeted in budgets_of_bags(read_entries(journal)):
        broker.keep_apart(budgeted)
    _recall_copies(broker.state)
    return broker


def load_bag(journal: Journal, bag: int) -> Bag:
    """Raises UnknownBagError."""
    with guarded(journal.path):
        return _read_bag(journal.connection, bag)


def _read_bag(db: sqlite3.Connection, bag_id: int) -> Bag:
    row = db.execute(
        "SELECT spec, tasks, retried, runtime, first_done FROM bag WHERE id = ?", (bag_id,)
    ).fetchone()
    if row is None:
        raise UnknownBagError(bag_id)
    spec, total, retried, runtime, first_done = row
    bag = Bag(bag_id, msgspec.msgpack.decode(spec, type=BagSpec), total)
    bag.retried, bag.runtime, bag.first_done = retried, runtime, first_done
    _read_losses(db, bag)
    tasks = db.execute(
        "SELECT number, state, attempts, charged FROM task WHERE bag = ? ORDER BY number", (bag_id,)
    )
    for number, state, attempts, charged in tasks:
        bag.restore(number, TaskState(state), attempts, charged)
    bag.put_in_order()
    _read_attempts(db, bag)
    done = "SELECT SUM(wall * wall) FROM attempt WHERE bag = ? AND outcome = ?"
    bag.squares = db.execute(done, (bag_id, AttemptOutcome.DONE.value)).fetchone()[0] or 0.0
    return bag


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
    told = (AttemptOutcome.DONE.value, AttemptOutcome.FAILED.value, AttemptOutcome.SUPERSEDED.value)
    rows = db.execute(
        "SELECT task, number, outcome FROM attempt WHERE bag = ?"
        " AND (outcome IS NULL OR outcome NOT IN (?, ?, ?))",
        (bag.id, *told),
    )
    for task, attempt, outcome in rows:
        if outcome is None and bag.state(task) is TaskState.LEASED:
            bag.live.setdefault(task, set()).add(attempt)
        else:
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
    for site, task, outcome, wall in attempts:
        done = outcome == AttemptOutcome.DONE.value
        if site not in broker.state.sites:  # the configuration no longer has it
            if done:
                broker.state.note_runtime(bag.id, task, wall)
        elif done:
            broker.state.finished(bag, site, task, wall)
        else:
            broker.state.learner(bag.id, site).cut(task, wall)


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


def _lost_in(db: sqlite3.Connection, pilot: int) -> dict[AttemptKey, LostAttempt]:
    """The lost attempts of a pilot whose end may say more of them."""
    rows = db.execute(
        "SELECT bag, task, number, worker, node, ended FROM attempt"
        " WHERE pilot = ? AND outcome = ? AND (suspect OR started IS NOT NULL)",
        (pilot, AttemptOutcome.LOST.value),
    )
    return {
        AttemptKey(bag, task, number): LostAttempt(worker, node, ended)
        for bag, task, number, worker, node, ended in rows
    }


def _await_workers(db: sqlite3.Connection, broker: Broker, now: float) -> None:
    held = db.execute(
        "SELECT attempt.worker, attempt.node, pilot.id, pilot.site, attempt.bag, attempt.task,"
        " attempt.number, attempt.leased FROM attempt JOIN pilot ON pilot.id = attempt.pilot"
        " WHERE attempt.outcome IS NULL"
    )
    workers = broker.state.workers
    for id, node, pilot, site, bag, task, number, leased in held:
        worker = workers.get(id)
        if worker is None:
            worker = workers[id] = Worker(
                id, pilot=pilot, site=site, node=node, processors=0, memory=0, deadline=float("inf"), seen=now
            )
            worker.awaited = True
        known = broker.state.bags[bag]
        cpus, suspect = known.spec.cpus, task in known.losses
        worker.held[AttemptKey(bag, task, number)] = HeldLease(leased=leased, cpus=cpus, suspect=suspect)
        broker.state.shares[bag, site] += cpus


def _recall_copies(state: SchedulingState) -> None:
    """Mark all attempts of a task but the first as replicas: they must not begin another charging unit."""
    for worker in state.workers.values():
        for key in worker.held:
            live = state.bags[key.bag].live.get(key.task, ())
            if key.bag in state.alone and key.attempt > min(live, default=key.attempt):
                state.copies[key] = PaidCopy(worker.id, None)
