"""Workflows of Snakemake's own, and what this plugin adds: bags by rule, words for failures, the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from snakemake.common.tests import TestWorkflowsLocalStorageBase
from snakemake_executor_plugin_adaptor import ExecutorSettings

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, until


class Workflows(TestWorkflowsLocalStorageBase):
    def get_executor(self) -> str:
        return "adaptor"

    def get_executor_settings(self) -> ExecutorSettings:
        return ExecutorSettings()


class TestHere(Workflows):
    __test__ = True

    @pytest.fixture(autouse=True)
    def _daemon(self, here: Path) -> None:
        """On this machine."""


@pytest.mark.slurm
class TestSlurm(Workflows):
    __test__ = True

    @pytest.fixture(autouse=True)
    def _daemon(self, slurm: ThrowawaySlurm, lab: Lab) -> None:
        lab.configure("sites: {slurm: {backend: slurm, initial_tr: 2m, limits: {max_proc: 4, max_tr: 5m}}}")
        lab.run("daemon", "start")


def snakemake(*arguments: str, program: tuple[str, ...] = ("-m", "snakemake")) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *program, "--executor", "adaptor", "--jobs", "8", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def test_each_rule_and_its_resources_are_a_bag(here: Path, lab: Lab) -> None:
    (here / "Snakefile").write_text(
        """
rule all:
    input: expand("{n}.one", n=range(3)), "two"
rule one:
    output: "{n}.one"
    threads: 2
    resources: mem_mb=64, runtime=3
    shell: "echo {threads} $MARK > {output}"
rule two:
    output: "two"
    shell: "touch {output}"
"""
    )
    os.environ["MARK"] = "kept"
    run = snakemake("--adaptor-name", "flow")
    assert run.communicate()[0] is not None
    assert run.returncode == 0
    assert (here / "0.one").read_text() == "2 kept\n"
    bags = {bag["name"]: bag for bag in lab.ask("status")["bags"]}
    assert sorted(bags) == ["flow: one", "flow: two"]
    assert (bags["flow: one"]["done"], bags["flow: one"]["cpus"], bags["flow: one"]["state"]) == (
        3,
        2,
        "done",
    )
    assert list((here / ".snakemake" / "adaptor").glob("*/*")) == [], (
        "what jobs that succeeded printed is removed"
    )


def test_a_failure_is_told_with_its_output_and_a_job_that_never_fits_with_the_reason(here: Path) -> None:
    (here / "Snakefile").write_text(
        """
rule all:
    input: "bad", "wide"
rule bad:
    output: "bad"
    shell: "echo a word of reason >&2; exit 3"
rule wide:
    output: "wide"
    threads: 400
    shell: "touch {output}"
"""
    )
    run = snakemake("--keep-going", "--cores", "400", "--show-failed-logs")
    said = run.communicate()[0]
    assert run.returncode == 1
    assert "exit code 1" in said  # that of the Snakemake which ran the job
    assert "a word of reason" in said
    assert "the adaptor refuses the job" in said


def test_bags_stay_open_as_long_as_snakemake_lives_and_close_after_it(here: Path, lab: Lab) -> None:
    """Whatever time passes between two jobs of a rule; and after a kill that Snakemake does not see."""
    (here / "Snakefile").write_text(
        """
rule one:
    input: lambda wildcards: "between" if wildcards.n == "2" else []
    output: "one.{n}"
    shell: "touch {output}"
rule between:
    input: "one.1"
    output: "between"
    shell: "sleep 4; touch {output}"
rule slow:
    input: "one.2"
    output: "slow"
    shell: "touch started; sleep 600"
"""
    )
    program = (
        "import sys, snakemake_executor_plugin_adaptor.executor as plugin; plugin.GONE = 0.1;"
        "from snakemake.cli import main; main(sys.argv[1:])"
    )
    run = snakemake("slow", program=("-c", program))
    until((here / "started").exists, "the last job runs, after two of the same rule")
    run.kill()
    run.communicate()
    lab.run("cancel", "--task", "0", "all")

    def states() -> set[str]:
        return {bag["state"] for bag in lab.ask("status", "all")["bags"]}

    until(lambda: not states() & {"open", "running"}, "all bags close")


def test_an_interrupt_cancels_the_jobs_and_closes_the_bags(here: Path, lab: Lab) -> None:
    (here / "Snakefile").write_text(
        """
rule slow:
    output: "slow"
    shell: "touch started; sleep 600; touch {output}"
"""
    )
    run = snakemake("slow")
    until((here / "started").exists, "the job runs")
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=60)
    state = until(
        lambda: lab.status()["state"] not in ("open", "running") and lab.status()["state"], "the end"
    )
    assert state == "cancelled"
