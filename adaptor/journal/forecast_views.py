"""First forecasts and their record as users see them."""

from __future__ import annotations

import sqlite3

import msgspec

from adaptor.budget.accounting.statements import Statements
from adaptor.forecast.record import Judged, Share, record_of
from adaptor.journal.forecast_rows import judged_forecasts, past_forecasts
from adaptor.views import FirstForecastView, ForecastRecordView, ShareView


def forecast_record(db: sqlite3.Connection, books: Statements) -> ForecastRecordView:
    """How often the first forecasts of all bags held."""
    found = record_of(judged_forecasts(db, books), past_forecasts(db))
    return ForecastRecordView(
        bags=found.bags,
        cost=_share_view(found.cost),
        end=_share_view(found.end),
        not_counted=found.not_counted,
    )


def first_forecast(db: sqlite3.Connection, books: Statements, bag: int) -> FirstForecastView | None:
    """The first forecast of a bag; None: none was made."""
    return next((_forecast_view(each) for each in judged_forecasts(db, books, bag)), None)


def _share_view(share: Share | None) -> ShareView | None:
    return None if share is None else ShareView(**msgspec.structs.asdict(share))


def _forecast_view(judged: Judged) -> FirstForecastView:
    first, outcome = judged.first, judged.outcome
    return FirstForecastView(
        made=first.made,
        finished=first.finished,
        tasks=first.tasks,
        cost=first.cost.value if first.cost else None,
        cost_low=first.cost.low if first.cost else None,
        cost_high=first.cost.high if first.cost else None,
        end=first.end.value,
        end_low=first.end.low,
        end_high=first.end.high,
        final_cost=outcome.cost if outcome.end is not None and first.cost else None,
        final_end=outcome.end,
        cost_held=judged.cost_held,
        end_held=judged.end_held,
        not_counted=judged.not_counted,
    )
