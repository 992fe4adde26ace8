"""Bags and their tasks as users see them."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from adaptor import api
from adaptor.api import BagState, BagView, Evidence, TaskView
from adaptor.bag_spec import BagSpec
from adaptor.journal import database
from adaptor.journal.live import OFFLINE, Live
from adaptor.journal.output_names import ScriptOutputs
from adaptor.journal.selectors import RECENT, select
from adaptor.model import TaskState
from adaptor.scheduling.bag import Guard

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
        return [live.bag(bag) for bag in _select_bags(db, f"{_RECENT} ORDER BY id", (RECENT,))]
    chosen = select(selector, [id for (id,) in db.execute("SELECT id FROM bag")])
    if not chosen:
        return []
    # A range and not a list of ids: SQLite limits the parameters of a statement, in old versions to 999.
    found = _select_bags(db, "id BETWEEN ? AND ? ORDER BY id", (chosen[0], chosen[-1]))
    wanted = set(chosen)
    return [live.bag(bag) for bag in found if bag.id in wanted]


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


def _select_bags(db: sqlite3.Connection, where: str, arguments: tuple[object, ...]) -> list[BagView]:
    def made(row: dict[str, Any]) -> dict[str, Any]:
        spec = msgspec.msgpack.decode(row["spec"], type=BagSpec)
        guard = msgspec.msgpack.decode(row["guard"], type=Guard) if row["guard"] is not None else Guard()
        state = _bag_state(row)
        paused = state == "running" and bool(guard.paused)
        return {
            "state": state,
            "sites": list(spec.sites),
            "cpus": spec.cpus,
            "mean_runtime": row["runtime"] / row["done"] if row["done"] else None,
            "output": spec.output,
            "output_files": spec.output_files,
            "open": bool(row["open"]),
            "paused": guard.paused if paused else "",
            "halted": paused and guard.itself,
            "evidence": _evidence(db, row["id"], *guard.shown) if paused and guard.shown else None,
        }

    return database.select(
        db,
        BagView,
        f"bag WHERE {where}",
        arguments,
        named={"running": "leased"},
        also=("spec", "guard", "runtime"),
        made=made,
        of_made=_NO_COLUMNS,
    )


_NO_COLUMNS = (
    *("state", "sites", "cpus", "mean_runtime", "output", "output_files", "paused", "halted", "evidence"),
    "forecast",
)


def _evidence(db: sqlite3.Connection, bag: int, task: int, attempt: int) -> Evidence:
    packed, node = db.execute(
        "SELECT t.input, a.node FROM task t JOIN attempt a ON a.bag = t.bag AND a.task = t.number"
        " WHERE t.bag = ? AND t.number = ? AND a.number = ?",
        (bag, task, attempt),
    ).fetchone()
    given = msgspec.msgpack.decode(packed, type=api.TaskInput)
    return Evidence(task, attempt, ScriptOutputs(db, bag).of(task, given.environment, node)[1])


def _bag_state(row: dict[str, Any]) -> BagState:
    if row["waiting"] or row["running"] or row["blocked"]:
        return "running"
    if row["open"]:
        return "open"
    if row["failed"]:
        return "failed"
    return "cancelled" if row["cancelled"] else "done"


def tasks(db: sqlite3.Connection, question: api.GetTasks, live: Live = OFFLINE) -> list[TaskView]:
    """The tasks of one bag, with the attempt that is their result or else the newest.

    A task that a worker holds counts as running: only a daemon knows whether it has started.
    """
    (bag,) = bags(db, str(question.bag))
    states = f"AND t.state IN ({','.join('?' * len(question.states))})" if question.states else ""
    outputs = ScriptOutputs(db, question.bag)

    def made(row: dict[str, Any]) -> dict[str, Any]:
        given = msgspec.msgpack.decode(row["input"], type=api.TaskInput)
        command, state = given.command, row["state"]
        stdout, stderr = outputs.of(row["task"], given.environment, row["node"])
        return {
            "bag": bag.id,
            "name": given.name or given.id,
            "state": "running" if state == TaskState.LEASED.value else state,
            "command": command if isinstance(command, str) else msgspec.json.encode(command).decode(),
            "attempt": row["attempt"] or 0,
            "retries": min(row["charged"], max(0, row["attempts"] - 1)),
            "stdout": stdout,
            "stderr": stderr,
        }

    found = database.select(
        db,
        TaskView,
        "task t LEFT JOIN attempt a ON a.bag = t.bag AND a.task = t.number"
        " AND a.number = COALESCE(t.result, t.attempts)"
        f" WHERE t.bag = ? AND t.number > ? {states} ORDER BY t.number LIMIT ?",
        (question.bag, question.after, *map(_stored, question.states), question.limit),
        named={
            "task": "t.number",
            "state": "t.state",
            "attempt": "a.number",
            "error": "COALESCE(NULLIF(t.error, ''), a.error)",
        },
        also=("input", "charged"),
        made=made,
        of_made=("bag", "name", "command", "retries", "stdout", "stderr"),
    )
    return [live.task(task) for task in found]


def _stored(state: str) -> str:
    """The journal's word for a word of `TaskView.state`."""
    return TaskState.LEASED.value if state == "running" else state
