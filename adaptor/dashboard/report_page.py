"""The page of one bag: all its pilots with what ran in them, its tasks, its cost."""

from __future__ import annotations

from adaptor import api
from adaptor.client.reading import Ask
from adaptor.dashboard.details import read_activity, read_details
from adaptor.dashboard.page import BagRow, Head, Page
from adaptor.dashboard.pictures import strips

_MOST_ATTEMPTS = 20_000
_WHY = 200


def report_page(ask: Ask, bag: int, now: float) -> Page:
    """What is known of a bag at `now` (epoch seconds).

    Raises:
        AdaptorError: neither the daemon nor the journal answers.
    """
    report = ask(api.GetReport(bag))
    started = [request.id for request in report.requests if request.started is not None]
    activity = read_activity(ask, started, _MOST_ATTEMPTS)
    return Page(
        head=Head(now=now, live=True, static=True, title=f"bag {bag} {report.bag.name}".strip()),
        sites=[],
        bags=[BagRow(bag=report.bag, credits=report.credits, first_forecast=report.first_forecast)],
        totals=report.totals,
        queues=[],
        pilots=report.requests,
        strips=strips(activity, [], report.requests),
        details=[read_details(ask, report.bag)],
        why=ask(api.GetWhy(bag=bag, limit=_WHY)).lines,
        credits=api.CreditsView(
            sites=[], bags=[report.credits] if report.credits is not None else [], prices=[]
        ),
    )
