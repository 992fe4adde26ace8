"""Bags are forgotten, and nothing else: what they cost and taught stays, and nobody waits."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from adaptor import api
from adaptor.api import PilotRecord
from adaptor.bag_spec import BUNDLES
from adaptor.budget.accounting.entries import Budget
from adaptor.budget.accounting.ledger import Ledger
from adaptor.budget.accounting.periods import Calendar
from adaptor.daemon.upkeep.retention import RETRIED
from adaptor.errors import UnknownBagError, UsageError
from adaptor.journal import forgetting
from adaptor.journal.credits import entries
from adaptor.journal.pilot_rows import pilot_waits
from adaptor.journal.queries import answer
from adaptor.protocol.messages import Ending, Orders, Report, Result
from tests.bundles.staged import archive_of, packed
from tests.daemon.budgeted_site import told_of
from tests.daemon.fake_site import FakeSite
from tests.daemon.lived_bags import (
    begin,
    counts,
    end_pilots,
    finish,
    forget,
    hear,
    keeper,
    leased,
    live,
    work,
)

MONTH = Budget(amount=10**12, site="here", calendar=Calendar("month", "Europe/Lisbon"))


def ledger(site: FakeSite) -> Ledger:
    return site.state.core.treasury.ledger


def ask(site: FakeSite, question: api.Question[Any]) -> Any:
    now = site.state.core.now()
    return answer(site.journal.connection, question, now, ledger(site))  # type: ignore[arg-type]


def test_all_rows_of_a_bag_go_and_what_its_site_was_charged_stays(site: FakeSite) -> None:
    now = site.state.core.now()
    ledger(site).impose(MONTH, now)
    bags = [live(site, 3, credits=1.0) for _ in range(3)]
    at_site, month = ledger(site).at_site("here"), ledger(site).budgets_at("here", now)
    assert at_site.used > at_site.wasted > 0 == at_site.reserved
    assert month[0].used == at_site.used
    waits, pilots = site.journal.read(pilot_waits, "here"), ask(site, api.GetPilots(ended=True))
    forget(site, *bags)
    left = counts(site)
    assert {table for table, rows in left.items() if rows} <= {"pilot", "credit", "decision"}
    assert ledger(site).at_site("here") == at_site
    assert ledger(site).budgets_at("here", now) == month
    assert site.journal.read(pilot_waits, "here") == waits
    assert ask(site, api.GetPilots(ended=True)) == pilots, "with what was used of them"
    site.restart()
    ledger(site).impose(MONTH, now)
    assert ledger(site).at_site("here") == at_site
    assert ledger(site).budgets_at("here", now) == month
    with pytest.raises(UnknownBagError):
        ask(site, api.GetReport(bags[0]))


def test_other_bags_are_told_of_as_before(site: FakeSite) -> None:
    first, second = live(site, 2, credits=1.0), live(site, 3, credits=2.0)
    before = [ask(site, question) for question in (api.GetReport(second), api.GetTasks(second))]
    forget(site, first)
    assert [ask(site, question) for question in (api.GetReport(second), api.GetTasks(second))] == before
    assert told_of(ledger(site)) == told_of(Ledger([*site.journal.read(entries), *prices(site)]))


def prices(site: FakeSite) -> list[object]:
    """Those of the configuration, which are not written down."""
    book = Ledger()
    return [book.set_price("here", ledger(site).tariff("here"), 0.0)]


def test_what_a_forgotten_bag_used_of_a_shared_pilot_is_told(site: FakeSite) -> None:
    first, second = site.submit_bag(2), site.submit_bag(2)
    finish(site, begin(site))
    requests = used_requests(site, second)
    assert len(requests) == 1
    forget(site, first)
    assert used_requests(site, second) == requests, "both bags used it"


def used_requests(site: FakeSite, bag: int) -> list[PilotRecord]:
    told = ask(site, api.GetReport(bag))
    return [request for request in told.requests if request.used > 0]


def test_a_late_result_in_a_shared_pilot_leaves_the_part_of_a_forgotten_bag_as_it_is(site: FakeSite) -> None:
    first, second = site.submit_bag(1), site.submit_bag(1)
    pilot = begin(site)
    worker = f"w{pilot}"
    mine, theirs = sorted(leased(site, worker), key=lambda key: key.bag)
    assert (mine.bag, theirs.bag) == (first, second)
    hear(site, worker, Report(started=[theirs]))
    site.state.core.broker.state.workers[worker].held[theirs].started = site.state.core.now() - 3
    work(site, worker, [mine])
    end_pilots(site, pilot)
    before = ledger(site).of_bag(first)
    assert ledger(site).of_bag(second).wasted > 0 < before.used - before.wasted
    forget(site, first)
    wasted = ledger(site).at_site("here").wasted
    late = Result(key=theirs, ending=Ending.EXITED, started=1.0, wall=2.0, exit_code=0)
    site.state.core.hear_late([late], site.state.core.now())
    asyncio.run(site.state.core.commit())
    assert ledger(site).of_bag(first) == before
    assert ledger(site).at_site("here").wasted < wasted
    assert ledger(site).at_site("here") == Ledger(site.journal.read(entries)).at_site("here")


def test_a_bag_that_runs_or_whose_pilot_does_is_refused_and_all_or_none_are_forgotten(site: FakeSite) -> None:
    ended = live(site)
    running = site.submit_bag(2)
    pilot = begin(site)
    with pytest.raises(UsageError, match=f"bag {running} has not ended.*adaptor cancel {running}"):
        keeper(site).forget([ended, running])
    assert counts(site)["bag"] == 2
    worker = f"w{pilot}"
    while keys := leased(site, worker):
        work(site, worker, keys)
    with pytest.raises(
        UsageError, match=f"pilot {pilot}, in which it ran or for which it pays, has not ended"
    ):
        keeper(site).forget([running])
    with pytest.raises(UsageError, match="has not ended"):
        keeper(site).forget([99])


def test_ids_never_come_again(site: FakeSite) -> None:
    bags = [live(site), live(site)]
    pilots = [pilot for pilot, _, _ in site.pilots()]
    forget(site, *bags)
    site.restart()
    assert live(site) == max(bags) + 1
    assert min({pilot for pilot, _, _ in site.pilots()}.difference(pilots)) == max(pilots) + 1


def test_a_daemon_that_is_killed_while_it_compacts_is_followed_by_one_that_goes_on(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "TASKS", 2)
    bag, other = live(site, 7), live(site, 2)
    used = ledger(site).at_site("here")
    house = keeper(site)
    house.forget([bag])
    for steps_done, _ in enumerate(house._steps()):
        if steps_done == 1:
            break
    assert 0 < counts(site)["task"] - 2 < 7
    site.restart()
    assert [view.id for view in ask(site, api.GetBags()).bags] == [other]  # type: ignore[union-attr]
    asyncio.run(keeper(site).compact(lambda: True))
    left = counts(site)
    assert (left["task"], left["attempt"], left["forgotten"]) == (2, 2, 0)
    assert ledger(site).at_site("here") == used


def test_bags_that_ended_before_keep_are_forgotten_by_themselves(site: FakeSite) -> None:
    old, young = live(site), live(site)
    site.journal.connection.execute("UPDATE bag SET ended = ended - 1000 WHERE id = ?", (old,))
    house = keeper(site, keep=900.0)
    asyncio.run(house._forget_old(lambda: True))
    assert [view.id for view in ask(site, api.GetBags()).bags] == [young]  # type: ignore[union-attr]
    asyncio.run(keeper(site)._forget_old(lambda: True))
    assert counts(site)["bag"] == 1


@pytest.mark.parametrize("ahead", [-3600.0, 400 * 86_400.0])
def test_a_clock_that_may_be_wrong_ages_no_bag_for_an_hour(site: FakeSite, ahead: float) -> None:
    """After a boot with another hardware clock, until NTP sets it right."""
    live(site)
    core = site.state.core
    at = core.now() + ahead
    core.now = lambda: at
    house = keeper(site, keep=90 * 86_400.0)
    asyncio.run(house._forget_old(lambda: True))
    assert counts(site)["bag"] == 1
    core.now = lambda: at + 3601
    asyncio.run(house._forget_old(lambda: True))
    assert counts(site)["bag"] == (1 if ahead < 0 else 0)


def test_the_file_gives_its_pages_back(site: FakeSite) -> None:
    bag = site.submit_bag(20_000)
    site.state.core.broker.cancel(bag)
    asyncio.run(site.state.core.commit())
    db = site.journal.connection
    before = db.execute("PRAGMA page_count").fetchone()[0]
    forget(site, bag)
    assert db.execute("PRAGMA page_count").fetchone()[0] < before / 4
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_first_forecasts_of_forgotten_bags_still_count(site: FakeSite) -> None:
    bag = live(site, 4, credits=1.0)
    insert = "INSERT INTO forecast VALUES (?, 0, 1, 4, 0.0, 0.5, 1.0, 0.0, 1.0, 1e12)"  # both hold
    site.journal.connection.execute(insert, (bag,))
    site.journal.connection.execute("UPDATE bag SET user_change = NULL")
    before = ask(site, api.GetBags(record=True)).record  # type: ignore[union-attr]
    assert before is not None
    assert before.bags == 1
    forget(site, bag)
    assert ask(site, api.GetBags(record=True)).record == before  # type: ignore[union-attr]


def test_explanations_from_before_all_bags_that_are_left_go(site: FakeSite) -> None:
    db = site.journal.connection
    for number in range(3):
        site.journal.explain(1000.0 + number, "here", "withheld", "long ago", bags=[7, 8])
    old, young = live(site), live(site)
    submitted = db.execute("SELECT submitted FROM bag WHERE id = ?", (young,)).fetchone()[0]
    forget(site, old)
    times = [time for (time,) in db.execute("SELECT time FROM decision")]
    assert times
    assert min(times) >= submitted
    assert db.execute("SELECT COUNT(*) FROM decision_bag WHERE bag IN (7, 8)").fetchone() == (0,)


def test_contexts_are_kept_for_unfinished_bags_only(site: FakeSite) -> None:
    """They hold environments, several kilobytes each."""
    core = site.state.core
    for _ in range(3):
        live(site)
    assert core._contexts == {}
    assert core._sent_bags == {}
    site.submit_bag(2)
    begin(site)
    assert len(core._contexts) == 1


def test_a_worker_is_told_which_bags_it_need_not_know_any_more(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []

    async def send(worker: str, message: object) -> None:
        sent.append(message)

    first = site.submit_bag(1)
    pilot = begin(site)
    worker = f"w{pilot}"
    monkeypatch.setattr(site.state.core, "send", send)
    work(site, worker, leased(site, worker))
    second = site.submit_bag(1)
    hear(site, worker, Report(free_processors=2, free_memory=1 << 30))
    told = [message for message in sent if isinstance(message, Orders)]
    assert [bag for message in told for bag in message.ended_bags] == [first]
    assert [context.bag for message in told for context in message.bags] == [second]


def test_an_archive_goes_once_no_task_may_need_it(site: FakeSite, tmp_path: Path) -> None:
    core = site.state.core
    (core.directory / BUNDLES).mkdir(mode=0o700)

    def staged(name: str, **options: Any) -> tuple[Path, dict[str, Any]]:
        (tmp_path / name).write_text(name)
        bundle = packed(core.directory, tmp_path / name)
        path = archive_of(core.directory, bundle)
        os.utime(path, (1e9, 1e9))
        return path, {"stage": (str(tmp_path / name),), "bundle": bundle, **options}

    done, of_done = staged("done")
    running, of_running = staged("running")
    failed, of_failed = staged("failed")
    unknown, _ = staged("unknown")
    young, _ = staged("young")
    os.utime(young)
    live(site, **of_done)
    live(site, **of_failed)
    site.journal.connection.execute("UPDATE bag SET failed = 1, done = done - 1 WHERE id = 2")
    site.submit_bag(1, **of_running)
    house = keeper(site)
    house._remove_archives()
    assert [path.exists() for path in (done, running, failed, unknown, young)] == [
        False,
        True,
        True,
        False,
        True,
    ]
    site.journal.connection.execute("UPDATE bag SET ended = ended - ? WHERE id = 2", (RETRIED + 60,))
    house._remove_archives()
    assert [path.exists() for path in (running, failed, young)] == [True, False, True]
