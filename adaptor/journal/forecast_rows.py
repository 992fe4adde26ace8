"""First forecasts as rows of the journal, and what became of their bags."""

from __future__ import annotations

import sqlite3

import msgspec

from adaptor.api import FirstForecastView, SiteStarts
from adaptor.budget.accounting.credits import in_credits
from adaptor.budget.accounting.statements import Statements
from adaptor.forecast.calibration import Kind, Raw, score
from adaptor.forecast.kept_starts import KeptStarts
from adaptor.forecast.record import FirstForecast, Judged, Outcome, Record, Tally, record_of, tally_of
from adaptor.model import Estimate

_COLUMNS = "bag, made, finished, tasks, cost_low, cost_value, cost_high, end_low, end_value, end_high"


def insert_forecast(db: sqlite3.Connection, bag: int, first: FirstForecast) -> None:
    """Write the first forecast of a bag, unless there is one; the caller has begun a transaction."""
    cost, end = first.cost, first.end
    db.execute(
        f"INSERT INTO forecast ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
        " ON CONFLICT (bag) DO NOTHING",
        (
            *(bag, first.made, first.finished, first.tasks),
            *((None, None, None) if cost is None else (cost.low, cost.value, cost.high)),
            *(end.low, end.value, end.high),
        ),
    )


def insert_raw(db: sqlite3.Connection, bag: int, raw: Raw) -> None:
    """Write what was simulated, unless such a forecast is kept; the caller has begun a transaction."""
    db.execute(
        "INSERT INTO raw_forecast (bag, kind, made, unit, low, value, high) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (bag, raw.kind, raw.made, raw.unit, raw.ends.low, raw.ends.value, raw.ends.high),
    )


def past_scores(db: sqlite3.Connection) -> dict[Kind, list[float]]:
    """Scores by kind of the forecasts of bags that have ended as they were, the oldest first."""
    found: dict[Kind, list[float]] = {}
    for kind, made, unit, low, value, high, ended in db.execute(
        "SELECT kind, made, unit, low, value, high, ended FROM raw_forecast JOIN bag ON id = bag"
        " WHERE ended IS NOT NULL AND (user_changed IS NULL OR user_changed < made) ORDER BY ended"
    ):
        raw = Raw(kind=kind, made=made, unit=unit, ends=Estimate(low, value, high))
        found.setdefault(kind, []).append(score(raw, ended))
    return found


def bags_with_forecast(db: sqlite3.Connection) -> set[int]:
    return {bag for (bag,) in db.execute("SELECT bag FROM forecast")}


def judged_forecasts(db: sqlite3.Connection, books: Statements, bag: int | None = None) -> list[Judged]:
    """The first forecasts, of one bag or of all, with what became of their bags by the ledger."""
    rows = db.execute(
        f"SELECT {_COLUMNS}, ended, user_change, user_changed FROM forecast"  # noqa: S608
        " JOIN (SELECT id, ended, user_change, user_changed FROM bag) ON id = bag"
        " WHERE ? IS NULL OR bag = ? ORDER BY bag",
        (bag, bag),
    )
    unsettled, found = books.bags_with_open_pilots, []
    for id, made, finished, tasks, *figures, ended, change, changed in rows:
        cost = None if figures[0] is None else Estimate(*figures[:3])
        end = Estimate(*figures[3:])
        first = FirstForecast(made=made, finished=finished, tasks=tasks, cost=cost, end=end)
        came_to = None if id in unsettled else in_credits(books.of_bag(id).used)
        outcome = Outcome(cost=came_to, end=ended, change=change, changed=changed)
        found.append(Judged(first=first, outcome=outcome))
    return found


def keep_judged(db: sqlite3.Connection, books: Statements, bag: int) -> None:
    """Add what became of the first forecast of a bag, if it has one, to those of forgotten bags."""
    judged = tally_of(judged_forecasts(db, books, bag))
    if judged == Tally():
        return
    tally = past_forecasts(db).plus(judged)
    db.execute(
        "INSERT OR REPLACE INTO forecast_past (id, counted, costed, cost_held, end_held, not_counted)"
        " VALUES (1, ?, ?, ?, ?, ?)",
        (
            *(tally.counted, tally.costed, tally.cost_held, tally.end_held),
            msgspec.msgpack.encode(tally.not_counted),
        ),
    )


def past_forecasts(db: sqlite3.Connection) -> Tally:
    """Outcomes of the first forecasts of forgotten bags."""
    row = db.execute("SELECT counted, costed, cost_held, end_held, not_counted FROM forecast_past").fetchone()
    if row is None:
        return Tally()
    counted, costed, cost_held, end_held, packed = row
    return Tally(
        counted=counted,
        costed=costed,
        cost_held=cost_held,
        end_held=end_held,
        not_counted=msgspec.msgpack.decode(packed, type=dict[str, int]),
    )


# --- as users see them ----------------------------------------------------------------------------


def forecast_record(db: sqlite3.Connection, books: Statements) -> Record:
    """The record of the first forecasts of all bags: how often they held."""
    return record_of(judged_forecasts(db, books), past_forecasts(db))


def first_forecast(db: sqlite3.Connection, books: Statements, bag: int) -> FirstForecastView | None:
    """The first forecast of a bag; None: none was made."""
    found = judged_forecasts(db, books, bag)
    if not found:
        return None
    judged, first, outcome = found[0], found[0].first, found[0].outcome
    return FirstForecastView(
        made=first.made,
        finished=first.finished,
        tasks=first.tasks,
        cost=first.cost,
        end=first.end,
        final_cost=outcome.cost if outcome.end is not None and first.cost else None,
        final_end=outcome.end,
        cost_held=judged.cost_held,
        end_held=judged.end_held,
        not_counted=judged.not_counted,
    )


def seen_starts(db: sqlite3.Connection) -> list[SiteStarts]:
    """The starts of jobs of anyone that were seen at each site, by its name."""
    rows = db.execute("SELECT site, judged FROM starts_seen ORDER BY site")
    return [SiteStarts(site, msgspec.msgpack.decode(judged, type=KeptStarts)) for site, judged in rows]
