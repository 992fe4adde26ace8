"""Several processes at one local site at once."""

from __future__ import annotations

import subprocess
import sys

from adaptor.reports import JobReport, JobState
from tests.backends.local.local_site import LocalSite, wait_until

SUBMITTER = """
import sys
from pathlib import Path
from adaptor.config.schema import SiteConfig
from adaptor.model import Request
from adaptor.resources import TaskSize
from adaptor.units import Duration
from backends.base import PilotOrder
from backends.local.backend import LocalBackend

name, folder = sys.argv[1], Path(sys.argv[2])
patient = SiteConfig(backend="local", processors=4, command_timeout=Duration(600))
backend = LocalBackend(patient, folder / "site")
for number in range(6):
    directory = folder / f"{name}-{number}"
    directory.mkdir(mode=0o700)
    backend.submit(PilotOrder(
        tag=directory.name, request=Request(1 + number % 3, 600), task=TaskSize(),
        directory=directory, worker=("/bin/sh", "-c", 'echo ran >> "$ADAPTOR_DIRECTORY/ran"; sleep 0.1'),
        environment={"ADAPTOR_DIRECTORY": str(directory)},
    ))
    backend.queue_state()
"""


def most_in_use(reports: list[JobReport], held: dict[str, int]) -> int:
    """The most processors that were ever in use at once."""
    changes = sorted(
        change
        for report in reports
        for change in ((report.end or 0.0, -held[report.tag]), (report.start or 0.0, held[report.tag]))
    )
    in_use = most = 0
    for _, change in changes:
        in_use += change
        most = max(most, in_use)
    return most


def test_two_processes_share_a_site(site: LocalSite) -> None:
    names = ("one", "two")
    commands = [[sys.executable, "-c", SUBMITTER, name, str(site.folder)] for name in names]
    processes = [subprocess.Popen(command) for command in commands]
    assert [process.wait(120) for process in processes] == [0, 0]
    wait_until(lambda: all(report.end for report in site.backend.jobs([], "")), "the end of all jobs")
    reports = site.backend.jobs([], "")
    tags = {f"{name}-{number}": 1 + number % 3 for name in names for number in range(6)}
    assert sorted(report.tag for report in reports) == sorted(tags)
    assert {report.state for report in reports} == {JobState.COMPLETED}
    assert all((site.folder / tag / "ran").read_text() == "ran\n" for tag in tags)
    assert most_in_use(reports, tags) <= 4
