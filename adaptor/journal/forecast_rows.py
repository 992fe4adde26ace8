"""First forecasts as rows of the journal, and what became of their bags."""

from __future__ import annotations

import sqlite3
from typing import Any

from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.statements import Statements
from adaptor.budget.estimation.estimate import Estimate
from adaptor.budget.estimation.forecast_record import FirstForecast, Judged, Outcome

_COLUMNS = "bag, made, finished, tasks, cost_low, cost_value, cost_high, end_low, end_value, end_high"


def insert_forecast(db: sqlite3.Connection, bag: int, first: FirstForecast) -> None:
    """Write the first forecast of a bag, unless there is one; the caller has begun a transaction."""
    cost, end = first.cost, first.end
    db.execute(
        f"INSERT INTO forecast ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
        " ON CONFLICT (bag) DO NOTHING",
        (
            *(bag, first.made, first.finished, first.tasks),
            *(cost.low, cost.value, cost.high),
            *(end.low, end.value, end.high),
        ),
    )


def bags_with_forecast(db: sqlite3.Connection) -> set[int]:
    """The bags whose first forecast is kept."""
    return {bag for (bag,) in db.execute("SELECT bag FROM forecast")}


def judged_forecasts(db: sqlite3.Connection, books: Statements, bag: int | None = None) -> list[Judged]:
    """The first forecasts, of one bag or of all, beside what became of their bags by the ledger."""
    rows = db.execute(
        f"SELECT {_COLUMNS}, ended, user_change, user_changed FROM forecast"  # noqa: S608
        " JOIN (SELECT id, ended, user_change, user_changed FROM bag) ON id = bag"
        " WHERE ? IS NULL OR bag = ? ORDER BY bag",
        (bag, bag),
    )
    unsettled = books.bags_with_open_pilots
    return [_judged(row, books, row[0] not in unsettled) for row in rows]


def _judged(row: tuple[Any, ...], books: Statements, settled: bool) -> Judged:
    bag, made, finished, tasks, *figures, ended, change, changed = row
    return Judged(
        first=FirstForecast(
            made=made,
            finished=finished,
            tasks=tasks,
            cost=Estimate(*figures[:3]),
            end=Estimate(*figures[3:]),
        ),
        outcome=Outcome(
            cost=in_credits(books.of_bag(bag).used) if settled else None,
            end=ended,
            change=change,
            changed=changed,
        ),
    )
