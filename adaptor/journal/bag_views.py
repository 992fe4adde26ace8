"""Bags and their tasks as users see them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import msgspec

from adaptor.bag_spec import BagSpec
from adaptor.journal.selectors import select
from adaptor.protocol import control
from adaptor.views import BagState, BagView, TaskView

_BAG_COLUMNS = (
    "id, spec, name, tasks, submitted, ended, waiting, leased, done, failed, cancelled, retried, runtime"
)


def bags(db: sqlite3.Connection, selector: str) -> list[BagView]:
    """The bags of a selector, in the order of their numbers.

    Raises:
        UsageError: it is no selector.
        UnknownBagError: it names a bag that is not there.
    """
    chosen = select(selector, [id for (id,) in db.execute("SELECT id FROM bag")])
    if not chosen:
        return []
    # A range and not a list of ids: SQLite limits the parameters of a statement, in old versions to 999.
    rows = db.execute(
        f"SELECT {_BAG_COLUMNS} FROM bag WHERE id BETWEEN ? AND ? ORDER BY id",  # noqa: S608
        (chosen[0], chosen[-1]),
    )
    wanted = set(chosen)
    return [_bag_view(row) for row in rows if row[0] in wanted]


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
