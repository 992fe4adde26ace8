"""Programs that others wrote for Slurm, unchanged, with the shims in PATH and without, on a throwaway Slurm.

    python -m tests.campaign.shim_clients --jobs 100
    python -m tests.campaign.shim_clients --snakemake PYTHON

Prints by client: its version, the turnaround, and how many jobs Slurm was given. PYTHON is one that has
snakemake and snakemake-executor-plugin-slurm.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab

SITE = """
sites:
  slurm:
    backend: slurm
    partition: batch
    initial_tr: 5m
    limits: {max_proc: 16, max_pending_requests: 2, max_tr: 30m}
"""
LOOP = """
for i in $(seq {jobs}); do
    sbatch --parsable --time=5 --output=/dev/null --wrap "sleep 1; touch $i.done" >> ids || exit 1
done
while [ -n "$(squeue --noheader --jobs=$(paste -sd, ids) 2> /dev/null)" ]; do sleep 1; done
"""
SUBMITIT = """
import sys, time
import submitit

def work(number):
    time.sleep(1)
    return 2 * number

executor = submitit.SlurmExecutor(folder="log", max_num_timeout=1)
executor.update_parameters(time=5, job_name="work", comment="a comment", cpus_per_task=1)
{submit}
assert [job.result() for job in jobs] == [2 * number for number in range({jobs})]
while any(job.state in ("PENDING", "RUNNING") for job in jobs):  # as sacct said it last
    time.sleep(1)
    jobs[0].watcher.update()
assert {{job.state for job in jobs}} <= {{"COMPLETED", "UNKNOWN"}}  # unknown without accounting
for number in range({jobs}):
    open(f"{{number}}.done", "w").close()
"""
ONE_BY_ONE = "jobs = [executor.submit(work, number) for number in range({jobs})]"
ARRAY = "jobs = executor.map_array(work, range({jobs}))"
SNAKEFILE = """
rule all:
    input: expand("{{n}}.done", n=range({jobs}))
rule one:
    output: "{{n}}.done"
    resources: runtime=5, mem_mb=100
    shell: "sleep 1; touch {{output}}"
"""
SNAKEMAKE = ("--executor", "slurm", "--slurm-no-account", "--slurm-status-command", "squeue")


def words_of(client: str, folder: Path, jobs: int, snakemake: str) -> Sequence[str]:
    """The command line of a client; its files are put into the folder."""
    if client == "a loop of sbatch":
        return ["sh", "-c", LOOP.format(jobs=jobs)]
    if client == "snakemake":
        (folder / "Snakefile").write_text(SNAKEFILE.format(jobs=jobs))
        return [snakemake, "-m", "snakemake", *SNAKEMAKE, "--jobs", str(jobs), "--latency-wait", "30"]
    submit = (ARRAY if "map_array" in client else ONE_BY_ONE).format(jobs=jobs)
    (folder / "program.py").write_text(SUBMITIT.format(submit=submit, jobs=jobs))
    return [sys.executable, "program.py"]


def version_of(client: str, snakemake: str) -> str:
    package = "submitit" if "submitit" in client else "snakemake-executor-plugin-slurm"
    if client == "a loop of sbatch":
        return ""
    python = snakemake if client == "snakemake" else sys.executable
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def turnaround(folder: Path, words: Sequence[str], environment: Mapping[str, str], jobs: int) -> float:
    """Seconds. Raises SystemExit with what the client has said: it did not come to its right end."""
    began = time.monotonic()
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=1500
    )
    seconds = time.monotonic() - began
    made = len(list(folder.glob("*.done")))
    if done.returncode or made != jobs:
        logs = [path.read_text()[-2000:] for path in (folder / ".snakemake/slurm_logs").rglob("*.log")][:1]
        said = "\n".join((done.stdout[-2000:], done.stderr[-4000:], *logs))
        raise SystemExit(f"{shlex.join(words)}: exit code {done.returncode}, {made} of {jobs} made\n{said}")
    return seconds


CLIENTS = ("a loop of sbatch", "submitit submit", "submitit map_array", "snakemake")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--snakemake", metavar="PYTHON", default="")
    parser.add_argument("--client", choices=CLIENTS, action="append", help="default: all")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root, ThrowawaySlurm() as cluster:
        os.environ["SLURM_CONF"] = str(cluster.conf)
        cluster.put_srun_first(Path(root, "bin"))
        for client in options.client or CLIENTS:
            if client == "snakemake" and not options.snakemake:
                continue
            for way in ("Slurm", "shims"):
                place = Path(root, f"{client}-{way}".replace(" ", "-"))
                place.mkdir()
                lab = Lab(place)
                lab.configure(SITE)
                environment = {**lab.environment, "ADAPTOR_CONFIG": str(lab.config)}
                if way == "shims":
                    lab.run("shims", place / "bin")
                    environment["PATH"] = f"{place / 'bin'}:{environment['PATH']}"
                words = words_of(client, lab.work, options.jobs, options.snakemake)
                before = cluster.last_job()
                try:
                    seconds = turnaround(lab.work, words, environment, options.jobs)
                finally:
                    lab.close()
                version = version_of(client, options.snakemake)
                count = cluster.last_job() - before
                print(
                    f"{client} {version}, {way}: {options.jobs} jobs in {seconds:.0f} s, {count} Slurm jobs",
                    flush=True,
                )


if __name__ == "__main__":
    main()
