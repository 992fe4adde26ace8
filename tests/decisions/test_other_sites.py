"""Two sites that step by themselves, and share the tasks all the same."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from adaptor.budget.accounting.entries import Budget
from adaptor.budget.accounting.tariffs import Tariff
from adaptor.daemon.clock import system_clock
from adaptor.daemon.site import recall_waits
from adaptor.daemon.step import step
from adaptor.daemon.treasury import Costs
from adaptor.decisions import other_sites as peers
from adaptor.model import CraftedRequest, PilotState, QueueState, Request
from adaptor.reports import JobState
from adaptor.resources import TaskSize
from backends.base import PilotOrder, SchedulerError
from tests.daemon.fake_sites import FakeSites
from tests.living import PATIENCE


@pytest.fixture
def two(tmp_path: Path) -> Iterator[FakeSites]:
    two = FakeSites(tmp_path / "state")
    yield two
    two.journal.close()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets so many seconds go by on the clock of the daemon."""

    def advance(seconds: float) -> None:
        clock = time.time
        monkeypatch.setattr(time, "time", lambda: clock() + seconds)
        monkeypatch.setattr(system_clock, "_offset", system_clock._offset + seconds)

    return advance


def test_a_site_waits_until_the_other_queue_was_read_and_no_task_is_asked_for_twice(two: FakeSites) -> None:
    two.submit_bag(16)
    two.step("near")
    assert two.asked() == {"near": 0, "far": 0}
    assert two.told("near", "withheld") == ["waits until the queue of far is read"]
    assert two.sites["far"].wake.is_set(), "far is asked to look at its queue"
    two.step("far")
    assert two.sites["near"].wake.is_set(), "and near is told"
    two.step("near", "far", "near", "far")
    assert two.asked() == {"near": 8, "far": 8}
    assert two.told("far", "divided") == ["gets 8 of 16 waiting tasks: all can be done in 1m if near gets 8"]


def test_the_sites_of_a_bag_are_kept_to(two: FakeSites) -> None:
    two.submit_bag(16, "far")
    two.step("near", "far", "near", "far")
    assert two.asked() == {"near": 0, "far": 8}, "8 processors for two rounds"


def test_a_site_whose_budget_holds_no_request_leaves_its_tasks_to_the_others(tmp_path: Path) -> None:
    tariff = Tariff(price_explicit=1.0, price_donated=1.0)
    costs = {"near": Costs(tariff, Budget(amount=1, site="near")), "far": Costs(tariff)}
    two = FakeSites(tmp_path / "state", costs=costs)
    two.submit_bag(16)
    two.step("far", "near", "far")
    assert "gets none of 16 waiting tasks: its budget holds no request" in two.told("near", "withheld")[-1]
    assert "gets 16 of 16 waiting tasks" in two.told("far", "divided")[0]
    two.journal.close()


def test_a_silent_site_gets_nothing_and_holds_nobody_up(two: FakeSites) -> None:
    two.backends["far"].silent = SchedulerError("squeue: connection refused")
    two.submit_bag(16)
    two.step("far", "near", "near")
    assert two.asked() == {"near": 8, "far": 0}
    assert "far gets 0" in two.told("near", "divided")[0]


def test_a_site_that_hangs_is_waited_for_only_so_long(two: FakeSites, later: Callable[[float], None]) -> None:
    """Its first question is on the way and never answered."""
    two.submit_bag(16)
    two.sites["far"].memory.asked_since = time.time()
    two.step("near")
    assert two.asked() == {"near": 0, "far": 0}
    later(peers.PATIENCE + 1)
    two.step("near")
    assert two.asked() == {"near": 8, "far": 0}


def test_what_was_planned_at_a_site_that_falls_silent_goes_to_the_other_after_a_while(
    two: FakeSites, later: Callable[[float], None]
) -> None:
    two.submit_bag(16)
    two.step("near", "far", "near")
    assert two.asked() == {"near": 8, "far": 8}
    two.backends["far"].silent = SchedulerError("squeue: connection refused")
    two.step("far", "near")
    assert two.asked() == {"near": 8, "far": 8}, "not at once"
    later(float(two.sites["far"].config.command_timeout) + 1)
    two.step("far", "near")
    assert two.asked() == {"near": 16, "far": 8}


def test_when_it_answers_again_what_is_too_much_is_withdrawn(
    two: FakeSites, later: Callable[[float], None]
) -> None:
    two.submit_bag(16)
    two.step("near", "far", "near")
    two.backends["far"].silent = SchedulerError("squeue: connection refused")
    two.step("far")
    later(float(two.sites["far"].config.command_timeout) + 1)
    two.step("far", "near")
    two.backends["far"].silent = None
    two.step("far", "near", "far", "near")
    states = [pilot.state for site in two.sites.values() for pilot in site.pilots.values()]
    assert states == [PilotState.QUEUED] * 2


def test_a_site_whose_requests_are_refused_gets_nothing_until_it_may_try_again(two: FakeSites) -> None:
    two.sites["far"].memory.refusals.failed(None, time.time(), "invalid account")
    two.submit_bag(16)
    two.step("far", "near", "far")
    assert two.asked() == {"near": 8, "far": 0}


def test_tasks_of_a_shape_that_a_site_refuses_go_to_the_other(two: FakeSites) -> None:
    two.sites["far"].memory.refusals.failed(((TaskSize(), None), ""), time.time(), "no such memory")
    two.submit_bag(16)
    two.step("far", "near", "far")
    assert two.asked() == {"near": 8, "far": 0}


def test_requests_that_are_about_to_be_made_count_for_the_other_site(two: FakeSites) -> None:
    """Far decides while near is in the middle of the first of its two submits."""
    near_submits, far_has_submitted = threading.Event(), threading.Event()
    near, far = two.backends["near"], two.backends["far"]
    submit_near, submit_far, look = near.submit, far.submit, far.queue_state
    intended: list[int] = []

    def slow(order: PilotOrder) -> str:
        near_submits.set()
        assert far_has_submitted.wait(PATIENCE)
        return submit_near(order)

    def look_late() -> QueueState:
        assert near_submits.wait(PATIENCE)
        intended.append(len(two.sites["near"].memory.submitting))
        return look()

    def quick(order: PilotOrder) -> str:
        far_has_submitted.set()
        return submit_far(order)

    near.submit, far.submit, far.queue_state = slow, quick, look_late  # type: ignore[method-assign]
    two.submit_bag(1500)
    two.sites["far"].memory.seen = QueueState(now=time.time(), processors=8)

    async def both() -> None:
        await asyncio.gather(step(two.sites["near"]), step(two.sites["far"]))

    asyncio.run(both())
    rows = two.journal.connection.execute("SELECT site, reason FROM pilot").fetchall()
    tasks = [int(reason.split(" for ")[1].split(" of ")[0]) for _, reason in rows]
    assert intended == [1]
    assert {site for site, _ in rows} == {"near", "far"}
    assert sum(tasks) <= 1500


def test_waits_are_learned_and_recalled_from_the_journal(two: FakeSites) -> None:
    two.submit_bag(8)
    two.step("near", "far", "near")
    near = two.sites["near"]
    ((id, pilot),) = near.pilots.items() if near.pilots else two.sites["far"].pilots.items()
    site = near if near.pilots else two.sites["far"]
    assert site.memory.waits.worst(time.time()) is None
    pilot = site.memory.change(pilot, predicted_start=time.time() - 300)
    two.journal.connection.execute("UPDATE pilot SET predicted_start = ?", (pilot.predicted_start,))
    two.backends[site.name].say(pilot.tag, JobState.RUNNING)
    two.step(site.name)
    assert site.memory.waits.worst(time.time()) == pytest.approx(295, abs=60)
    recalled = recall_waits(two.journal, site.name)
    assert recalled.worst(time.time()) == pytest.approx(295, abs=60)
    assert id in site.pilots


def test_a_pilot_that_was_refused_teaches_nothing(two: FakeSites) -> None:
    crafted = CraftedRequest(Request(8, 60), 1000.0, 8, "because")
    id = two.journal.add_pilots("near", "tag.", [crafted], 900.0)[0]
    two.journal.update_pilot(
        id, state=PilotState.REFUSED, job=None, started=None, ended=2000.0, end_reason="no"
    )
    assert recall_waits(two.journal, "near").worst(2000.0) is None
    id = two.journal.add_pilots("near", "tag.", [msgspec.structs.replace(crafted)], 900.0)[0]
    two.journal.update_pilot(
        id, state=PilotState.WITHDRAWN, job="1", started=None, ended=2000.0, end_reason="late"
    )
    assert recall_waits(two.journal, "near").worst(2000.0) == 1000.0
