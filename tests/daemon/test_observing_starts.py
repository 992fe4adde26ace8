"""A site without bags is looked at rarely, and teaches how long jobs wait there."""

from __future__ import annotations

import asyncio

import pytest

from adaptor import api
from adaptor.config.schema import SiteConfig
from adaptor.daemon.observing import (
    LOOKS_FOR_STARTS,
    RECORDS_REACH,
    learn_starts,
    learns_starts,
    read_newer_history,
)
from adaptor.journal.forecast_rows import seen_starts
from adaptor.model import EndedJob, PendingJob, QueueState, RunningJob
from backends.base import SchedulerError
from tests.daemon.fake_site import FakeSite


def hour_of(monkeypatch: pytest.MonkeyPatch, site: FakeSite, *, others_look: float = 0.0) -> list[float]:
    """Seconds of an hour at which the scheduler was asked by nothing but these looks.

    `others_look`: seconds between two looks of steps or questions; 0: there are none.
    """
    asked = list[float]()

    async def scene() -> None:
        for minute in range(61):
            clock = minute * 60.0
            monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda now=clock: now)
            if others_look and minute and clock % others_look == 0:
                await site.state.look()
            before = site.state.queue_asked
            await learn_starts(site.state)
            if minute and site.state.queue_asked != before:
                asked.append(clock)

    asyncio.run(scene())
    return asked


def test_four_looks_an_hour_the_first_after_a_pause(monkeypatch: pytest.MonkeyPatch, site: FakeSite) -> None:
    assert hour_of(monkeypatch, site) == [900.0, 1800.0, 2700.0, 3600.0]


def test_none_where_steps_or_questions_look(monkeypatch: pytest.MonkeyPatch, site: FakeSite) -> None:
    assert hour_of(monkeypatch, site, others_look=600.0) == []


def test_a_scheduler_that_does_not_answer_is_asked_no_more_often(
    monkeypatch: pytest.MonkeyPatch, site: FakeSite
) -> None:
    site.backend.silent = SchedulerError("squeue: no answer")
    assert len(hour_of(monkeypatch, site)) == 4


async def look_at(site: FakeSite) -> None:
    site.state.queue_asked = asyncio.get_running_loop().time() - LOOKS_FOR_STARTS
    await learn_starts(site.state)


def test_a_look_learns_waits_forecasts_a_job_and_writes_both_down(site: FakeSite) -> None:
    def seen() -> api.SiteStarts:
        (found,) = site.journal.read(seen_starts)
        return found

    def at(now: float, waiting: str, **running: float) -> None:
        """Look when these jobs wait, and these run since then, of 100,000 s each."""
        site.backend.pending = tuple(PendingJob(id, 8, 100_000.0) for id in waiting)
        site.backend.running = tuple(RunningJob(id, 8, begin + 100_000.0) for id, begin in running.items())
        site.backend.limits = dict.fromkeys(running, 100_000.0)
        site.backend.clock = lambda: now
        asyncio.run(look_at(site))

    at(0.0, "", r=-50.0)
    at(900.0, "a", r=-50.0)
    at(1800.0, "", a=1000.0)
    kept = seen().seen
    assert [wait.wait for wait in kept.waits] == [550.0]
    assert [start.came for start in kept.judged] == [100.0]
    assert not site.backend.orders
    site.restart()
    assert site.state.starts.starts == 1


def test_records_are_read_again_after_two_days_in_which_no_step_looked(site: FakeSite) -> None:
    site.backend.ended = [EndedJob("ada", 100.0, ran) for ran in (10.0, 20.0)]
    jobs, now = site.state.memory.jobs, site.state.core.now()

    def learned() -> int:
        asyncio.run(read_newer_history(site.state))
        return len(jobs)

    assert learned() == 0, "the site has just begun"
    site.state.records_read = now - RECORDS_REACH
    assert learned() == 2
    assert learned() == 2, "they were just read"
    site.state.records_read = now - RECORDS_REACH
    jobs.looked(QueueState(now=now - 60.0, processors=8))
    assert learned() == 2, "a step has looked"
    site.restart()
    assert len(site.state.memory.jobs) == 2


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (SiteConfig(backend="slurm"), True),
        (SiteConfig(backend="pbs"), True),
        (SiteConfig(backend="slurm", read_history=False), False),
        (SiteConfig(backend="local"), False),
    ],
)
def test_which_sites_are_followed(config: SiteConfig, expected: bool) -> None:
    assert learns_starts(config) is expected
