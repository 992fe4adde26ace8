"""Answer users' questions from the journal, whether the daemon runs or not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from adaptor.budget.accounting.ledger import Ledger
from adaptor.errors import UsageError
from adaptor.journal.activity_views import activity, task_sums
from adaptor.journal.bag_views import bags, count, latest, tasks
from adaptor.journal.credit_entries import entries, gpus_of_pilot
from adaptor.journal.credit_views import bag_line, credits_view
from adaptor.journal.database import FILE, guarded, open_for_reading
from adaptor.journal.donation_views import donation_of_bag
from adaptor.journal.event_views import events
from adaptor.journal.forecast_views import first_forecast, forecast_record
from adaptor.journal.measured_views import measured
from adaptor.journal.pilot_views import pilots
from adaptor.model import IN_SYSTEM
from adaptor.protocol import control
from adaptor.views import BagReport, Explanation, Totals

READING = (
    control.GetBags | control.GetTasks | control.GetPilots | control.GetReport | control.GetWhy
    | control.GetCredits | control.GetLatestBags | control.GetActivity | control.GetTaskSums
    | control.GetEvents | control.GetAdvice
)  # fmt: skip
"""The questions that the journal can answer alone."""


def answer_offline(directory: Path, question: control.Question, now: float) -> control.Answer:
    """Answer from the journal of a daemon that does not run. `now` is in epoch seconds.

    Raises:
        JournalError: there is no journal, or it is in use.
        UsageError: the question needs a running daemon, or names something that is not there.
    """
    if not isinstance(question, READING):
        raise UsageError("this needs a running daemon; start it with: adaptor daemon start")
    with closing(open_for_reading(directory)) as db, guarded(directory / FILE):
        return answer(db, question, now)


def answer(
    db: sqlite3.Connection, question: READING, now: float, ledger: Ledger | None = None
) -> control.Answer:
    """The answer by the journal.

    Args:
        now: epoch seconds.
        ledger: as the entries in the journal make it; None: it is made of them, which takes time.

    Raises:
        UsageError: the question names something that is not there.
    """
    match question:
        case control.GetBags():
            record = forecast_record(db, ledger or Ledger(entries(db))) if question.record else None
            chosen = bags(db, question.selector)
            return control.Bags(chosen, record, count(db) - len(chosen))
        case control.GetTasks():
            return control.Tasks(tasks(db, question))
        case control.GetPilots():
            states = [state.value for state in IN_SYSTEM]
            where = f"state IN ({','.join('?' * len(states))})"
            if not question.ended:
                return control.Pilots(pilots(db, where, states, now))
            where = f"({where} OR COALESCE(ended, submitted) >= ?)"
            return control.Pilots(pilots(db, where, [*states, question.since], now))
        case control.GetReport():
            return control.Report(report(db, question.bag, now, ledger or Ledger(entries(db))))
        case control.GetCredits():
            wanted = [bag.id for bag in bags(db, question.bags)]
            books = ledger or Ledger(entries(db))
            return control.Credits(credits_view(books, wanted, now, priced=False))
        case control.GetAdvice():
            totals = report(db, question.bag, now, ledger or Ledger(entries(db))).totals
            return control.Advice(measured(db, question.bag, totals), [])
        case control.GetWhy():
            return why(db, question)
        case _:
            return _in_sums(db, question)


def _in_sums(
    db: sqlite3.Connection,
    question: control.GetLatestBags | control.GetActivity | control.GetTaskSums | control.GetEvents,
) -> control.Answer:
    """What programs ask for: the live page, and those that follow bags."""
    match question:
        case control.GetLatestBags():
            return control.Bags(latest(db, question))
        case control.GetActivity():
            return activity(db, question)
        case control.GetTaskSums():
            return control.TaskSums(task_sums(db, question.bag))
        case control.GetEvents():
            return control.Events(events(db, question))


def report(db: sqlite3.Connection, bag_id: int, now: float, ledger: Ledger) -> BagReport:
    """Each request that ran tasks of the bag, or was made while it was unfinished and ran nothing."""
    (bag,) = bags(db, str(bag_id))
    until = bag.ended if bag.ended is not None else float("inf")
    requests = pilots(
        db,
        "id IN (SELECT DISTINCT pilot FROM attempt WHERE bag = ?) OR (submitted BETWEEN ? AND ?"
        " AND NOT EXISTS (SELECT 1 FROM attempt WHERE attempt.pilot = pilot.id))",
        (bag_id, bag.submitted, until),
        now,
    )
    if bag.sites:
        requests = [request for request in requests if request.site in bag.sites]
    first_done = db.execute("SELECT first_done FROM bag WHERE id = ?", (bag_id,)).fetchone()[0]
    used = sum(request.used for request in requests)
    wasted = sum(request.wasted for request in requests)
    forecast = first_forecast(db, ledger, bag_id)
    return BagReport(
        bag=bag,
        requests=requests,
        totals=Totals(
            requests=sum(not each.node for each in requests),
            donations=sum(bool(each.node) for each in requests),
            paid=used + wasted,
            used=used,
            wasted=wasted,
            gpu_paid=sum(
                gpus_of_pilot(db, each.id) * (each.used + each.wasted) / each.p for each in requests
            ),
            turnaround=bag.ended - bag.submitted if bag.ended is not None else None,
            first_result=first_done - bag.submitted if first_done is not None else None,
        ),
        credits=bag_line(ledger, bag_id) if ledger.in_use and bag_id in ledger.bags else None,
        donation=donation_of_bag(db, bag_id),
        first_forecast=forecast,
        forecast_record=forecast_record(db, ledger) if forecast is not None else None,
    )


def why(db: sqlite3.Connection, question: control.GetWhy) -> control.Why:
    """The newest decisions, oldest first."""
    where, arguments = "WHERE id > ?", (question.after,)  # type: tuple[str, tuple[object, ...]]
    if question.kinds:
        where += f" AND kind IN ({','.join('?' * len(question.kinds))})"
        arguments += tuple(question.kinds)
    if question.pilot is not None:
        where, arguments = f"{where} AND pilot = ?", (*arguments, question.pilot)
    elif question.bag is not None:
        (bag,) = bags(db, str(question.bag))
        until = bag.ended if bag.ended is not None else float("inf")
        where, arguments = f"{where} AND time BETWEEN ? AND ?", (*arguments, bag.submitted, until)
    rows = db.execute(
        f"SELECT id, time, site, pilot, kind, text FROM decision {where} ORDER BY id DESC LIMIT ?",  # noqa: S608
        (*arguments, question.limit),
    ).fetchall()
    lines = [
        Explanation(
            time=at, site=site, subject=site if pilot is None else f"pilot {pilot}", kind=kind, text=text
        )
        for _, at, site, pilot, kind, text in reversed(rows)
    ]
    return control.Why(lines, rows[0][0] if rows else question.after)
