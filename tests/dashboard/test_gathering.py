"""The page over the life of a daemon: live, silent, live again; and what it costs the daemon."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from adaptor import api
from adaptor.dashboard.gathering import Gatherer
from adaptor.errors import AdaptorError
from tests.cli.fake_control import pilot_view
from tests.dashboard.told import NOW, PILOTS, Told


class Time:
    """A clock and a stopwatch that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def gatherer(told: Told, time: Time | None = None) -> Gatherer:
    time = time or Time()
    return Gatherer(told, time, time, "a title")


def test_the_page_has_what_the_daemon_told() -> None:
    page = gatherer(Told()).gather()
    assert page.head.live
    (row,) = page.bags
    assert (row.bag.id, row.bag.failed) == (7, 2)
    assert row.credits is not None
    assert row.credits.left == 8.0
    (details,) = page.details
    assert [(each.words, each.count) for each in details.failures] == [("exit 3", 2)]
    assert [known.estimate for known in details.learned] == [12.5]
    (queue,) = page.queues
    assert {box.pilot: (box.start, box.end, box.p) for box in queue.boxes} == {
        1: (NOW - 50, NOW + 450, 6),
        2: (NOW + 1200, NOW + 1800, 8),
    }, "a queued pilot starts when the scheduler last said"
    assert all(box.fits for box in queue.boxes)
    assert {box.pilot: box.latest for box in queue.boxes} == {1: None, 2: NOW + 1260}
    (strip,) = page.strips
    assert [(start, end, use) for _, _, start, end, use, _, _ in strip.spans] == [
        (NOW - 50, NOW - 40, "result"),
        (NOW - 4, None, "running"),
    ]


def test_a_daemon_that_is_started_again_finds_the_journal_free() -> None:
    told, time = Told(), Time()
    page = gatherer(told, time)
    before = page.gather()
    told.live_now = False
    time.now += 5
    silent = page.gather()
    assert (silent.head.live, silent.head.journal, silent.head.silent_since) == (False, False, NOW)
    assert silent.bags == before.bags
    assert not [kind for of, kind in told.asked if of == "kept"]


def test_while_the_daemon_is_silent_the_journal_is_read_once() -> None:
    told, time = Told(), Time()
    page = gatherer(told, time)
    before = page.gather()
    for _ in range(2):
        told.live_now = False
        for seconds in (11, 2, 2):
            time.now += seconds
            silent = page.gather()
        assert (silent.head.live, silent.head.journal) == (False, True)
        assert silent.head.silent_since == time.now - 15
        assert silent.queues == before.queues, "what was last seen of the queue stays"
        assert silent.head.daemon == before.head.daemon
        assert told.count(api.GetLatestBags, "kept") == 1
        told.asked.clear()
        told.live_now = True
        again = page.gather()
        assert again.head.live
        assert again.head.silent_since is None
        before = again


def test_where_no_daemon_ever_ran_the_journal_is_shown() -> None:
    told = Told()
    told.live_now = False
    page = gatherer(told).gather_soon()
    assert not page.head.live
    assert page.details
    assert page.head.silent_since is None
    assert [row.bag.id for row in page.bags] == [7]
    assert page.queues == []


def test_the_journal_of_a_daemon_that_hangs_is_left_alone() -> None:
    told = Told()
    page = gatherer(told)
    before = page.gather()
    told.live_now, told.lives = False, True
    silent = page.gather()
    assert not silent.head.live
    assert silent.head.problem
    assert silent.bags == before.bags
    assert not [kind for of, kind in told.asked if of == "kept"]


def test_a_daemon_that_cannot_serve_leaves_the_last_page_and_says_why() -> None:
    def stalled(_: api.Question[Any]) -> list[api.PilotRecord]:
        raise AdaptorError("the disk is full")

    told = Told()
    page = gatherer(told)
    before = page.gather()
    told.answers[api.GetPilots] = stalled
    after = page.gather()
    assert "the disk is full" in after.head.problem
    assert after.bags == before.bags


@pytest.mark.parametrize(("seconds", "asked"), [(0.0, 11), (0.1, 5), (10.0, 1)])
def test_dear_questions_take_a_twentieth_of_the_time_at_most(seconds: float, asked: int) -> None:
    told, time = Told(), Time()

    def take(kind: type) -> None:
        time.now += seconds if kind is api.GetTaskSums else 0

    told.took = take
    page = gatherer(told, time)
    for _ in range(11):
        page.gather()
        time.now += 1.0
    assert told.count(api.GetLatestBags) == 11
    assert told.count(api.GetTaskSums) == pytest.approx(asked, abs=1)


def test_a_first_look_does_not_wait_for_what_is_dear() -> None:
    told = Told()
    page = gatherer(told)
    first = page.gather_soon()
    assert [row.bag.id for row in first.bags] == [7]
    assert first.details == []
    assert told.count(api.GetTaskSums) == told.count(api.GetActivity) == 0
    assert page.gather().details
    assert page.gather_soon().details, "what is known is shown"


def test_others_use_is_remembered_from_look_to_look() -> None:
    told, time = Told(), Time()
    page = gatherer(told, time)
    page.gather()
    seen = told.answers[api.GetPicture]
    (queue,) = seen.queues
    later = msgspec.structs.replace(
        queue,
        observed=NOW + 20,
        steps=[msgspec.structs.replace(step, time=step.time + 23, running=3) for step in queue.steps],
    )
    told.answers[api.GetPicture] = msgspec.structs.replace(seen, queues=[later])
    time.now += 20
    (found,) = page.gather().queues
    assert found.past == [(NOW - 3, 8), (NOW + 20, 3)]


def test_what_runs_is_shown_behind_a_thousand_pilots_that_wait() -> None:
    waiting = [pilot_view(id, state="queued", started=None, ended=None) for id in range(3, 1003)]
    told = Told({api.GetPilots: [*PILOTS, *waiting]})
    page = Gatherer(told, lambda: NOW, lambda: NOW, "bags").gather()
    ids = [pilot.id for pilot in page.pilots]
    assert ids == sorted(ids)
    assert len(ids) == 200
    assert 1 in ids, "it runs"
    assert any(box.pilot == 1 for queue in page.queues for box in queue.boxes)
