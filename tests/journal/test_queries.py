"""What the journal tells a user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adaptor import api
from adaptor.errors import JournalError, UsageError
from adaptor.journal.grant_rows import note_key
from adaptor.journal.queries import answer, answer_offline
from adaptor.model import CraftedRequest, PilotState, Request
from adaptor.protocol.messages import Leaving
from tests.scheduling.broker_world import World


def ask(world: World, question: api.Question[Any]) -> Any:
    return answer(world.journal.connection, question, world.now)  # type: ignore[arg-type]


def test_a_report_counts_used_wasted_and_what_was_given_back(world: World) -> None:
    world.submit(2)
    player = world.join("w", processors=2)
    begin = world.now
    world.finish(player, took=10)
    world.finish(player, took=10)
    world.journal.note_freed(player.pilot, 1, begin + 10)
    world.leave(player, Leaving.IDLE)
    world.journal.update_pilot(
        player.pilot, state=PilotState.COMPLETED, job="1", started=begin, ended=begin + 40, end_reason=""
    )
    told = ask(world, api.GetReport(1))
    (request,) = told.requests
    assert request.used == pytest.approx(30)
    assert request.wasted == pytest.approx(10 + 40 - 30)
    assert told.totals.paid == pytest.approx(50)


def test_a_report_tells_own_use_from_that_of_the_bags_in_the_same_pilots(world: World) -> None:
    own, other, apart = world.submit(1), world.submit(1), world.submit(1)
    shared, later = world.join("w", processors=2), world.join("later")
    took = {own: 3, other: 10, apart: 20}
    begin = world.now
    for player in (shared, later):
        while player.running:
            key = next(iter(player.running))
            world.now = begin
            world.finish(player, key, took=took[key.bag])
    sums = ask(world, api.GetReport(own)).totals
    assert (sums.used, sums.used_by_others, sums.others) == (pytest.approx(3), pytest.approx(10), [other])
    assert sums.paid == pytest.approx(sums.used + sums.used_by_others + sums.wasted)
    sums = ask(world, api.GetReport(apart)).totals
    assert (sums.used, sums.used_by_others, sums.others) == (pytest.approx(20), 0, [])


def test_requests_that_ran_nothing_are_in_the_report_of_the_bag_of_their_time(world: World) -> None:
    world.submit(1)
    world.join("idle", processors=1)
    world.join("busy", processors=1)
    world.run_to_the_end()
    told = ask(world, api.GetReport(1))
    assert told.totals.requests == 3


def test_why_of_a_pilot_and_of_everything(world: World) -> None:
    world.submit(1)
    for number in range(3):
        world.journal.explain(world.now, "here", "issued", f"reason {number}", pilot=number)
    world.journal.explain(world.now, "here", "withheld", "a limit")
    told = ask(world, api.GetWhy(pilot=1))
    assert [(line.subject, line.text) for line in told.lines] == [("pilot 1", "reason 1")]
    told = ask(world, api.GetWhy(limit=2))
    assert [line.subject for line in told.lines] == ["pilot 2", "here"]


def test_a_line_about_many_bags_names_their_number_and_has_all_of_them(world: World) -> None:
    bags = [world.submit(1) for _ in range(7)]
    world.journal.explain(world.now, "site", "withheld", "they wait", bags=bags)
    (line,) = ask(world, api.GetWhy()).lines
    assert (line.subject, line.bags) == ("7 bags", bags)


def test_a_line_that_replaces_another_names_its_own_bags_only(world: World) -> None:
    first, second = world.submit(1), world.submit(1)
    row = world.journal.explain(world.now, "site", "withheld", "both wait", bags=[second, first, second])
    world.journal.explain(world.now, "site", "withheld", "the second waits", bags=[second], replacing=row)
    (line,) = ask(world, api.GetWhy()).lines
    assert (line.text, line.bags) == ("the second waits", [second])
    assert ask(world, api.GetWhy(bag=first)).lines == []


def test_why_of_a_bag_has_the_lines_about_it_and_about_the_whole_site(world: World) -> None:
    first, second = world.submit(1), world.submit(1, sites=["site"])
    crafted = CraftedRequest(Request(1, 60), None, 1, "because")
    shared, own = (
        world.journal.add_pilots("site", "tag-", [crafted], world.now, bag)[0] for bag in (None, first)
    )
    explain, now = world.journal.explain, world.now
    explain(now, "site", "withheld", "the first waits", bags=[first])
    explain(now, "site", "withheld", "the second waits", bags=[second])
    explain(now, "site", "withheld", "both wait", bags=[second, first])
    explain(now, "site", "withheld", "the scheduler does not answer")
    explain(now, "other", "withheld", "a site at which the second may not run")
    explain(now, "site", "ended", "the first's pilot", pilot=own)
    explain(now, "site", "issued", "for the second", pilot=shared, bags=[second])
    explain(now, "site", "state", "a shared pilot", pilot=shared)
    with world.journal.transaction() as db:
        note_key(db, "ci", now, "granted")
        note_key(db, "ci", now, "submitted", [second])
    told = ask(world, api.GetWhy(bag=second)).lines
    assert [(line.subject, line.text) for line in told] == [
        (f"bag {second}", "the second waits"),
        (f"bags {first}, {second}", "both wait"),
        ("site", "the scheduler does not answer"),
        (f"pilot {shared}", "for the second"),
        (f"pilot {shared}", "a shared pilot"),
        (f"bag {second}", "key ci: submitted"),
    ]
    assert len(ask(world, api.GetWhy(bag=first)).lines) == 6
    assert [request.id for request in ask(world, api.GetReport(second)).requests] == [shared]


def test_why_of_a_bag_has_what_is_said_of_it_just_after_its_end(world: World) -> None:
    bag = world.submit(1)
    world.finish(world.join("w"))
    end = world.now
    world.journal.explain(end, "site", "withheld", "the scheduler does not answer")
    world.journal.explain(end + 1, "site", "problem", "gave 1 task up", bags=[bag])
    world.journal.explain(end + 1, "site", "ended", "completed", pilot=1)
    world.journal.explain(end + 1, "site", "withheld", "all of the site, later")
    told = ask(world, api.GetWhy(bag=bag)).lines
    assert [line.text for line in told] == ["the scheduler does not answer", "gave 1 task up", "completed"]


@pytest.mark.parametrize(
    "question", [api.GetBags("9"), api.GetWhy(pilot=9), api.GetTasks(9), api.GetReport(9), api.GetBags("x-y")]
)
def test_what_is_not_there_is_told(world: World, question: api.Question[Any]) -> None:
    with pytest.raises(UsageError):
        ask(world, question)


def test_offline_the_journal_of_a_dead_daemon_is_read(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.submit(3)
    world.close()
    told = answer_offline(tmp_path, api.GetBags(), 0.0)
    assert told.bags[0].tasks == 3
    with pytest.raises(UsageError, match="daemon start"):
        answer_offline(tmp_path, api.GetDaemon(), 0.0)


def test_offline_without_a_journal(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="nothing was ever submitted"):
        answer_offline(tmp_path, api.GetBags(), 0.0)
