"""The ledger in the daemon: reserved with the intent, settled with the end, the same after a crash."""

from __future__ import annotations

import asyncio
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptor.budget.accounting.ledger import Ledger
from adaptor.daemon.step import cancel_all
from adaptor.daemon.worker_endpoint import release_node
from adaptor.errors import JournalError, UsageError
from adaptor.journal.credits import credits_view, entries, write_entry
from adaptor.model import Request
from adaptor.reports import JobState
from adaptor.scheduling.workers import Worker
from backends.base import PilotOrder, SchedulerError, SubmitRefused
from tests.daemon.budgeted_site import (
    credits_of,
    in_every_past,
    set_budget,
    steps,
    submit_budgeted,
    told_of,
)
from tests.daemon.fake_site import FakeSite
from tests.examples import examples


def areas(site: FakeSite) -> list[int]:
    return [order.request.area for order in site.backend.orders]


def test_a_pilot_is_reserved_with_its_intent_even_if_the_daemon_dies_in_the_submit(site: FakeSite) -> None:
    def die(order: PilotOrder) -> str:
        raise RuntimeError("the daemon dies in the middle of the submit")

    site.backend.submit = die  # type: ignore[method-assign]
    bag = submit_budgeted(site, 2, 1)
    with pytest.raises(RuntimeError):
        steps(site)
    site.restart()
    assert site.states() == ["submitting"]
    used, reserved = credits_of(site, bag)
    assert used == 0
    assert reserved > 0


def test_what_cannot_be_reserved_is_not_submitted(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise JournalError("the disk is full")

    submit_budgeted(site, 1, 1)
    monkeypatch.setattr("adaptor.daemon.submitting.write_entry", full)
    with pytest.raises(JournalError):
        steps(site)
    assert not site.backend.orders
    assert site.pilots() == [], "the intent is rolled back with its reservation"


def test_requests_are_paid_for_within_the_budget_and_say_so(site: FakeSite) -> None:
    bag = submit_budgeted(site, 500, 0.5)
    steps(site, 3)
    assert 0 < sum(credits_of(site, bag)) <= 0.5 < sum(areas(site)) / 3600
    assert any("paid for at first (bag 1)" in text for text in site.told("issued"))
    in_every_past(site)


def test_a_node_that_is_given_back_is_charged_until_then(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    bag = submit_budgeted(site, 2, 1)
    steps(site)
    tag = site.backend.orders[0].tag
    site.backend.say(tag, JobState.RUNNING)
    steps(site)
    (pilot,) = site.state.pilots.values()
    before = credits_of(site, bag)[1]
    gone, staying = (
        Worker(node, pilot=pilot.id, site="here", node=node, processors=1, memory=0, deadline=0, seen=0)
        for node in ("n1", "n2")
    )
    monkeypatch.setattr(site.state.core.broker, "of_pilot", lambda _pilot: [staying])
    monkeypatch.setattr(site.backend, "can_release", True)
    monkeypatch.setattr(site.backend, "release", lambda job, nodes: None)
    asyncio.run(release_node(site.state, gone))
    used, reserved = credits_of(site, bag)
    assert used == 0
    assert 0.5 * before < reserved < 0.8 * before
    site.restart()
    assert credits_of(site, bag) == (used, reserved)


def test_a_refused_request_costs_nothing(site: FakeSite) -> None:
    site.backend.on_submit = SubmitRefused("invalid partition")
    bag = submit_budgeted(site, 500, 1)
    steps(site)
    assert credits_of(site, bag) == (0, 0)


def test_the_end_that_the_scheduler_tells_is_charged(site: FakeSite) -> None:
    bag = submit_budgeted(site, 1, 1)
    steps(site)
    tag = site.backend.orders[0].tag
    site.backend.say(tag, JobState.RUNNING)
    steps(site)
    site.backend.say(tag, JobState.COMPLETED)
    report = site.backend.reports[tag]
    steps(site)
    assert report.start is not None
    assert report.end is not None
    used, _ = credits_of(site, bag)
    assert used == pytest.approx(math.ceil(round(report.end - report.start, 3)) / 3600, abs=1e-6)


def test_while_the_scheduler_hangs_money_is_kept_and_what_ran_is_charged_when_it_answers(
    site: FakeSite,
) -> None:
    bag = submit_budgeted(site, 500, 0.5)
    steps(site)
    orders = list(site.backend.orders)
    for order in orders:
        site.backend.say(order.tag, JobState.RUNNING)
    steps(site)
    before = credits_of(site, bag)
    site.backend.silent = SchedulerError("squeue does not answer for 60 s")
    steps(site, 20)
    assert site.backend.orders == orders, "nothing more is bought"
    assert credits_of(site, bag) == before, "all that may run stays reserved"
    assert site.state.memory.problem == "squeue does not answer for 60 s", "which status shows"
    site.restart()
    assert credits_of(site, bag) == before
    site.backend.silent = None
    for order in orders:
        site.backend.say(order.tag, JobState.WALLTIME)
    steps(site)
    expected = sum(order.request.p * 5 for order in orders) / 3600
    assert credits_of(site, bag)[0] == pytest.approx(expected, abs=2e-3), "from its start to its end"
    in_every_past(site)


def test_a_withdrawn_request_gives_everything_back(site: FakeSite) -> None:
    bag = submit_budgeted(site, 500, 1)
    steps(site)
    assert credits_of(site, bag)[1] > 0
    asyncio.run(cancel_all(site.state, "stopped"))
    site.state.core.broker.cancel(bag)
    steps(site, 2)
    assert credits_of(site, bag) == (0, 0)


def test_a_bag_whose_budget_is_spent_says_what_it_needs_and_goes_on_when_it_has_it(site: FakeSite) -> None:
    bag = submit_budgeted(site, 50, 0.01)
    steps(site, 2)
    assert not site.backend.orders
    told = site.told("withheld")[-1]
    assert f"bag {bag} is paused: 0.01 credits are left" in told
    asked = float(told.rpartition("--budget ")[2])
    set_budget(site, bag, asked)
    steps(site)
    assert site.backend.orders
    in_every_past(site)


def test_a_budget_below_what_is_spent_is_refused(site: FakeSite) -> None:
    bag = submit_budgeted(site, 50, 1)
    steps(site)
    with pytest.raises(UsageError, match="used or reserved already"):
        set_budget(site, bag, 0.001)
    with pytest.raises(UsageError, match="above 0"):
        set_budget(site, bag, -1)


def test_a_pilot_that_ended_in_the_journal_only_is_settled_by_the_next_daemon(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the end that was written down and the charge."""
    bag = submit_budgeted(site, 1, 1)
    steps(site)
    monkeypatch.setattr(type(site.state.core.treasury), "settle", lambda *_: None)
    site.backend.say(site.backend.orders[0].tag, JobState.COMPLETED)
    steps(site)
    assert credits_of(site, bag)[0] == 0
    monkeypatch.undo()
    site.restart()
    used, _ = credits_of(site, bag)
    assert used > 0


def test_bags_without_a_budget_are_counted_and_share_pilots(site: FakeSite) -> None:
    site.submit_bag(2)
    site.submit_bag(2)
    steps(site)
    first, second = credits_of(site, 1)[1], credits_of(site, 2)[1]
    assert first == pytest.approx(second) != 0


def test_a_bag_with_a_budget_has_pilots_of_its_own(site: FakeSite) -> None:
    site.submit_bag(2)
    bag = submit_budgeted(site, 2, 1)
    steps(site)
    owners = {pilot.bag for pilot in site.state.pilots.values()}
    assert owners == {None, bag}
    site.restart()
    assert {pilot.bag for pilot in site.state.pilots.values()} == owners


Event = st.sampled_from(["step", "run", "complete", "fail", "restart", "raise", "refuse"])


@examples(25)
@given(
    budgets=st.lists(st.floats(0.02, 3), min_size=1, max_size=3),
    events=st.lists(st.tuples(Event, st.integers(0, 9)), max_size=25),
)
def test_never_above_budget_and_the_same_after_every_crash(
    budgets: list[float], events: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = FakeSite(Path(folder) / "state")
        bags = [submit_budgeted(site, 40, credits) for credits in budgets]
        for event, number in events:
            _happen(site, event, number, bags)
            for balance in site.state.core.treasury.ledger.balances(0.0):
                assert balance.left >= 0
        in_every_past(site)
        before = told_of(site.state.core.treasury.ledger)
        site.restart()
        assert told_of(site.state.core.treasury.ledger) == before
        site.journal.close()


def _happen(site: FakeSite, event: str, number: int, bags: list[int]) -> None:
    orders = site.backend.orders
    states = {"run": JobState.RUNNING, "complete": JobState.COMPLETED, "fail": JobState.FAILED}
    if event in states and orders:
        tag = orders[number % len(orders)].tag
        known = site.backend.reports.get(tag)
        if known is not None and known.state.ended is None:
            site.backend.say(tag, states[event])
    elif event == "restart":
        site.restart()
    elif event == "raise":
        bag = bags[number % len(bags)]
        balance = site.state.core.treasury.ledger.budget_of(bag)
        assert balance is not None
        set_budget(site, bag, (balance.used + balance.reserved) / 1e6 + 0.1)
    site.backend.on_submit = SubmitRefused("no") if event == "refuse" else None
    site.state.memory.refusals.keep(())
    steps(site)


def test_credits_of_a_site_that_the_configuration_no_longer_has_are_told_without_its_price(
    site: FakeSite,
) -> None:
    bag = submit_budgeted(site, 1, 1)
    treasury = site.state.core.treasury
    treasury.ledger.set_price("gone", treasury.ledger.tariff("here"), 0.0)
    with site.journal.transaction() as db:
        entry = treasury.ledger.reserve(99, "gone", Request(1, 60), "explicit", {bag: 1.0}, 0.0)
        write_entry(db, entry)
    ledger = Ledger(site.journal.read(entries))
    ledger.set_price("here", treasury.ledger.tariff("here"), 0.0)
    told = credits_view(ledger, [bag], 0.0, priced=True)
    assert [(line.site, line.reserved > 0) for line in told.sites] == [("gone", True), ("here", False)]
    assert [price.site for price in told.prices] == ["here"]
