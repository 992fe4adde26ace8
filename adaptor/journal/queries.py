"""Answer users' questions from the journal, whether the daemon runs or not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cached_property
from pathlib import Path

import msgspec

from adaptor import api
from adaptor.api import BagReport, Totals
from adaptor.api.question import A, Handlers
from adaptor.budget.accounting.ledger import Ledger
from adaptor.errors import UsageError
from adaptor.journal.activity_views import activity, donation_of_bag, measured, task_sums
from adaptor.journal.credits import bag_line, credits_view, entries, gpus_of_pilot
from adaptor.journal.damage import understood
from adaptor.journal.database import FILE, guarded, open_for_reading
from adaptor.journal.decision_rows import REQUESTS_OF, decisions, of_bag
from adaptor.journal.forecast_rows import first_forecast, forecast_record, seen_starts
from adaptor.journal.pilot_rows import held_by_attempts
from adaptor.journal.views import OFFLINE, Live, bags, count, events, latest, left_out, pilots, tasks
from adaptor.model import IN_SYSTEM, USEFUL
from adaptor.units import utc_offset


class QueryContext:
    """Sources of answers: the journal, the ledger, and what only a running daemon knows."""

    def __init__(
        self, db: sqlite3.Connection, now: float, ledger: Ledger | None = None, live: Live = OFFLINE
    ) -> None:
        """Args:
        now: epoch seconds.
        ledger: as the entries in the journal make it; None: it is made of them when it is asked for.
        """
        self.db = db
        self.now = now
        self.live = live
        self._ledger = ledger

    @cached_property
    def ledger(self) -> Ledger:
        return self._ledger or Ledger(entries(self.db))


reads = Handlers[QueryContext]()  # the functions below, by their questions


def answer_offline(directory: Path, question: api.Question[A], now: float, patience: float = 1.0) -> A:
    """Answer from the journal of a daemon that does not run. `now` is in epoch seconds.

    `patience`: seconds for another reader to be done.

    Raises:
        JournalError: there is no journal, it is in use, or it was lost or damaged.
        UsageError: the question needs a running daemon, or names something that is not there.
    """
    if not question.kept:
        raise UsageError("this needs a running daemon; start it with: adaptor daemon start")
    path = directory / FILE
    with closing(open_for_reading(directory, patience)) as db, understood(path), guarded(path):
        return answer(db, question, now)


def answer(
    db: sqlite3.Connection,
    question: api.Question[A],
    now: float,
    ledger: Ledger | None = None,
    live: Live = OFFLINE,
) -> A:
    """The answer by the journal, for a question that says `kept`; `now`: epoch seconds; `ledger` None: it is
    made of the journal's entries.

    Raises UsageError: the question names something that is not there.
    """
    handler = reads.of(type(question))
    assert handler is not None, "the question does not say `kept`"
    found: A = handler(QueryContext(db, now, ledger, live), question)
    return found


@reads(api.GetBags)
def _bags(reading: QueryContext, question: api.GetBags) -> api.Bags:
    record = forecast_record(reading.db, reading.ledger) if question.record else None
    chosen = bags(reading.db, question.selector, reading.live)
    return api.Bags(chosen, record, count(reading.db) - len(chosen))


@reads(api.GetLatestBags)
def _latest(reading: QueryContext, question: api.GetLatestBags) -> api.Bags:
    found = latest(reading.db, question, reading.live)
    return api.Bags(found, others=count(reading.db) - len(found), left_out=left_out(reading.db, found))


@reads(api.GetTasks)
def _tasks(reading: QueryContext, question: api.GetTasks) -> list[api.TaskView]:
    return tasks(reading.db, question, reading.live)


@reads(api.GetTaskSums)
def _sums(reading: QueryContext, question: api.GetTaskSums) -> api.TaskSums:
    return task_sums(reading.db, question.bag)


@reads(api.GetEvents)
def _events(reading: QueryContext, question: api.GetEvents) -> list[api.BagEvents]:
    return events(reading.db, question)


@reads(api.GetActivity)
def _activity(reading: QueryContext, question: api.GetActivity) -> api.Activity:
    return activity(reading.db, question)


@reads(api.GetPilots)
def _pilots(reading: QueryContext, question: api.GetPilots) -> list[api.PilotRecord]:
    where, arguments = f"state IN ({','.join('?' * len(IN_SYSTEM))})", [state.value for state in IN_SYSTEM]
    if question.ended:
        where = f"({where} OR COALESCE(ended, submitted) >= ?)"
        return pilots(reading.db, where, [*arguments, question.since], reading.now, reading.live)
    return pilots(reading.db, where, arguments, reading.now, reading.live)


@reads(api.GetCredits)
def _credits(reading: QueryContext, question: api.GetCredits) -> api.CreditsView:
    wanted = [bag.id for bag in bags(reading.db, question.bags)]
    view = credits_view(reading.ledger, wanted, reading.now, priced=reading.live.priced)
    return msgspec.structs.replace(view, removed=reading.live.removed())


@reads(api.GetAdvice)
def _advice(reading: QueryContext, question: api.GetAdvice) -> api.AdviceView:
    return api.AdviceView(measured(reading.db, question.bag, _report(reading, question).totals), [])


_USEFUL = ",".join(f"'{outcome.value}'" for outcome in USEFUL)


@reads(api.GetReport)
def _report(reading: QueryContext, question: api.GetReport | api.GetAdvice) -> api.BagReport:
    """Report with each request that ran tasks of the bag, or was made while it was unfinished and ran
    nothing."""
    db, ledger = reading.db, reading.ledger
    (bag,) = bags(db, str(question.bag), reading.live)
    requests = pilots(db, REQUESTS_OF, of_bag(bag), reading.now, reading.live)
    if bag.sites:
        requests = [request for request in requests if request.site in bag.sites]
    first_done = db.execute("SELECT first_done FROM bag WHERE id = ?", (bag.id,)).fetchone()[0]
    shown = {request.id for request in requests}
    own = held_by_attempts(db, f"attempt.bag = ? AND attempt.outcome IN ({_USEFUL})", (bag.id,))
    used = sum(held.seconds for held in own if held.pilot in shown)
    used_by_others = round(sum(request.used for request in requests) - used, 6)  # the sums differ by rounding
    others = db.execute(
        f"SELECT DISTINCT bag FROM attempt WHERE bag <> ?1 AND outcome IN ({_USEFUL})"  # noqa: S608
        " AND pilot IN (SELECT pilot FROM attempt WHERE bag = ?1) ORDER BY bag",
        (bag.id,),
    )
    wasted, running = (sum(getattr(request, use) for request in requests) for use in ("wasted", "running"))
    forecast = first_forecast(db, ledger, bag.id)
    return BagReport(
        bag=bag,
        requests=requests,
        totals=Totals(
            requests=sum(not request.node for request in requests),
            donations=sum(bool(request.node) for request in requests),
            paid=used + used_by_others + running + wasted,
            used=used,
            used_by_others=used_by_others,
            others=[other for (other,) in others] if used_by_others else [],
            running=running,
            wasted=wasted,
            gpu_paid=sum(
                gpus_of_pilot(db, request.id)
                * (request.used + request.running + request.wasted)
                / request.holds
                for request in requests
            ),
            turnaround=bag.ended - bag.submitted if bag.ended is not None else None,
            first_result=first_done - bag.submitted if first_done is not None else None,
        ),
        credits=bag_line(ledger, bag.id) if ledger.in_use and bag.id in ledger.bags else None,
        donation=donation_of_bag(db, bag.id),
        first_forecast=forecast,
        forecast_record=forecast_record(db, ledger) if forecast is not None else None,
    )


@reads(api.GetSeenStarts)
def _starts(reading: QueryContext, _question: api.GetSeenStarts) -> list[api.SiteStarts]:
    return seen_starts(reading.db)


@reads(api.GetWhy)
def _why(reading: QueryContext, question: api.GetWhy) -> api.Why:
    found = [] if question.bag is None else bags(reading.db, str(question.bag))
    told = decisions(reading.db, question, found[0] if found else None)
    if question.pilot is not None and not told.lines:
        there = reading.db.execute("SELECT 1 FROM pilot WHERE id = ?", (question.pilot,)).fetchone()
        if there is None:
            raise UsageError(f"there is no pilot {question.pilot}; adaptor status --pilots --all lists them")
    return msgspec.structs.replace(told, offset=utc_offset(reading.now))
