"""A PBS site from its configuration to the pilots that the daemon plans with."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptor.config.loading import parse_config
from adaptor.daemon.sites import make_backend
from adaptor.decisions.pilots import Pilot, observe
from adaptor.errors import ConfigError
from adaptor.model import PilotState, Request
from adaptor.reports import JobReport
from backends.pbs.backend import PbsBackend
from backends.pbs.openpbs.dialect import job_state
from backends.pbs.openpbs.jobs import own_job
from backends.pbs.state.queue import report_of
from tests.backends.pbs.openpbs_recordings import job_record

SITE = "sites:\n  hpc:\n    backend: pbs\n    partition: workq\n"


def report(recording: str) -> JobReport:
    job = own_job(job_record(recording))
    return report_of(job, job_state(job))


def test_a_pbs_site_has_a_pbs_backend(tmp_path: Path) -> None:
    site = parse_config(f"{SITE}    dialect: openpbs\n", "c.yaml").sites["hpc"]
    assert site.dialect == "openpbs"
    assert isinstance(make_backend("hpc", site, tmp_path), PbsBackend)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dialect: slurm", r"c\.yaml:5: sites\.hpc\.dialect"),
    ],
)
def test_what_makes_no_sense_is_told_with_its_line(line: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_config(f"{SITE}    {line}\n", "c.yaml")


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
