"""One site's loop against a scheduler that refuses, hangs, lies and forgets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaptor.daemon.step import cancel_all, step
from adaptor.decisions import pilot_rules
from adaptor.errors import JournalError
from adaptor.model import AttemptOutcome
from adaptor.protocol.messages import Hello
from adaptor.reports import JobState
from backends.base import PilotOrder, SchedulerError, SubmitRefused, SubmitUncertain
from tests.daemon.fake_site import FakeSite


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FakeSite]:
    site = FakeSite(tmp_path / "state")
    yield site
    site.journal.close()


def steps(site: FakeSite, count: int = 1) -> None:
    for _ in range(count):
        asyncio.run(step(site.state))


def test_without_tasks_nothing_is_asked_or_requested(site: FakeSite) -> None:
    site.backend.silent = SchedulerError("nobody should ask")
    steps(site)
    assert site.state.memory.problem == ""
    assert not site.backend.orders


def test_requests_are_written_down_before_they_are_submitted(site: FakeSite) -> None:
    def die(order: PilotOrder) -> str:
        raise RuntimeError("the daemon dies in the middle of the submit")

    site.backend.submit = die  # type: ignore[method-assign]
    site.submit_bag(2)
    with pytest.raises(RuntimeError):
        steps(site)
    site.restart()
    assert site.states() == ["submitting"]


def test_never_more_requests_than_allowed(site: FakeSite) -> None:
    site.submit_bag(500)
    steps(site, 4)
    assert site.states() == ["queued", "queued"]
    assert all(order.request.p <= 2 and order.request.tr <= 3600 for order in site.backend.orders)
    assert site.told("withheld")


def test_a_refused_request_is_told_and_not_repeated_at_once(site: FakeSite) -> None:
    site.backend.on_submit = SubmitRefused("invalid partition")
    site.submit_bag(500)
    steps(site, 3)
    assert site.states() == ["refused"]
    assert "invalid partition" in site.told("refused")[0]
    assert "next try at" in site.told("withheld")[-1]


def test_a_submit_that_hangs_counts_until_it_is_found(site: FakeSite) -> None:
    site.backend.on_submit = SubmitUncertain("sbatch was given up after 30 s")
    site.backend.takes_it_all_the_same = True
    site.submit_bag(1)
    steps(site)
    assert site.states() == ["submitting"]
    steps(site)
    assert site.states() == ["queued"], "found by its tag"
    assert len(site.backend.orders) == 1, "and not submitted twice"


def test_killed_in_the_middle_of_a_submit(site: FakeSite) -> None:
    site.backend.on_submit = SubmitUncertain("killed")
    site.backend.takes_it_all_the_same = True
    site.submit_bag(1)
    steps(site)
    site.backend.on_submit = None
    site.restart()
    steps(site, 2)
    assert site.states() == ["queued"]
    assert len(site.backend.orders) == 1


def test_a_scheduler_that_does_not_answer_changes_nothing(site: FakeSite) -> None:
    site.submit_bag(4)
    steps(site)
    before = site.pilots()
    site.backend.silent = SchedulerError("squeue: connection refused")
    steps(site, 20)
    assert site.pilots() == before
    assert site.state.memory.problem == "squeue: connection refused"
    assert site.told("problem") == ["squeue: connection refused"], "told once"
    site.backend.silent = None
    steps(site)
    assert site.state.memory.problem == ""


def test_a_request_that_can_never_start_is_withdrawn_and_told(site: FakeSite) -> None:
    site.submit_bag(1)
    steps(site)
    site.backend.say(site.backend.orders[0].tag, JobState.QUEUED, never="the walltime is over MaxTime")
    steps(site, 2)
    (first, *_) = site.pilots()
    assert first[1] == "withdrawn"
    assert "MaxTime" in first[2]


def test_a_job_that_was_given_up_and_turns_up_is_cancelled(site: FakeSite) -> None:
    site.submit_bag(1)
    steps(site)
    site.backend.say(site.state.tag_prefix + "999", JobState.RUNNING)
    steps(site)
    assert "job-999" in site.backend.cancelled


def test_jobs_of_another_site_on_the_same_cluster_are_left_alone(site: FakeSite) -> None:
    site.submit_bag(1)
    site.backend.say(site.state.tag_prefix.replace("here", "here-2") + "5", JobState.RUNNING)
    steps(site, 2)
    assert site.backend.cancelled == []


def test_pilots_that_run_no_task_do_not_follow_one_another_for_ever(site: FakeSite) -> None:
    site.submit_bag(1)
    for _ in range(12):
        steps(site)
        site.backend.say(site.backend.orders[-1].tag, JobState.COMPLETED)
    assert len(site.backend.orders) == 3
    assert "3 pilots in a row" in site.told("withheld")[-1]


def test_all_can_be_taken_back(site: FakeSite) -> None:
    site.submit_bag(500)
    steps(site)
    asyncio.run(cancel_all(site.state, "stopped"))
    assert sorted(site.backend.cancelled) == ["job-1", "job-2"]


def test_a_journal_that_cannot_be_written_stops_the_step_before_the_submit(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> int:
        raise JournalError("the disk is full")

    site.submit_bag(1)
    monkeypatch.setattr(site.journal, "add_pilot", full)
    with pytest.raises(JournalError):
        steps(site)
    assert not site.backend.orders


def test_a_pilot_that_has_lost_its_workers_is_cancelled_although_its_job_goes_on(
    site: FakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pilot_rules, "DESERTED", -1.0)
    site.submit_bag(2)
    steps(site)
    pilot = site.state.memory.requests[0]
    site.backend.say(pilot.tag, JobState.RUNNING)
    steps(site)
    assert site.backend.cancelled == [], "no worker has called yet: its start-up may take long"
    broker, now = site.state.core.broker, time.time()
    pilot.hello(now)
    hello = Hello(
        pilot=pilot.id, node="n1", pid=1, version="test", processors=2, memory=1 << 30, deadline=now + 600
    )
    broker.hello("w", hello, "here", now)
    steps(site)
    assert site.backend.cancelled == []
    broker.lost("w", AttemptOutcome.LOST, now, now)
    steps(site)
    assert site.backend.cancelled == [pilot.job]
    assert "none of its workers has answered" in site.told("withdrawn")[0]
