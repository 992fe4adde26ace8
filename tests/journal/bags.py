"""Bags in a journal, as the daemon writes them."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable, Sequence

from adaptor import api
from adaptor.api import TaskInput
from adaptor.bag_spec import BagSpec
from adaptor.journal import adding
from adaptor.journal.bag_rows import AddedTasks
from adaptor.journal.journal import Journal


def add_bag(
    journal: Journal,
    spec: BagSpec,
    tasks: Sequence[TaskInput],
    now: float,
    also: Callable[[sqlite3.Connection, int], None] | None = None,
    *,
    open: bool = False,
    key: str = "",
    gated: bool = False,
) -> int:
    """Open a bag, add tasks, and publish it; its number."""
    key = key or secrets.token_hex(8)
    with journal.transaction() as db:
        adding.open_bag(db, api.Open(key, spec), now)
    add(journal, 0, key, tasks)
    return publish(journal, key, now, also, open=open, gated=gated)


def add(
    journal: Journal,
    bag: int,
    key: str,
    tasks: Sequence[TaskInput],
    first: int = 0,
    *,
    now: float = 1.0,
    gated: bool = False,
) -> AddedTasks:
    with journal.transaction() as db:
        return adding.add(db, bag, key, first, tasks, now, gated=gated)


def publish(
    journal: Journal,
    key: str,
    now: float = 1.0,
    also: Callable[[sqlite3.Connection, int], None] | None = None,
    *,
    open: bool = False,
    gated: bool = False,
) -> int:
    """Publish the bag that was opened with this key; its number."""
    there = journal.read(adding.opened, key)
    assert there is not None
    with journal.transaction(durable=True) as db:
        adding.publish(db, there, there.question.spec, now, open=open, gated=gated)
        if also is not None:
            also(db, there.bag)
    return there.bag
