"""Lines of `adaptor why`: decisions and events with their reasons."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from adaptor import api
from adaptor.api import BagView, Explanation, ExplanationKind

REQUESTS_OF = (
    "COALESCE(bag, ?) = ? AND (EXISTS (SELECT 1 FROM attempt WHERE attempt.pilot = pilot.id AND bag = ?)"
    " OR submitted BETWEEN ? AND ?"
    " AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.pilot = pilot.id))"
)
"""Pilots that ran tasks of a bag, or ran none, could have run its tasks, and were submitted in its time."""

_NAMES = "EXISTS (SELECT 1 FROM decision_bag WHERE decision_bag.decision = decision.id{})"
_CONCERNS = (
    f"CASE WHEN {_NAMES.format('')} THEN {_NAMES.format(' AND bag = ?')}"  # noqa: S608
    " WHEN pilot IS NULL THEN kind != 'key' AND time <= ?"
    f" ELSE EXISTS (SELECT 1 FROM pilot WHERE id = decision.pilot AND {REQUESTS_OF}) END"
)
"""Lines about a bag or its pilots, whenever they were written, and those about a whole site in its time."""
_MOST_NAMED = 5  # bags of one line


def of_bag(bag: BagView) -> tuple[object, ...]:
    """The arguments of `REQUESTS_OF`."""
    return bag.id, bag.id, bag.id, bag.submitted, _until(bag)


def _until(bag: BagView) -> float:
    return bag.ended if bag.ended is not None else float("inf")


def insert_decision(
    db: sqlite3.Connection,
    time: float,
    site: str,
    kind: ExplanationKind,
    text: str,
    *,
    pilot: int | None = None,
    bags: Collection[int] = (),
) -> int:
    """The row of a new line. `bags`: that it is about; empty: its pilot, or all of its site."""
    row = db.execute(
        "INSERT INTO decision (time, site, pilot, kind, text) VALUES (?, ?, ?, ?, ?)",
        (time, site, pilot, kind, text),
    )
    id = int(row.lastrowid or 0)
    db.executemany("INSERT INTO decision_bag (decision, bag) VALUES (?, ?)", [(id, bag) for bag in set(bags)])
    return id


def delete_decisions(db: sqlite3.Connection, first: int, last: int) -> None:
    """Remove the lines of these rows, with the bags that they name."""
    db.execute("DELETE FROM decision WHERE id BETWEEN ? AND ?", (first, last))
    db.execute("DELETE FROM decision_bag WHERE decision BETWEEN ? AND ?", (first, last))


def decisions(db: sqlite3.Connection, question: api.GetWhy, bag: BagView | None) -> api.Why:
    """The newest lines, oldest first. `bag`: what they concern; None: anything."""
    where, arguments = "WHERE id > ?", (question.after,)  # type: tuple[str, tuple[object, ...]]
    if question.kinds:
        where += f" AND kind IN ({','.join('?' * len(question.kinds))})"
        arguments += tuple(question.kinds)
    if question.pilot is not None:
        where, arguments = f"{where} AND pilot = ?", (*arguments, question.pilot)
    elif bag is not None:
        where += f" AND time >= ? AND {_CONCERNS}"
        arguments += (bag.submitted, bag.id, _until(bag), *of_bag(bag))
        if bag.sites:
            where += f" AND site IN ('', {','.join('?' * len(bag.sites))})"
            arguments += tuple(bag.sites)
    rows = db.execute(
        f"SELECT id, time, site, pilot, kind, text FROM decision {where} ORDER BY id DESC LIMIT ?",  # noqa: S608
        (*arguments, question.limit),
    ).fetchall()
    lines = [
        Explanation(
            time=at, site=site, subject=_subject(site, pilot, about), kind=kind, text=text, bags=about
        )
        for id, at, site, pilot, kind, text in reversed(rows)
        for about in [_bags_of(db, id)]
    ]
    return api.Why(lines, rows[0][0] if rows else question.after)


def _bags_of(db: sqlite3.Connection, decision: int) -> list[int]:
    rows = db.execute("SELECT bag FROM decision_bag WHERE decision = ? ORDER BY bag", (decision,))
    return [bag for (bag,) in rows]


def _subject(site: str, pilot: int | None, bags: list[int]) -> str:
    if pilot is not None or not bags:
        return site if pilot is None else f"pilot {pilot}"
    if len(bags) > _MOST_NAMED:
        return f"{len(bags)} bags"
    return f"bag {bags[0]}" if len(bags) == 1 else f"bags {', '.join(map(str, bags))}"
