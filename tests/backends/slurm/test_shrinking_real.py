"""Requests with a least time (`--time-min`) in front of a planned job, on a real Slurm of any release."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from adaptor.model import Request
from adaptor.reports import JobReport, JobState
from backends.base import ChangeRefused, PilotOrder
from backends.slurm.backend import SlurmBackend
from tests.backends.slurm.test_backend_real import SITE, STAY, Pilots, local_job, reaches, report_of, until
from tests.clusters.slurm import ThrowawaySlurm

pytestmark = pytest.mark.slurm

MINUTE = 60


@pytest.fixture
def backend(slurm: ThrowawaySlurm) -> SlurmBackend:
    """It has seen the queue: half of the nodes are free for 15 minutes, then all are planned for a job."""
    backend = SlurmBackend(SITE)
    running = local_job(slurm, "-N2", "--exclusive", "-t", "15")
    reaches(backend, running, JobState.RUNNING)
    planned = local_job(slurm, "-N4", "--exclusive", "-t", "30")
    until(lambda: report_of(backend, planned).planned_start is not None, "a plan")
    backend.queue_state()
    return backend


@pytest.fixture
def pilots(tmp_path: Path) -> Pilots:
    return Pilots(tmp_path)


def asking(order: PilotOrder, p: int, tr: int, least: int | None) -> PilotOrder:
    return msgspec.structs.replace(order, request=Request(p, tr, least))


def hole_of(backend: SlurmBackend, started: JobReport) -> float:
    """Seconds from its start to the end of the job beside it."""
    ends = [job.end for job in backend.queue_state().running if job.id != started.id]
    assert started.start is not None
    return ends[0] - started.start


def test_a_request_with_a_least_time_gets_the_hole_where_the_release_is_said_to_give_it(
    backend: SlurmBackend, pilots: Pilots
) -> None:
    say = f'echo "$ADAPTOR_PILOT_END" >"$ADAPTOR_DIRECTORY/end-$ADAPTOR_NODE"; {STAY}'
    id = backend.submit(asking(pilots.order("hole", 8, 3600, say), 8, 3600, 2 * MINUTE))
    report = reaches(backend, id, JobState.RUNNING)
    hole = hole_of(backend, report)
    assert (report.granted, report.limit) == (report.granted, report.granted)
    assert report.granted is not None
    if backend.shrink_margin is None:
        assert report.granted == 2 * MINUTE, "this release gives the least time alone: see shrink_margin"
        return
    assert hole - 2 * MINUTE < report.granted <= hole, "but for whole minutes and bf_resolution"
    until(lambda: len(pilots.files("hole", "up-*")) == 2, "both workers")
    assert report.start is not None
    ends = {float(text) for text in pilots.files("hole", "end-*").values()}
    assert ends == {report.start + report.granted}, "the workers are told what the job got"


def test_a_queued_request_becomes_one_that_may_shrink_and_stays_as_it_started(
    backend: SlurmBackend, pilots: Pilots
) -> None:
    if backend.shrink_margin is None:
        pytest.skip("this release gives requests with a least time no whole hole")
    order = pilots.order("changed", 8, 3600)
    id = backend.submit(order)
    until(lambda: report_of(backend, id).reason in ("Resources", "Priority"), "it has been looked at")
    backend.reshape(id, asking(order, 8, 3600, 20 * MINUTE))
    backend.reshape(id, asking(order, 8, 10 * MINUTE + 3000, None))
    assert report_of(backend, id).limit == 3600
    backend.reshape(id, asking(order, 8, 3600, 3 * MINUTE))
    report = reaches(backend, id, JobState.RUNNING)
    assert report.granted is not None
    assert hole_of(backend, report) - 2 * MINUTE < report.granted
    with pytest.raises(ChangeRefused):
        backend.reshape(id, asking(order, 8, 2 * MINUTE, MINUTE))
    assert report_of(backend, id).granted == report.granted, "what has started keeps what it got"


def test_one_that_starts_in_between_leaves_less_and_a_least_time_beyond_that_waits(
    backend: SlurmBackend, slurm: ThrowawaySlurm, pilots: Pilots
) -> None:
    """The planner saw 15 minutes; meanwhile a job was planned that leaves 8."""
    if backend.shrink_margin is None:
        pytest.skip("this release gives requests with a least time no whole hole")
    start = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 8 * MINUTE))
    held = [f"StartTime={start}", "Duration=60", "Nodes=ALL", "Users=root", "Flags=IGNORE_JOBS"]
    slurm.run(["scontrol", "create", "reservation", "ReservationName=between", *held])
    try:
        waits = backend.submit(asking(pilots.order("waits", 4, 900), 4, 14 * MINUTE, 10 * MINUTE))
        takes = backend.submit(asking(pilots.order("takes", 4, 900), 4, 14 * MINUTE, 2 * MINUTE))
        report = reaches(backend, takes, JobState.RUNNING)
        assert report.granted is not None
        assert 5 * MINUTE <= report.granted <= 8 * MINUTE
        assert report_of(backend, waits).state is JobState.QUEUED
    finally:
        backend.cancel([waits, takes])
        slurm.run(["scontrol", "delete", "ReservationName=between"])
