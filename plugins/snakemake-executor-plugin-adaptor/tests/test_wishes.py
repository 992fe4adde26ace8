"""Two open wishes of users of Slurm's plugin for Snakemake, with their workflows rewritten small.

snakemake-executor-plugin-slurm, issues 458 (thousands of jobs of seconds in few submissions, whose requests
do not grow with the jobs) and 469 (a group uses the processors that it gets).
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab

SAMPLES = 12
SHORT_AND_LONG = f"""
SAMPLES = range({SAMPLES})
rule all:
    input: expand("mapped/{{sample}}.bam", sample=SAMPLES)
rule trim_primers:
    output: "trimmed/{{sample}}.fastq"
    resources: mem_mb=200, runtime=30
    shell: "touch {{output}}"
rule map_reads:
    input: expand("trimmed/{{sample}}.fastq", sample=SAMPLES)
    output: expand("mapped/{{sample}}.bam", sample=SAMPLES)
    threads: 2
    resources: mem_mb=400, runtime=60
    shell: "touch {{output}}"
"""
SIZE = 4
GROUP = f"""
rule all:
    input: expand("{{id}}.done", id=range({SIZE}))
rule work:
    output: "{{id}}.done"
    threads: 1
    shell:
        "touch {{wildcards.id}}.started;"
        " for turn in $(seq 600); do"
        " [ $(ls *.started | wc -l) -ge {SIZE} ] && touch {{output}} && exit 0; sleep 0.1; done;"
        " echo only $(ls *.started | wc -l) run together; exit 1"
"""


def snakemake(folder: Path, workflow: str, *arguments: str) -> None:
    (folder / "Snakefile").write_text(workflow)
    words = [sys.executable, "-m", "snakemake", "--executor", "adaptor", "--jobs", "200", *arguments]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.slurm
def test_many_short_jobs_are_few_submissions_of_the_size_of_one_job(slurm: ThrowawaySlurm, lab: Lab) -> None:
    """No `group:` is written, and `--cores 1` is not needed: the longer rule has its own size."""
    lab.configure(
        "sites: {slurm: {backend: slurm, partition: batch, idle_timeout: 30,"
        " limits: {max_proc: 4, max_pending_requests: 1, max_tr: 2h}}}"
    )
    lab.run("daemon", "start")
    before = slurm.last_job()
    snakemake(lab.work, SHORT_AND_LONG)
    submissions = slurm.last_job() - before
    assert submissions <= SAMPLES // 3
    bags = {bag["name"].partition(": ")[2]: bag for bag in lab.ask("status")["bags"]}
    assert {name: (bag["cpus"], bag["done"]) for name, bag in bags.items()} == {
        "trim_primers": (1, SAMPLES),
        "map_reads": (2, 1),
    }
    assert max(pilot["p"] for pilot in lab.pilots()) <= 4, "not one processor for each job"
    assert max(pilot["tr"] for pilot in lab.pilots()) <= 7200, "not the sum of their runtimes"


@pytest.mark.slurm
def test_the_jobs_of_a_group_run_at_the_same_time(slurm: ThrowawaySlurm, lab: Lab) -> None:
    """Each waits for all others."""
    lab.configure("sites: {slurm: {backend: slurm, partition: batch, limits: {max_proc: 4, max_tr: 1h}}}")
    lab.run("daemon", "start")
    snakemake(lab.work, GROUP, "--groups", "work=together", "--group-components", f"together={SIZE}")
    (bag,) = lab.ask("status")["bags"]
    assert (bag["done"], bag["cpus"]) == (1, SIZE), "the group is one task"
