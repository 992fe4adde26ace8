"""First forecasts are written down once, and judged after restarts, changes and the end of their bags."""

from __future__ import annotations

import asyncio

import pytest

from adaptor import api
from adaptor.api import FirstForecastView
from adaptor.daemon.step import end_pilots
from adaptor.decisions.memory import Memory
from adaptor.errors import JournalError
from adaptor.forecast.record import Record
from adaptor.journal.journal import Journal
from adaptor.journal.queries import answer
from adaptor.protocol.messages import Ending, Report, Result
from adaptor.reports import JobState
from tests.daemon.budgeted_site import credits_of, set_budget, steps, submit_budgeted
from tests.daemon.fake_site import FakeSite
from tests.daemon.lived_bags import FREE, hear, hello

TASKS = 12


def begin(site: FakeSite) -> int:
    """A bag with a budget, whose pilot runs and has greeted; its number."""
    bag = submit_budgeted(site, TASKS, 10)
    steps(site)
    site.backend.say(site.backend.orders[0].tag, JobState.RUNNING)
    steps(site)
    hear(site, "w", hello(), FREE)
    return bag


def finish(site: FakeSite, tasks: int) -> None:
    """So many tasks end well, one after another."""
    for _ in range(tasks):
        key = next(iter(site.state.core.broker.state.workers["w"].held))
        result = Result(key=key, ending=Ending.EXITED, started=1.0, wall=2.0, exit_code=0)
        hear(site, "w", Report(results=[result], free_processors=2, free_memory=1 << 30))


def forecast(site: FakeSite) -> int:
    """A bag of which three tasks have ended, so that its first forecast is made; its number."""
    bag = begin(site)
    finish(site, 3)
    steps(site)
    return bag


def end(site: FakeSite) -> None:
    """The rest of the tasks, then the pilots."""
    while site.state.core.broker.busy:
        finish(site, 1)
    for order in site.backend.orders:
        site.backend.say(order.tag, JobState.COMPLETED)
    steps(site, 2)


def restart(site: FakeSite) -> None:
    """`kill -9` of the daemon, and a new one, which the worker greets."""
    held = list(site.state.core.broker.state.workers["w"].held)
    site.restart()
    hear(site, "w", hello(holding=held), Report(free_processors=0, free_memory=1 << 30))


def told(site: FakeSite, bag: int) -> tuple[FirstForecastView | None, Record | None]:
    report = answer(site.journal.connection, api.GetReport(bag), 0.0)
    return report.first_forecast, report.forecast_record


def first_of(site: FakeSite, bag: int) -> FirstForecastView:
    found, _ = told(site, bag)
    assert found is not None
    return found


def test_a_forecast_is_judged_by_what_the_ledger_and_the_journal_say_in_the_end(site: FakeSite) -> None:
    bag = forecast(site)
    first = first_of(site, bag)
    assert (first.finished, first.tasks, first.final_end) == (3, TASKS, None)
    assert site.state.core.scores == {}, "nothing has ended that calibrates forecasts"
    end(site)
    scores = site.state.core.scores
    assert "alone first" in scores
    assert all(len(some) == 1 for some in scores.values()), "one of each kind of forecast"
    site.restart()
    assert site.state.core.scores == scores
    found, record = told(site, bag)
    assert found is not None
    assert found.final_cost == credits_of(site, bag)[0]
    assert found.cost is not None
    assert found.cost_held is (found.cost.holds(found.final_cost))
    assert found.end_held is not None
    assert record is not None
    assert (record.bags, record.not_counted) == (1, {})


def test_a_daemon_that_is_killed_between_the_forecast_and_the_end_makes_no_other(site: FakeSite) -> None:
    bag = forecast(site)
    first = first_of(site, bag)
    restart(site)
    finish(site, 2)
    steps(site, 2)
    assert first_of(site, bag) == first
    end(site)
    site.restart()
    assert first_of(site, bag).made == first.made
    assert first_of(site, bag).cost_held is not None


def test_one_that_was_killed_before_it_was_written_makes_it_after_the_restart(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise JournalError("no space left on device")

    bag = begin(site)
    finish(site, 3)
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "keep_forecast", full)
        with pytest.raises(JournalError):
            steps(site)
    assert told(site, bag) == (None, None)
    site.state.core.decided = Memory()  # another forecast is due
    steps(site)
    first = first_of(site, bag)
    assert first.finished == 3, "without a restart it is made as well, after the journal has come back"
    site.journal.connection.execute("DELETE FROM forecast")
    restart(site)
    finish(site, 1)
    steps(site)
    assert first_of(site, bag).finished == 4


def test_after_an_outage_in_which_most_tasks_ended_it_does_not_count(site: FakeSite) -> None:
    bag = begin(site)
    finish(site, 7)
    steps(site)
    end(site)
    assert first_of(site, bag).not_counted == "forecast made late"


def test_a_budget_that_is_changed_afterwards_is_told_apart_from_one_that_was_given(site: FakeSite) -> None:
    bag = forecast(site)
    assert first_of(site, bag).not_counted == ""
    set_budget(site, bag, 5)
    end(site)
    found, record = told(site, bag)
    assert found is not None
    assert (found.not_counted, found.cost_held) == ("budget changed", None)
    assert record is not None
    assert (record.bags, record.not_counted) == (0, {"budget changed": 1})


def test_so_is_a_daemon_that_is_stopped_with_its_pilots(site: FakeSite) -> None:
    bag = forecast(site)
    asyncio.run(end_pilots(site.state.core, [site.state]))
    assert first_of(site, bag).not_counted == "pilots cancelled"


def test_a_bag_cannot_be_taken_out_of_the_record_when_its_outcome_is_known(site: FakeSite) -> None:
    bag = forecast(site)
    end(site)
    set_budget(site, bag, 5)
    assert first_of(site, bag).not_counted == ""
