"""Requests with a least time (shrink-to-fit) in front of a planned job, on a real OpenPBS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from adaptor.config.schema import SiteConfig
from adaptor.model import Request
from adaptor.reports import JobReport, JobState
from backends.base import ChangeRefused, PilotOrder
from backends.pbs.backend import PbsBackend
from tests.backends.orders import runnable
from tests.backends.pbs.test_nodes_live import Site
from tests.clusters.openpbs import ThrowawayOpenPbs
from tests.living import until

pytestmark = pytest.mark.pbs

MINUTE = 60
BOUNDS = {"min": 5 * MINUTE, "max": 9 * MINUTE}
"""Of a queue's walltimes."""


@pytest.fixture
def site(openpbs: ThrowawayOpenPbs, tmp_path: Path) -> Iterator[Site]:
    """Half of the cluster is free for 10 minutes, then a job is planned on all of it."""
    site = Site(openpbs, tmp_path)
    with openpbs.plans():
        site.runs(site.other("2:ncpus=4", "scatter", 10 * MINUTE))
        site.other("4:ncpus=4", "scatter", 30 * MINUTE)
        until(lambda: any(job.planned_start for job in site.backend.queue_state().pending), "a plan")
        yield site


def order(site: Site, tag: str, request: Request, worker: str = "sleep 600") -> PilotOrder:
    return runnable(site.folder, tag, worker, request=request)


def report_of(site: Site, id: str) -> JobReport:
    (report,) = site.backend.jobs([id], "none")
    return report


def left_over(site: Site, id: str) -> float:
    """Seconds from the end of a running request to that of the job beside it."""
    report = report_of(site, id)
    beside = max(job.end for job in site.backend.queue_state().running if job.id != id)
    assert report.start is not None
    assert report.granted is not None
    return beside - report.start - report.granted


def test_a_request_with_a_least_time_gets_the_hole_to_the_second(site: Site) -> None:
    say = 'echo "$ADAPTOR_PILOT_END" >"$ADAPTOR_DIRECTORY/end-$ADAPTOR_NODE"; sleep 600'
    id = site.backend.submit(order(site, "hole", Request(8, 3600, 2 * MINUTE), say))
    site.reaches(id, JobState.RUNNING)
    assert abs(left_over(site, id)) <= 2
    report = report_of(site, id)
    assert report.limit is not None
    until(lambda: len(list((site.folder / "hole").glob("end-*"))) == 2, "both workers")
    assert report.start is not None
    assert report.granted is not None
    for told in (site.folder / "hole").glob("end-*"):
        until(lambda told=told: told.read_text().strip() != "", "its end")
        assert abs(float(told.read_text()) - report.start - report.granted) <= 5, "the workers are told"


def test_a_queued_request_becomes_one_that_may_shrink_and_stays_as_it_started(site: Site) -> None:
    plain = order(site, "changed", Request(8, 3600))
    id = site.backend.submit(plain)
    until(lambda: bool(report_of(site, id).reason), "it has been looked at")
    site.backend.reshape(id, msgspec.structs.replace(plain, request=Request(8, 3600, 20 * MINUTE)))
    site.backend.reshape(id, msgspec.structs.replace(plain, request=Request(8, 3000)))
    report = report_of(site, id)
    assert (report.state, report.limit) == (JobState.QUEUED, 3000)
    site.backend.reshape(id, msgspec.structs.replace(plain, request=Request(8, 3600, 3 * MINUTE)))
    site.reaches(id, JobState.RUNNING)
    assert abs(left_over(site, id)) <= 2
    got = report_of(site, id).granted
    with pytest.raises(ChangeRefused):
        site.backend.reshape(id, msgspec.structs.replace(plain, request=Request(8, 2 * MINUTE, MINUTE)))
    assert report_of(site, id).granted == got, "what has started keeps what it got"


def test_a_queue_with_bounds_takes_a_request_with_a_least_time(site: Site) -> None:
    """The server gives jobs an hour that name no walltime, which the queue does not take."""
    site.cluster.qmgr(*(f"set queue scavenger resources_{name}.walltime={s}" for name, s in BOUNDS.items()))
    try:
        named = SiteConfig(backend="pbs", partition="scavenger")
        backend = PbsBackend(named)
        id = backend.submit(order(site, "bounds", Request(4, BOUNDS["max"], MINUTE)))
        site.reaches(id, JobState.RUNNING)
        assert report_of(site, id).granted == BOUNDS["max"]
    finally:
        site.cluster.qmgr(*(f"unset queue scavenger resources_{name}.walltime" for name in BOUNDS))


def test_one_that_starts_in_between_leaves_less_and_a_least_time_beyond_that_waits(site: Site) -> None:
    """The planner saw 8 processors; meanwhile another job took 4 of them."""
    site.runs(site.other("1:ncpus=4", "free", 9 * MINUTE))
    wide = site.backend.submit(order(site, "wide", Request(8, 9 * MINUTE, 2 * MINUTE)))
    until(lambda: bool(report_of(site, wide).reason), "it has been looked at")
    takes = site.backend.submit(order(site, "takes", Request(4, 3600, 2 * MINUTE)))
    site.reaches(takes, JobState.RUNNING)
    assert abs(left_over(site, takes)) <= 2
    assert report_of(site, wide).state is JobState.QUEUED
