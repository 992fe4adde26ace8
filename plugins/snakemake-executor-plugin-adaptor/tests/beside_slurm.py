"""The same workflow with `--executor adaptor` and with `--executor slurm`, in turn, on a throwaway Slurm.

    python -m pip install snakemake-executor-plugin-slurm
    python plugins/snakemake-executor-plugin-adaptor/tests/beside_slurm.py --jobs 200

Prints the turnaround of the workflow, and how many jobs Slurm was given.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab

WORKFLOW = """
rule all:
    input: expand("{{n}}.done", n=range({jobs}))
rule one:
    output: "{{n}}.done"
    resources: runtime=2, mem_mb=100
    shell: "sleep 1; touch {{output}}"
"""
SITE = """
sites:
  slurm:
    backend: slurm
    initial_tr: 5m
    limits: {max_proc: 8, max_pending_requests: 2, max_tr: 30m}
"""

OPTIONS: dict[str, tuple[str, ...]] = {
    "adaptor": (),
    "slurm": ("--slurm-no-account", "--slurm-status-command", "squeue"),
}


def turnaround(folder: Path, executor: str, jobs: int, *options: str) -> float:
    folder.mkdir()
    (folder / "Snakefile").write_text(WORKFLOW.format(jobs=jobs))
    began = time.monotonic()
    words = ["snakemake", "--executor", executor, "--jobs", str(jobs), "--latency-wait", "30", *options]
    with (folder / "said").open("w") as said:
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=folder, stdout=said, stderr=said, check=False
        )
    if done.returncode:
        logs = [folder / "said", *(folder / ".snakemake/slurm_logs").rglob("*.log")][:2]
        print(*(log.read_text()[-3000:] for log in logs), sep="\n", file=sys.stderr)
        done.check_returncode()
    assert len(list(folder.glob("*.done"))) == jobs
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--executor", choices=[*OPTIONS], action="append", help="both")
    given_options = parser.parse_args()
    jobs, executors = given_options.jobs, given_options.executor or [*OPTIONS]
    with tempfile.TemporaryDirectory() as folder, ThrowawaySlurm() as cluster:
        os.environ["SLURM_CONF"] = str(cluster.conf)
        root = Path(folder)
        cluster.put_srun_first(root / "bin")
        for executor in executors:
            place = root / executor
            place.mkdir()
            lab = Lab(place)
            lab.configure(SITE)
            os.environ["ADAPTOR_DIR"] = str(lab.state)
            if executor == "adaptor":
                lab.run("daemon", "start")
            before = cluster.last_job()
            seconds = turnaround(place / "flow", executor, jobs, *OPTIONS[executor])
            print(
                f"{executor}: {jobs} jobs in {seconds:.0f} s, {cluster.last_job() - before} Slurm jobs",
                flush=True,
            )
            if executor == "adaptor":
                lab.close()


if __name__ == "__main__":
    main()
