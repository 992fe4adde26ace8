"""Bags and their tasks as users see them."""

from __future__ import annotations

import sqlite3

import msgspec

from adaptor import api
from adaptor.api import BagState, BagView, Evidence, TaskView
from adaptor.bag_spec import BagSpec
from adaptor.journal.live import OFFLINE, Live
from adaptor.journal.output_names import ScriptOutputs
from adaptor.journal.selectors import RECENT, select
from adaptor.model import TaskState
from adaptor.scheduling.bag import Guard

_BAG_COLUMNS = (
    "id, spec, name, tasks, submitted, ended, waiting, leased, done, failed, cancelled, retried, runtime,"
    " open, events, blocked, guard"
)

_RECENT = (
    "id IN (SELECT id FROM bag WHERE ended IS NULL UNION"
    " SELECT id FROM (SELECT id FROM bag ORDER BY id DESC LIMIT ?))"
)


def bags(db: sqlite3.Connection, selector: str, live: Live = OFFLINE) -> list[BagView]:
    """The bags of a selector, in the order of their numbers.

    Raises:
        UsageError: it is no selector.
        UnknownBagError: it names a bag that is not there.
    """
    if selector == "recent":
        rows = db.execute(f"SELECT {_BAG_COLUMNS} FROM bag WHERE {_RECENT} ORDER BY id", (RECENT,))  # noqa: S608
        return [live.bag(_bag_view(db, row)) for row in rows]
    chosen = select(selector, [id for (id,) in db.execute("SELECT id FROM bag")])
    if not chosen:
        return []
    # A range and not a list of ids: SQLite limits the parameters of a statement, in old versions to 999.
    rows = db.execute(
        f"SELECT {_BAG_COLUMNS} FROM bag WHERE id BETWEEN ? AND ? ORDER BY id",  # noqa: S608
        (chosen[0], chosen[-1]),
    )
    wanted = set(chosen)
    return [live.bag(_bag_view(db, row)) for row in rows if row[0] in wanted]


def count(db: sqlite3.Connection) -> int:
    """The number of bags."""
    return int(db.execute("SELECT COUNT(*) FROM bag").fetchone()[0])


def latest(db: sqlite3.Connection, question: api.GetLatestBags, live: Live = OFFLINE) -> list[BagView]:
    """The bags that have not ended and the last that have, in the order of their numbers."""
    found = [
        id
        for condition, most in (
            ("ended IS NULL", question.running),
            ("ended IS NOT NULL", question.ended),
        )
        for (id,) in db.execute(f"SELECT id FROM bag WHERE {condition} ORDER BY id DESC LIMIT ?", (most,))  # noqa: S608
    ]
    return bags(db, ",".join(map(str, sorted(found))), live) if found else []


def _bag_view(db: sqlite3.Connection, row: tuple[object, ...]) -> BagView:
    view = _BagRow(*row)  # type: ignore[arg-type]
    spec = msgspec.msgpack.decode(view.spec, type=BagSpec)
    guard = msgspec.msgpack.decode(view.guard, type=Guard) if view.guard is not None else Guard()
    state = _bag_state(view)
    paused = state == "running" and bool(guard.paused)
    return BagView(
        id=view.id,
        name=view.name,
        state=state,
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
        open=bool(view.open),
        events=view.events,
        blocked=view.blocked,
        paused=guard.paused if paused else "",
        halted=paused and guard.itself,
        evidence=_evidence(db, view.id, *guard.shown) if paused and guard.shown else None,
        output_files=spec.output_files,
    )


def _evidence(db: sqlite3.Connection, bag: int, task: int, attempt: int) -> Evidence:
    packed, node = db.execute(
        "SELECT t.input, a.node FROM task t JOIN attempt a ON a.bag = t.bag AND a.task = t.number"
        " WHERE t.bag = ? AND t.number = ? AND a.number = ?",
        (bag, task, attempt),
    ).fetchone()
    given = msgspec.msgpack.decode(packed, type=api.TaskInput)
    return Evidence(task, attempt, ScriptOutputs(db, bag).of(task, given.environment, node)[1])


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
    open: int
    events: int
    blocked: int
    guard: bytes | None


def _bag_state(row: _BagRow) -> BagState:
    if row.waiting or row.leased or row.blocked:
        return "running"
    if row.open:
        return "open"
    if row.failed:
        return "failed"
    return "cancelled" if row.cancelled else "done"


def tasks(db: sqlite3.Connection, question: api.GetTasks, live: Live = OFFLINE) -> list[TaskView]:
    """The tasks of one bag, with the attempt that is their result or else the newest.

    A task that a worker holds counts as running: only a daemon knows whether it has started.
    """
    (bag,) = bags(db, str(question.bag))
    marks = ",".join("?" * len(question.states))
    states = f"AND t.state IN ({marks})" if question.states else ""
    rows = db.execute(
        "SELECT t.number, t.state, t.attempts, t.charged, t.error, t.input, a.number, a.exit_code,"  # noqa: S608
        " a.signal, a.error, a.wall, a.cpu, a.peak_memory, a.started, a.ended, a.node, a.peak_gpu_memory"
        " FROM task t LEFT JOIN attempt a ON a.bag = t.bag AND a.task = t.number"
        " AND a.number = COALESCE(t.result, t.attempts)"
        f" WHERE t.bag = ? AND t.number > ? {states} ORDER BY t.number LIMIT ?",
        (question.bag, question.after, *map(_stored, question.states), question.limit),
    )
    outputs = ScriptOutputs(db, question.bag)
    return [live.task(_task_view(bag, row, outputs)) for row in rows]


def _stored(state: str) -> str:
    """The journal's word for a word of `TaskView.state`."""
    return TaskState.LEASED.value if state == "running" else state


def _task_view(bag: BagView, row: tuple[object, ...], outputs: ScriptOutputs) -> TaskView:
    task = _TaskRow(*row)  # type: ignore[arg-type]
    given = msgspec.msgpack.decode(task.input, type=api.TaskInput)
    stdout, stderr = outputs.of(task.number, given.environment, task.node)
    return TaskView(
        bag=bag.id,
        task=task.number,
        name=given.name or given.id,
        state="running" if task.state == TaskState.LEASED.value else task.state,
        command=given.command
        if isinstance(given.command, str)
        else msgspec.json.encode(given.command).decode(),
        attempts=task.attempts,
        attempt=task.attempt or 0,
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
        peak_gpu_memory=task.peak_gpu_memory,
        stdout=stdout,
        stderr=stderr,
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
    peak_gpu_memory: int | None
