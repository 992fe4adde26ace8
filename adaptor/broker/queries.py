"""What the journal tells a user, the daemon running or not."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import msgspec

from adaptor.broker.bag import BagSpec
from adaptor.broker.credit_entries import entries
from adaptor.broker.credit_views import bag_line, credits_view
from adaptor.broker.database import FILE, guarded, open_for_reading
from adaptor.broker.lending_views import lending_of_bag
from adaptor.broker.selectors import select
from adaptor.budget.ledger import Ledger
from adaptor.errors import UsageError
from adaptor.link import control
from adaptor.model import IN_SYSTEM, PilotState
from adaptor.views import BagReport, BagState, BagView, Explanation, PilotRecord, TaskView, Totals

READING = (
    control.GetBags | control.GetTasks | control.GetPilots | control.GetReport | control.GetWhy
    | control.GetCredits
)  # fmt: skip
"""The questions that the journal alone can answer."""


def answer_offline(directory: Path, question: control.Question) -> control.Answer:
    """Answer from the journal of a daemon that does not run.

    Raises:
        JournalError: there is no journal, or it is in use.
        UsageError: the question names something that is not there.
    """
    if not isinstance(question, READING):
        raise UsageError("this needs a running daemon; start it with: adaptor daemon start")
    with closing(open_for_reading(directory)) as db, guarded(directory / FILE):
        return answer(db, question)


def answer(db: sqlite3.Connection, question: READING) -> control.Answer:
    """Raises UsageError: the question names something that is not there."""
    match question:
        case control.GetBags():
            return control.Bags(bags(db, question.selector))
        case control.GetTasks():
            return control.Tasks(tasks(db, question))
        case control.GetPilots():
            states = list(PilotState) if question.ended else IN_SYSTEM
            where = f"WHERE state IN ({','.join('?' * len(states))})"
            return control.Pilots(pilots(db, where, [state.value for state in states]))
        case control.GetReport():
            return control.Report(report(db, question.bag))
        case control.GetCredits():
            wanted = [bag.id for bag in bags(db, question.bags)]
            return control.Credits(credits_view(Ledger(entries(db)), wanted, time.time(), priced=False))
        case control.GetWhy():
            return control.Why(why(db, question))


_BAG_COLUMNS = (
    "id, spec, name, tasks, submitted, ended, waiting, leased, done, failed, cancelled, retried, runtime"
)


def bags(db: sqlite3.Connection, selector: str) -> list[BagView]:
    known = [id for (id,) in db.execute("SELECT id FROM bag")]
    chosen = select(selector, known)
    marks = ",".join("?" * len(chosen))
    rows = db.execute(f"SELECT {_BAG_COLUMNS} FROM bag WHERE id IN ({marks}) ORDER BY id", chosen)  # noqa: S608
    return [_bag_view(row) for row in rows]


def _bag_view(row: tuple[object, ...]) -> BagView:
    view = _BagRow(*row)  # type: ignore[arg-type]
    spec = msgspec.msgpack.decode(view.spec, type=BagSpec)
    return BagView(
        id=view.id,
        name=view.name,
        state=_bag_state(view),
        sites=list(spec.sites),
        tasks=view.tasks,
        waiting=view.waiting,
        running=view.leased,
        done=view.done,
        failed=view.failed,
        cancelled=view.cancelled,
        retried=view.retried,
        submitted=view.submitted,
        ended=view.ended,
        cpus=spec.cpus,
        mean_runtime=view.runtime / view.done if view.done else None,
        output=spec.output,
    )


class _BagRow(msgspec.Struct):
    id: int
    spec: bytes
    name: str
    tasks: int
    submitted: float
    ended: float | None
    waiting: int
    leased: int
    done: int
    failed: int
    cancelled: int
    retried: int
    runtime: float


def _bag_state(row: _BagRow) -> BagState:
    if row.waiting or row.leased:
        return "running"
    if row.failed:
        return "failed"
    return "cancelled" if row.cancelled else "done"


def tasks(db: sqlite3.Connection, question: control.GetTasks) -> list[TaskView]:
    """The tasks of one bag, with the attempt that is their result or else the newest."""
    (bag,) = bags(db, str(question.bag))
    marks = ",".join("?" * len(question.states))
    states = f"AND t.state IN ({marks})" if question.states else ""
    rows = db.execute(
        "SELECT t.number, t.state, t.attempts, t.charged, t.error, t.input, a.number, a.exit_code,"  # noqa: S608
        " a.signal, a.error, a.wall, a.cpu, a.peak_memory, a.started, a.ended, a.node"
        " FROM task t LEFT JOIN attempt a ON a.bag = t.bag AND a.task = t.number"
        " AND a.number = COALESCE(t.result, t.attempts)"
        f" WHERE t.bag = ? AND t.number > ? {states} ORDER BY t.number LIMIT ?",
        (question.bag, question.after, *question.states, question.limit),
    )
    return [_task_view(bag, row) for row in rows]


def _task_view(bag: BagView, row: tuple[object, ...]) -> TaskView:
    task = _TaskRow(*row)  # type: ignore[arg-type]
    given = msgspec.msgpack.decode(task.input, type=control.TaskInput)
    stem = f"{task.number}" if task.attempt in (None, 1) else f"{task.number}.{task.attempt}"
    return TaskView(
        bag=bag.id,
        task=task.number,
        name=given.name,
        state=task.state,
        command=given.command
        if isinstance(given.command, str)
        else msgspec.json.encode(given.command).decode(),
        attempts=task.attempts,
        retries=min(task.charged, max(0, task.attempts - 1)),
        exit_code=task.exit_code,
        signal=task.signal,
        error=task.error or task.attempt_error,
        wall=task.wall,
        cpu=task.cpu,
        peak_memory=task.peak_memory,
        started=task.started,
        ended=task.ended,
        node=task.node,
        stdout=_if_there(Path(bag.output, f"{stem}.out")),
        stderr=_if_there(Path(bag.output, f"{stem}.err")),
    )


class _TaskRow(msgspec.Struct):
    number: int
    state: str
    attempts: int
    charged: int
    error: str | None
    input: bytes
    attempt: int | None
    exit_code: int | None
    signal: int | None
    attempt_error: str | None
    wall: float | None
    cpu: float | None
    peak_memory: int | None
    started: float | None
    ended: float | None
    node: str | None


def _if_there(path: Path) -> str | None:
    return str(path) if path.exists() else None


_PILOT_COLUMNS = (
    "id, site, job, state, p, tr, node, submitted, predicted_start, started, ended, yielded, reason,"
    " end_reason,"
    " freed, freed_at"
)


def pilots(db: sqlite3.Connection, where: str, arguments: Iterable[object]) -> list[PilotRecord]:
    """Pilots by an SQL condition of this module's own making."""
    rows = db.execute(f"SELECT {_PILOT_COLUMNS} FROM pilot {where} ORDER BY id", tuple(arguments)).fetchall()  # noqa: S608
    used = _used(db, [row[0] for row in rows])
    now = time.time()
    return [_pilot_record(row, used.get(row[0], 0.0), now) for row in rows]


def _used(db: sqlite3.Connection, ids: list[int]) -> dict[int, float]:
    """Processor-seconds of the attempts that became results, by pilot."""
    rows = db.execute(
        "SELECT attempt.pilot, bag.spec, SUM(attempt.wall) FROM attempt JOIN bag ON bag.id = attempt.bag"  # noqa: S608
        f" WHERE attempt.outcome = 'done' AND attempt.pilot IN ({','.join('?' * len(ids))})"
        " GROUP BY attempt.pilot, attempt.bag",
        ids,
    )
    used: dict[int, float] = {}
    for pilot, spec, wall in rows:
        cpus = msgspec.msgpack.decode(spec, type=BagSpec).cpus
        used[pilot] = used.get(pilot, 0.0) + wall * cpus
    return used


def _pilot_record(row: tuple[object, ...], used: float, now: float) -> PilotRecord:
    pilot = _PilotRow(*row)  # type: ignore[arg-type]
    fields = msgspec.structs.asdict(pilot)
    del fields["freed"], fields["freed_at"]
    wasted = max(0.0, _held(pilot, now) - used)
    return PilotRecord(**fields, used=used, wasted=wasted, workers=0, note="")


def _held(pilot: _PilotRow, now: float) -> float:
    """Processor-seconds, without those of processors that were given back early."""
    if pilot.started is None:
        return 0.0
    end = pilot.ended if pilot.ended is not None else now
    return pilot.p * max(0.0, end - pilot.started) - (pilot.freed * end - pilot.freed_at)


class _PilotRow(msgspec.Struct):
    id: int
    site: str
    job: str | None
    state: str
    p: int
    tr: int
    node: str
    submitted: float
    predicted_start: float | None
    started: float | None
    ended: float | None
    yielded: float | None
    reason: str
    end_reason: str
    freed: int
    freed_at: float


def report(db: sqlite3.Connection, bag_id: int) -> BagReport:
    """Every request that ran tasks of the bag, or was made while it was unfinished and ran nothing."""
    (bag,) = bags(db, str(bag_id))
    until = bag.ended if bag.ended is not None else float("inf")
    requests = pilots(
        db,
        "WHERE id IN (SELECT DISTINCT pilot FROM attempt WHERE bag = ?) OR (submitted BETWEEN ? AND ?"
        " AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.pilot = pilot.id))",
        (bag_id, bag.submitted, until),
    )
    if bag.sites:
        requests = [request for request in requests if request.site in bag.sites]
    first_done = db.execute("SELECT first_done FROM bag WHERE id = ?", (bag_id,)).fetchone()[0]
    used = sum(request.used for request in requests)
    wasted = sum(request.wasted for request in requests)
    ledger = Ledger(entries(db))
    return BagReport(
        bag=bag,
        requests=requests,
        totals=Totals(
            requests=sum(not each.node for each in requests),
            leases=sum(bool(each.node) for each in requests),
            paid=used + wasted,
            used=used,
            wasted=wasted,
            turnaround=bag.ended - bag.submitted if bag.ended is not None else None,
            first_result=first_done - bag.submitted if first_done is not None else None,
        ),
        credits=bag_line(ledger, bag_id) if bag_id in ledger.bags else None,
        lending=lending_of_bag(db, bag_id),
    )


def why(db: sqlite3.Connection, question: control.GetWhy) -> list[Explanation]:
    """The newest decisions, oldest first."""
    where, arguments = "", ()  # type: tuple[str, tuple[object, ...]]
    if question.pilot is not None:
        where, arguments = "WHERE pilot = ?", (question.pilot,)
    elif question.bag is not None:
        (bag,) = bags(db, str(question.bag))
        until = bag.ended if bag.ended is not None else float("inf")
        where, arguments = "WHERE time BETWEEN ? AND ?", (bag.submitted, until)
    rows = db.execute(
        f"SELECT time, site, pilot, kind, text FROM decision {where} ORDER BY id DESC LIMIT ?",  # noqa: S608
        (*arguments, question.limit),
    ).fetchall()
    return [
        Explanation(
            time=at, site=site, subject=site if pilot is None else f"pilot {pilot}", kind=kind, text=text
        )
        for at, site, pilot, kind, text in reversed(rows)
    ]
