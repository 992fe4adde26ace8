"""Bags and their tasks as users see them, and what has changed in bags since an event, for those who follow.

Each end of a task, each task that is put back and the close of a bag have a number in the bag, which goes up
by one. A task keeps the number of its last event only, so there are never more of them than tasks.
"""

from __future__ import annotations

import shlex
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adaptor import api
from adaptor.api import (
    BagCounts,
    BagEvents,
    BagState,
    BagView,
    ErrorExample,
    PilotRecord,
    RemovedPilotView,
    TaskEvent,
    TaskInput,
    TaskView,
)
from adaptor.bag_spec import BagSpec
from adaptor.batch_script import element_of, job_number, output_files, own_script, script_of
from adaptor.errors import UnknownBagError
from adaptor.journal import database
from adaptor.journal.bag_rows import spec_of, unpack_task
from adaptor.journal.pilot_rows import held_by_attempts
from adaptor.journal.selectors import RECENT, ids_of
from adaptor.model import USEFUL, TaskState
from adaptor.scheduling.bag import Guard


class Live:
    """Completes views that the journal makes; this one leaves them as they are, since no daemon runs."""

    priced = False  # whether the prices of sites are known

    def bag(self, view: BagView) -> BagView:
        return view

    def task(self, view: TaskView) -> TaskView:
        return view

    def pilot(self, record: PilotRecord) -> PilotRecord:
        return record

    def removed(self) -> list[RemovedPilotView]:
        """Pilots of sites that the configuration no longer has."""
        return []


OFFLINE = Live()


class ScriptOutputs:
    """The files that a bag's script names for its tasks, which may not be there."""

    def __init__(self, db: sqlite3.Connection, bag: int) -> None:
        self._bag = bag
        self._spec = spec_of(db, bag)
        self._script = self._spec.script

    def of(
        self, task: int, environment: Mapping[str, str] | None, node: str | None
    ) -> tuple[str | None, str | None]:
        """Standard output and error of a task; None: they lie where the bag's options say.

        `environment`: the task's own.
        """
        if self._script is None:
            return None, None
        element = element_of(self._script, self._bag, task, environment)
        return output_files(script_of(self._script, environment), element, node or "")

    def job(self, task: int, given: TaskInput) -> api.JobView | None:
        """Job of a task that was submitted as one; None: it was not."""
        own = own_script(given.environment)
        if self._script is None or own is None:
            return None
        element = element_of(self._script, self._bag, task, given.environment)
        return api.JobView(
            number=element.job,
            array=None if element.index is None else element.array_job,
            index=element.index,
            submitted=own.submitted,
            cpus=own.cpus,
            limit=own.limit,
            cwd=given.cwd or "",
        )

    def as_job(self, task: int, given: TaskInput, submitted: float) -> api.JobView:
        """Job that any other task finds itself to be where it runs."""
        size = self._spec.task if given.needs is None else given.needs.over(self._spec.task)
        script = self._script
        index = None if script is None else element_of(script, self._bag, task, given.environment).index
        return api.JobView(
            number=job_number(self._bag, task),
            array=None if index is None else job_number(self._bag, 0),
            index=index,
            submitted=submitted,
            cpus=size.total_processors,
            limit=None,
            cwd=given.cwd or self._spec.cwd,
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
        return _shown(db, live, _select_bags(db, f"{_RECENT} ORDER BY id", (RECENT,)))
    chosen = ids_of(selector, dict(db.execute("SELECT id, name FROM bag")))
    if not chosen:
        return []
    # A range and not a list of ids: SQLite limits the parameters of a statement, in old versions to 999.
    found = _select_bags(db, "id BETWEEN ? AND ? ORDER BY id", (chosen[0], chosen[-1]))
    wanted = set(chosen)
    return _shown(db, live, [bag for bag in found if bag.id in wanted])


def _shown(db: sqlite3.Connection, live: Live, found: Sequence[BagView]) -> list[BagView]:
    return [live.bag(bag) for bag in (_at_most_at_once(db, found) if live is OFFLINE else found)]


def _at_most_at_once(db: sqlite3.Connection, found: Sequence[BagView]) -> list[BagView]:
    """The bags with no more running tasks than the pilots have processors for: workers hold others in
    reserve, which the daemon alone tells from those."""
    held = db.execute("SELECT TOTAL(p - freed) FROM pilot WHERE started IS NOT NULL AND ended IS NULL")
    processors = int(held.fetchone()[0])
    reserve = [max(0, bag.running - processors // max(1, bag.cpus)) for bag in found]
    return [
        msgspec.structs.replace(bag, running=bag.running - more, waiting=bag.waiting + more)
        for bag, more in zip(found, reserve, strict=True)
    ]


def count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT COUNT(*) FROM bag").fetchone()[0])


def latest(db: sqlite3.Connection, question: api.GetLatestBags, live: Live = OFFLINE) -> list[BagView]:
    """The bags of which most is to be seen, in the order of their numbers."""
    found = [
        id
        for chosen, most in ((_GOING_FIRST, question.running), (_LAST_ENDED, question.ended))
        for (id,) in db.execute(chosen, (most,))
    ]
    return bags(db, ",".join(map(str, sorted(found))), live) if found else []


_GOING_FIRST = (
    "SELECT id FROM bag WHERE ended IS NULL ORDER BY leased > 0 DESC, done + failed > 0 DESC, id DESC LIMIT ?"
)
_LAST_ENDED = "SELECT id FROM bag WHERE ended IS NOT NULL ORDER BY id DESC LIMIT ?"


def left_out(db: sqlite3.Connection, shown: Sequence[BagView]) -> BagCounts:
    """The number of bags that are not among these, by what they do."""
    numbers = msgspec.json.encode([bag.id for bag in shown]).decode()
    running, waiting, ended, failed = db.execute(
        "SELECT TOTAL(ended IS NULL AND leased + done + failed > 0),"
        " TOTAL(ended IS NULL AND leased + done + failed = 0),"
        " TOTAL(ended IS NOT NULL), TOTAL(ended IS NOT NULL AND failed > 0)"
        " FROM bag WHERE id NOT IN (SELECT value FROM json_each(?))",
        (numbers,),
    ).fetchone()
    return BagCounts(int(running), int(waiting), int(ended), int(failed))


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
            "close_idle": spec.close_idle,
            "shell": spec.shell or "",
            "jobs": spec.script is not None and spec.script.jobs,
            "paused": guard.paused if paused else "",
            "halted": paused and guard.itself,
            "awaits": _awaited(db, spec) if row["blocked"] else [],
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
    *("forecast", "held_off", "jobs", "awaits", "shell", "close_idle"),
)


def _awaited(db: sqlite3.Connection, spec: BagSpec) -> list[int]:
    """The bags that have not ended, of those after which a bag runs."""
    unended = "SELECT 1 FROM bag WHERE id = ? AND ended IS NULL"
    return [bag for bag in sorted({*spec.after, *spec.after_any}) if db.execute(unended, (bag,)).fetchone()]


def _evidence(db: sqlite3.Connection, bag: int, task: int, attempt: int) -> ErrorExample:
    packed, node = db.execute(
        "SELECT t.input, a.node FROM task t JOIN attempt a ON a.bag = t.bag AND a.task = t.number"
        " WHERE t.bag = ? AND t.number = ? AND a.number = ?",
        (bag, task, attempt),
    ).fetchone()
    given = unpack_task(packed)
    return ErrorExample(task, attempt, ScriptOutputs(db, bag).of(task, given.environment, node)[1])


def _bag_state(row: dict[str, Any]) -> BagState:
    if row["waiting"] or row["running"] or row["blocked"]:
        return "running"
    if row["open"]:
        return "open"
    if row["failed"]:
        return "failed"
    return "cancelled" if row["cancelled"] else "done"


_REPLICAS = (
    "SELECT COUNT(*) FROM attempt b WHERE b.bag = t.bag AND b.task = t.number"
    " AND (b.outcome = 'superseded' OR (b.outcome IS NULL AND b.number <> a.number))"
)

_ATTEMPTS = (
    "t.attempts - CASE WHEN t.attempts THEN (SELECT COUNT(*) FROM attempt b WHERE b.bag = t.bag"
    " AND b.task = t.number AND b.started IS NULL"
    " AND b.outcome IN ('returned', 'walltime', 'preempted', 'cancelled')) ELSE 0 END"
)
"""Attempts of a task without those that a worker held and never started."""


def tasks(db: sqlite3.Connection, question: api.GetTasks, live: Live = OFFLINE) -> list[TaskView]:
    """The tasks of one bag, with the attempt that is their result or else the newest.

    A task that a worker holds counts as running: only a daemon knows whether it has started.
    """
    (bag,) = bags(db, str(question.bag))
    states = f"AND t.state IN ({','.join('?' * len(question.states))})" if question.states else ""
    numbers, only = "", []
    if question.numbers is not None:
        numbers = "AND t.number IN (SELECT value FROM json_each(?))"
        only = [msgspec.json.encode(question.numbers).decode()]
    stored = [TaskState.LEASED.value if state == "running" else state for state in question.states]
    outputs = ScriptOutputs(db, question.bag)

    def as_job(task: int, given: TaskInput) -> api.JobView | None:
        return None if question.numbers is None else outputs.as_job(task, given, bag.submitted)

    def made(row: dict[str, Any]) -> dict[str, Any]:
        given = unpack_task(row["input"])
        command, state = given.command, row["state"]
        stdout, stderr = outputs.of(row["task"], given.environment, row["node"])
        return {
            "bag": bag.id,
            "name": given.name or given.id,
            "state": "running" if state == TaskState.LEASED.value else state,
            "command": command if isinstance(command, str) else shlex.join(command),
            "attempt": row["attempt"] or 0,
            "retries": min(row["charged"], max(0, row["attempts"] - row["replicas"] - 1)),
            "stdout": stdout,
            "stderr": stderr,
            "job": outputs.job(row["task"], given) or as_job(row["task"], given),
        }

    found = database.select(
        db,
        TaskView,
        "task t LEFT JOIN attempt a ON a.bag = t.bag AND a.task = t.number"
        " AND a.number = COALESCE(t.result, t.attempts)"
        f" WHERE t.bag = ? AND t.number > ? {states} {numbers} ORDER BY t.number LIMIT ?",
        (question.bag, question.after, *stored, *only, question.limit),
        named={
            "task": "t.number",
            "state": "t.state",
            "attempt": "a.number",
            "attempts": _ATTEMPTS,
            "replicas": f"CASE WHEN t.attempts > 1 THEN ({_REPLICAS}) ELSE 0 END",
            "error": "COALESCE(NULLIF(t.error, ''), a.error)",
        },
        also=("input", "charged"),
        made=made,
        of_made=("bag", "name", "command", "retries", "stdout", "stderr", "job"),
    )
    return [live.task(task) for task in found]


def pilots(
    db: sqlite3.Connection, where: str, arguments: Sequence[object], now: float, live: Live = OFFLINE
) -> list[PilotRecord]:
    """Pilots by an SQL condition on `pilot`, which never comes from a user; `now` ends those that run."""
    results = f"attempt.outcome IN (?, ?) AND attempt.pilot IN (SELECT id FROM pilot WHERE {where})"  # noqa: S608
    used = defaultdict[int, float](float)  # by pilot: processor-seconds of the attempts that became results
    for held in held_by_attempts(db, results, (*(outcome.value for outcome in USEFUL), *arguments)):
        used[held.pilot] += held.seconds

    unseen = {"running": 0.0, "workers": 0, "note": ""}  # what only a daemon knows

    def sums(row: dict[str, Any]) -> dict[str, Any]:
        came_to = used.get(row["id"], 0.0) + row["past_used"]
        wasted = max(0.0, _held(row, now) - came_to)
        due = row["predicted_start"] if row["started"] is None and row["ended"] is None else None
        expected = due if due is not None and due > now else None
        return {**unseen, "used": came_to, "wasted": wasted, "expected": expected}

    records = database.select(
        db,
        PilotRecord,
        f"pilot WHERE {where} ORDER BY id",
        arguments,
        named={"node": "donated_node"},
        also=("freed", "freed_at_sum", "past_used"),
        made=sums,
        of_made=("used", "wasted", "expected", *unseen),
    )
    return [live.pilot(record) for record in records]


def _held(pilot: dict[str, Any], now: float) -> float:
    """Processor-seconds, without those of processors that were given back early."""
    if pilot["started"] is None:
        return 0.0
    end = pilot["ended"] if pilot["ended"] is not None else now
    given_back = pilot["freed"] * end - pilot["freed_at_sum"]
    processors = pilot["p"] if pilot["held"] is None else pilot["held"]
    return float(processors * max(0.0, end - pilot["started"]) - given_back)


_MOST_BYTES = 8 * 1024 * 1024  # bytes of the answers of calls that are sent at a time


def events(db: sqlite3.Connection, question: api.GetEvents) -> list[BagEvents]:
    """Changes of each bag; of all bags together at most the asked number of tasks.

    Raises UnknownBagError: there is no such bag.
    """
    found, left = [], question.most
    for bag, since in sorted(question.since.items()):
        told = _events_of(db, bag, since, left)
        left -= len(told.tasks)
        found.append(told)
    return found


def _events_of(db: sqlite3.Connection, bag: int, since: int, most: int) -> BagEvents:
    row = db.execute(
        "SELECT events, open, ended, tasks, done, failed, cancelled, spec FROM bag WHERE id = ?", (bag,)
    ).fetchone()
    if row is None:
        raise UnknownBagError(bag)
    last, is_open, ended, total, done, failed, cancelled, spec = row
    tasks = _tasks(db, bag, since, most) if last > since and most else []
    more = last > since and (not most or (bool(tasks) and tasks[-1].event < last))
    return BagEvents(
        bag=bag,
        last=(tasks[-1].event if tasks else since) if more else last,
        more=more,
        open=bool(is_open),
        ended=ended is not None,
        total=total,
        done=done,
        failed=failed,
        cancelled=cancelled,
        output=msgspec.msgpack.decode(spec, type=_SpecOutput).output,
        tasks=tasks,
    )


class _SpecOutput(msgspec.Struct):
    """The part of a BagSpec that is shown."""

    output: str


assert "output" in BagSpec.__struct_fields__


def _tasks(db: sqlite3.Connection, bag: int, since: int, most: int) -> list[TaskEvent]:
    """Events of at most `most` tasks, with little more than `_MOST_BYTES` of answers."""
    rows = db.execute(
        "SELECT t.number, t.event, t.state, COALESCE(a.number, 0), a.exit_code, a.signal,"
        " COALESCE(t.error, a.error), a.started, a.wall, a.node, a.answer"
        " FROM task t LEFT JOIN attempt a ON a.bag = t.bag AND a.task = t.number"
        " AND a.number = COALESCE(t.result, t.attempts)"
        " WHERE t.bag = ? AND t.event > ? ORDER BY t.event LIMIT ?",
        (bag, since, most),
    )
    found: list[TaskEvent] = []
    room = _MOST_BYTES
    for row in rows:
        found.append(TaskEvent(*row))
        room -= len(found[-1].answer or b"")
        if room <= 0:
            break
    return found
