"""`daemon submit`: what it refuses, and what it says of the jobs."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from adaptor.cli.operating.daemon_submit import job_lines
from adaptor.daemon.jobs.record import DaemonJobs, read_jobs, write_jobs
from adaptor.errors import NoDaemonError, UsageError
from adaptor.protocol.state_directory import state_directory
from adaptor.reports import JobReport, JobState
from tests.cli.invoking import Cli

JOBS = DaemonJobs(series="ab", site="hpc", walltime=3600, memory=2**29, submitted=2, next_job="12")


def report(number: int, state: JobState, **others: object) -> JobReport:
    return JobReport(id=str(10 + number), tag=JOBS.tag(number), state=state, **others)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sites: {here: {backend: local}}", "site here .local. runs tasks on the daemon"),
        ("sites: {hpc: {backend: slurm}}\ndaemon: {host: login1}", "daemon.host names login1"),
        ("sites: {far: {backend: slurm, ssh: {host: cluster}}}", "reached by ssh.*on cluster"),
        (
            "sites: {hpc: {backend: gridengine}}",
            "no jobs that start when another one ends",
        ),
        (
            "sites: {a: {backend: slurm, partitions: {x: {}, y: {}}}}",
            "site a has no partition z; it has x, y",
        ),
    ],
)
def test_configurations_with_which_no_job_can_run_the_daemon(
    cli: Cli, tmp_path: Path, text: str, told: str
) -> None:
    config = tmp_path / "site.yaml"
    config.write_text(text)
    outcome = cli("--config", str(config), "daemon", "submit", "--partition", "z")
    assert outcome.code == UsageError.exit_code
    assert re.search(told, outcome.err), outcome.err
    assert read_jobs(state_directory()) is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-t", "1s"), "--time 1s is too short for a daemon and its hand-over: write 2m or more"),
        (("--mem", "1K"), "--mem 1K is too little for a daemon: write 128M or more"),
    ],
)
def test_a_job_too_small_for_a_daemon_is_refused(
    cli: Cli, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    config = tmp_path / "site.yaml"
    config.write_text("sites: {hpc: {backend: slurm, limits: {max_tr: 1h}}}")
    outcome = cli("--config", str(config), "daemon", "submit", *words)
    assert outcome.code == UsageError.exit_code
    assert told in outcome.err
    assert read_jobs(state_directory()) is None


def test_no_configuration_is_no_place_for_a_job(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nowhere")
    assert "adaptor site init" in cli("daemon", "submit").err


def test_while_a_job_runs_the_daemon_no_other_one_is_started(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_jobs(state_directory(), JOBS)
    monkeypatch.setattr("adaptor.client.asking.PATIENCE", 0.0)
    refused = cli("daemon", "start")
    assert refused.code == NoDaemonError.exit_code
    assert "no daemon runs now: job 12 at hpc runs the next one when the scheduler starts it" in refused.err
    assert cli("daemon", "run").code == UsageError.exit_code
    assert cli("daemon", "install", "--show").code == UsageError.exit_code
    assert "job 12 at hpc runs the next one" in cli("status", "--daemon").err


def test_jobs_that_wait_or_run_are_named_with_the_reason() -> None:
    current = msgspec.structs.replace(JOBS, current=1, host="n3")
    found = {
        1: report(1, JobState.RUNNING, start=0.0),
        2: report(2, JobState.QUEUED, reason="Dependency"),
    }
    first, second = job_lines(current, found)
    assert first.startswith("job 11 at hpc runs the daemon on n3 until ")
    assert second == "job 12 at hpc waits: Dependency"


def test_a_job_that_ended_before_its_daemon_ran_is_told_with_its_last_words(cli: Cli) -> None:
    found = {2: report(2, JobState.FAILED)}
    (line,) = job_lines(JOBS, found)
    assert "job 12 at hpc has ended (failed) before its daemon ran" in line
    assert "its node may not have this folder" in line
    assert "adaptor daemon submit submits the next one" in line
    folder = JOBS.folder(state_directory(), 2)
    folder.mkdir(parents=True)
    (folder / "slurm-12.out").write_text("one\n/opt/python: not found\n")
    (line,) = job_lines(JOBS, found)
    assert "before its daemon ran: /opt/python: not found" in line


def test_with_no_job_left_the_way_on_is_said() -> None:
    (line,) = job_lines(JOBS, {})
    assert line.startswith("no job is in the queue; adaptor daemon submit submits the next one")
