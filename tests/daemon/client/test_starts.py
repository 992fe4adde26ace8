"""The forecast of a start by the running daemon: of requests, of jobs, and what it refuses."""

from __future__ import annotations

import asyncio
import math
import time

import msgspec
import pytest

from adaptor import api
from adaptor.api import StartView
from adaptor.daemon.client.starts import read_starts
from adaptor.daemon.step import step
from adaptor.errors import UsageError
from adaptor.forecast.asked import AskedRequest
from adaptor.model import Bound, Estimate, PendingJob, RunningJob
from adaptor.reports import JobReport, JobState
from backends.base import SchedulerError
from backends.ceilings import Ceilings
from tests.daemon.fake_site import FakeSite

HOUR = AskedRequest(tr=3600.0, processors=4)


def asked(fake: FakeSite, request: AskedRequest | None = HOUR, **more: object) -> list[StartView]:
    question = api.GetStart(request=request, **more)  # type: ignore[arg-type]
    return asyncio.run(read_starts(fake.running, question))


def busy(site: FakeSite, seconds: float = 1800.0) -> float:
    end = time.time() + seconds
    site.backend.running = (RunningJob("17", 8, end),)
    site.backend.pending = (PendingJob("18", 8, 600.0, end + 50),)
    return end


def test_an_empty_queue_starts_it_now(site: FakeSite) -> None:
    (view,) = asked(site)
    assert view.start is not None
    assert view.start.value == view.at == view.observed == view.planned
    assert view.reason == "4 processors are free for 1h"
    assert (view.record, view.choices) == (None, [])


def test_a_full_one_when_the_jobs_end(site: FakeSite) -> None:
    end = busy(site)
    (view,) = asked(site)
    assert view.start is not None
    assert view.observed is not None
    assert view.observed <= view.start.low < view.start.value < view.planned  # type: ignore[operator]
    assert view.planned == pytest.approx(end + 650)
    assert "1 job that waits comes first" in view.reason
    assert site.state.memory.jobs.since("17") is not None, "what it sees, the daemon learns from"


def bag_with_a_pilot(site: FakeSite) -> tuple[int, str]:
    """A bag, and the job of its pilot."""
    bag = site.submit_bag(8)
    asyncio.run(step(site.state))
    pilot = next(iter(site.state.memory.pilots.values()))
    assert pilot.job is not None
    return bag, pilot.job


def test_a_pilot_of_ours_ends_with_its_work_and_not_at_its_limit(site: FakeSite) -> None:
    bag, job = bag_with_a_pilot(site)
    now = time.time()
    site.backend.running = (RunningJob(job, 8, now + 86_400), RunningJob("17", 1, now + 50_000))

    def planned() -> float:
        (view,) = asked(site)
        assert view.planned is not None
        return view.planned

    made = site.state.core.decided.forecasts[bag]
    for high, end in ((now + 3000, now + 3060), (math.inf, now + 86_400), (now + 1e9, now + 86_400)):
        ahead = msgspec.structs.replace(made.forecast, end=Estimate(now, now, high))
        forecasts = {bag: msgspec.structs.replace(made, forecast=ahead)}
        site.state.core.decided = msgspec.structs.replace(site.state.core.decided, forecasts=forecasts)
        assert planned() == pytest.approx(end, abs=30), "a minute of idle_timeout after the bag"
    site.state.core.decided = msgspec.structs.replace(site.state.core.decided, forecasts={})
    assert planned() == pytest.approx(now + 86_400, abs=30), "nothing is known of the bag"
    for each in list(site.state.core.broker.state.bags.values()):
        site.state.core.broker.cancel(each.id)
    assert planned() == pytest.approx(now + 60, abs=30), "no bag has work"


def test_a_pilot_of_ours_that_waits_lasts_no_longer_than_its_work(site: FakeSite) -> None:
    bag, job = bag_with_a_pilot(site)
    now = time.time()
    site.backend.running = (RunningJob("17", 8, now + 1000),)
    site.backend.pending = (PendingJob(job, 8, 86_400.0, now + 1000),)
    core = site.state.core
    made = core.decided.forecasts[bag]
    ahead = msgspec.structs.replace(made.forecast, end=Estimate(now, now, now + 3000))
    core.decided = msgspec.structs.replace(
        core.decided, forecasts={bag: msgspec.structs.replace(made, forecast=ahead)}
    )
    (view,) = asked(site)
    assert view.planned == pytest.approx(now + 3060, abs=30)
    (view,) = asked(site, None, job=job)
    assert (view.standing, view.planned) == ("waits", pytest.approx(now + 1000, abs=30))
    core.broker.cancel(bag)
    (view,) = asked(site)
    assert view.planned == pytest.approx(now + 1000, abs=30), "no bag has work for it"


def test_at_a_later_time(site: FakeSite) -> None:
    tomorrow = time.time() + 86_400
    (view,) = asked(site, at=tomorrow)
    assert view.at == tomorrow == view.planned
    assert "jobs that come until then" in view.remarks


def test_a_job_that_waits_and_what_the_scheduler_says_of_it(site: FakeSite) -> None:
    end = busy(site)
    (view,) = asked(site, None, job="18")
    assert (view.standing, view.processors, view.tr) == ("waits", 8, 600.0)
    assert view.planned == pytest.approx(end), "by our own plan"
    assert view.scheduler == pytest.approx(end + 50)
    assert "what job 17 (8 processors) has until" in view.reason


def test_a_job_that_runs_was_held_or_has_ended(site: FakeSite) -> None:
    busy(site)
    assert [view.standing for view in asked(site, None, job="17")] == ["running"]
    for state, never, standing, words in (
        (JobState.QUEUED, "", "held", "no place for it now (Dependency)"),
        (JobState.QUEUED, "its account is not valid", "held", "its account is not valid"),
        (JobState.COMPLETED, "", "ended", "Dependency"),
    ):
        report = JobReport(id="99", tag="x", state=state, reason="Dependency", never=never, start=5.0)
        site.backend.reports["x"] = report
        (view,) = asked(site, None, job="99")
        assert view.standing == standing
        assert words in view.reason


def test_the_record_is_of_the_jobs_that_were_seen_to_wait_and_start(site: FakeSite) -> None:
    end = time.time() + 600
    site.backend.running = (RunningJob("17", 8, end),)
    site.backend.pending = tuple(PendingJob(f"{number}", 1, 600.0) for number in range(5))
    (view,) = asked(site)
    assert view.record is None
    now = time.time()
    site.backend.pending = ()
    site.backend.running = tuple(RunningJob(f"{number}", 1, now + 600) for number in range(5))
    site.backend.limits = dict.fromkeys("01234", 600.0)
    (view,) = asked(site)
    assert view.record is not None
    assert (view.record.starts, view.record.own) == (5, False)


def test_an_unknown_job_is_an_error_that_says_what_is_hidden(site: FakeSite) -> None:
    with pytest.raises(UsageError, match=r"job 5 is not known: here: no job 5 waits or runs there$"):
        asked(site, None, job="5")
    site.backend.running = (RunningJob("hidden", 6, math.inf),)
    with pytest.raises(UsageError, match="as far as the scheduler shows"):
        asked(site, None, job="5")


def test_hidden_jobs_are_named_and_count_as_held(site: FakeSite) -> None:
    site.backend.running = (RunningJob("hidden", 6, math.inf),)
    (view,) = asked(site)
    assert (view.start, view.planned) == (None, None)
    assert view.reason == "jobs without a known end hold what it needs"
    assert view.remarks[0].startswith("the scheduler hides the jobs on 6 processors")


def test_what_no_place_can_hold_is_an_error_with_the_limit(site: FakeSite) -> None:
    with pytest.raises(UsageError, match="it needs 9 processors, and there are 8"):
        asked(site, AskedRequest(tr=60.0, processors=9))
    site.backend.most = Ceilings(
        requests=Bound(9, "x"), processors=Bound(8, "y"), seconds=Bound(1800, "MaxTime"), whole=8, node=8
    )
    with pytest.raises(UsageError, match=r"it asks for 1h, and 30m is the most \(MaxTime\)"):
        asked(site)


def test_wrong_questions(site: FakeSite) -> None:
    for wrong, words in (
        ({"site": "far"}, "there is no site 'far'"),
        ({"partition": "x"}, "no partition 'x'"),
        ({"job": "4"}, "for a request, for a job, or for the map"),
        ({"request": None}, "for a request, for a job, or for the map"),
        ({"request": AskedRequest(tr=0.0)}, "at least one"),
    ):
        with pytest.raises(UsageError, match=words):
            asked(site, **wrong)  # type: ignore[arg-type]


def test_a_scheduler_that_does_not_answer_is_named(site: FakeSite) -> None:
    site.backend.silent = SchedulerError("squeue hangs")
    (view,) = asked(site)
    assert (view.problem, view.start) == ("squeue hangs", None)
