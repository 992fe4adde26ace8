"""A PBS site from its configuration to the pilots that the daemon plans with."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest

from adaptor.config.loading import parse_config
from adaptor.config.schema import SiteConfig
from adaptor.daemon.sites import limits_of, make_backend
from adaptor.decisions.pilots import Pilot, observe
from adaptor.model import Limits, PilotState, Request
from adaptor.reports import JobReport
from backends.base import PilotOrder
from backends.observed import backend as observed
from backends.observed.state import SecondLook
from backends.pbs.backend import PbsBackend
from backends.pbs.openpbs.jobs import own_job
from backends.pbs.openpbs.server import job_state
from backends.pbs.state.queue import report_of
from tests.backends.pbs.openpbs_recordings import job_record
from tests.backends.pbs.test_backend import QSTAT, Fake, answering, backend, order

SITE = "sites:\n  hpc:\n    backend: pbs\n    partition: workq\n"


def report(recording: str) -> JobReport:
    job = own_job(job_record(recording))
    return report_of(job, job_state(job))


def test_a_pbs_site_has_a_pbs_backend(tmp_path: Path) -> None:
    site = parse_config(SITE, "c.yaml").sites["hpc"]
    assert isinstance(make_backend("hpc", site, tmp_path), PbsBackend)


def asking(processors: int) -> Pilot:
    request = Request(processors, 36_000)
    return Pilot(id=1, state=PilotState.SUBMITTING, request=request, granted=request.tr)


def test_a_pilot_whose_walltime_was_cut_is_planned_to_end_earlier() -> None:
    pilot = asking(1)
    assert pilot.ends is None
    found = report("03b-job-stf-running")
    assert found.start is not None
    pilot = observe(pilot, found, found.start + 1)
    assert pilot.ends == found.start + 238


def test_a_pilot_that_waits_has_what_it_asked_for() -> None:
    pilot = observe(asking(2), report("02-job-stf"), 1.0)
    assert (pilot.ends, pilot.granted) == (None, 36_000)


__all__ = ["answering", "order"]
NOW = 1_795_000_000.0
CONFIG = """
sites:
  hpc:
    backend: pbs
    partitions:
      limited: {account: physics}
      day: {partition: workq, limits: {max_tr: 20h}}
"""


@pytest.fixture
def site() -> SiteConfig:
    return parse_config(CONFIG, "c.yaml").sites["hpc"]


@pytest.mark.usefixtures("answering")
def test_limits_are_those_of_each_queue(site: SiteConfig, tmp_path: Path) -> None:
    found = limits_of(site, make_backend("hpc", site, tmp_path))
    limited = Limits(max_pending_requests=1, max_pilots=1, max_proc=8, max_tr=3600)
    assert found.partitions["limited"] == limited
    assert found.partitions["day"].max_tr == 20 * 3600
    assert (found.max_pending_requests, found.max_proc, found.max_tr) == (4, 16, 20 * 3600)


@pytest.mark.usefixtures("answering")
def test_one_reading_serves_all_queues(
    site: SiteConfig, fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of the recorded jobs some are hidden, for which every queue would look a second time once.
    monkeypatch.setattr(SecondLook, "state", lambda _, look: look())
    monkeypatch.setattr(observed, "FRESH", math.inf)
    monkeypatch.setattr("backends.pbs.reading.time.time", lambda: NOW)
    fake("qstat", f'echo "$*" >>asked\n{QSTAT}')
    queues = make_backend("hpc", site, tmp_path).queue_state().partitions
    asked = Path("asked").read_text().splitlines()
    assert asked.count("-f -F dsv") == asked.count("-Q -f") == asked.count("-B -f") == 1
    for name, partition in (("limited", "limited"), ("day", "workq")):
        assert queues[name] == backend(partition=partition).queue_state()


@pytest.mark.usefixtures("answering")
def test_each_order_goes_into_its_queue(site: SiteConfig, order: PilotOrder, tmp_path: Path) -> None:
    whole = make_backend("hpc", site, tmp_path)
    order = msgspec.structs.replace(order, request=Request(2, 600))
    for name, options in (("limited", ["-q", "limited", "-A", "physics"]), ("day", ["-q", "workq", "-l"])):
        whole.submit(msgspec.structs.replace(order, partition=name))
        told = Path("qsub.arguments").read_text().splitlines()
        at = told.index("-q")
        assert told[at : at + len(options)] == options
