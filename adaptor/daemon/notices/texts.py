"""What is said of a bag: a title and some lines for people, variables for hooks."""

from __future__ import annotations

import sqlite3

from adaptor import api
from adaptor.api import BagView, TaskView
from adaptor.journal.bag_views import tasks
from adaptor.journal.notice_rows import Notice
from adaptor.units import counted, format_duration

_STATES = {"done": "is done", "failed": "has ended, with failed tasks", "cancelled": "was cancelled"}


def title_and_body(db: sqlite3.Connection, bag: BagView, notice: Notice) -> tuple[str, str]:
    """The message about an event."""
    subject = f"bag {bag.id} ({bag.name})"
    if notice.event == "pause":
        return f"{subject} is paused", f"{notice.text}\n{_counts(bag)}"
    if notice.event == "failure":
        failed = tasks(db, api.GetTasks(bag.id, ["failed"], limit=1))
        first = _failure(failed[0]) if failed else ""
        return f"{subject}: a task failed", f"{first}{_counts(bag)}\nadaptor results {bag.id} --failed"
    took = f" It took {format_duration(bag.ended - bag.submitted)}." if bag.ended is not None else ""
    return f"{subject} {_STATES.get(bag.state, 'has ended')}", f"{_counts(bag)}{took}\nOutput: {bag.output}"


def _counts(bag: BagView) -> str:
    others = [
        f"{count} {word}"
        for count, word in ((bag.failed, "failed"), (bag.cancelled, "cancelled"), (bag.waiting, "waiting"))
        if count
    ]
    return f"{bag.done} of {counted(bag.tasks, 'task')} done{''.join(f', {each}' for each in others)}."


def _failure(task: TaskView) -> str:
    how = f"exit code {task.exit_code}" if task.exit_code is not None else task.error or "it was ended"
    return f"Task {task.task} failed: {how}; see adaptor results {task.bag} --task {task.task} --stderr\n"


def variables(bag: BagView) -> dict[str, str]:
    """What a hook finds in its environment. Times are epoch seconds."""
    return {
        "ADAPTOR_BAG": str(bag.id),
        "ADAPTOR_BAG_NAME": bag.name,
        "ADAPTOR_BAG_STATE": bag.state,
        "ADAPTOR_BAG_TASKS": str(bag.tasks),
        "ADAPTOR_BAG_DONE": str(bag.done),
        "ADAPTOR_BAG_FAILED": str(bag.failed),
        "ADAPTOR_BAG_CANCELLED": str(bag.cancelled),
        "ADAPTOR_BAG_OUTPUT": bag.output,
        "ADAPTOR_BAG_SUBMITTED": f"{bag.submitted:.0f}",
        "ADAPTOR_BAG_ENDED": f"{bag.ended or 0:.0f}",
    }
