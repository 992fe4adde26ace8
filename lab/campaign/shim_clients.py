"""Programs that others wrote for Slurm, unchanged, with the shims in PATH and without, on a throwaway Slurm.

    python -m lab.campaign.shim_clients --jobs 100 --python PYTHON
    python -m lab.campaign.shim_clients --busy --client snakemake --python PYTHON
    python -m lab.campaign.shim_clients --client dask-jobqueue --way Slurm --way 1h --way 20m

Prints by client: its version, the turnaround, and how many jobs Slurm was given. PYTHON is one that has the
packages of `CLIENTS`, as by `pip install aiida-core dask-jobqueue parsl qtoolkit
snakemake-executor-plugin-slurm submitit`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.campaign.shim_programs import CLIENTS
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
BUSY = ("--parsable", "--time=1", "-N1", "--exclusive", "--output=/dev/null", "--job-name=others")
"""Jobs of other users: each has a node, and `QUEUED` of them always wait."""
SECONDS, QUEUED = 10, 8


def version_of(package: str, python: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


class Others:
    """Jobs of other users, of which some always wait, until it is left."""

    def __init__(self, cluster: ThrowawaySlurm) -> None:
        self.cluster = cluster
        self.submitted = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._submit)

    def __enter__(self) -> Others:
        self._fill()
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ends.set()
        self._thread.join()

    def _submit(self) -> None:
        while not self._ends.wait(1.0):
            self._fill()

    def _fill(self) -> None:
        waiting = self.cluster.run(["squeue", "-h", "-t", "PD", "-n", "others", "-o", "%i"]).split()
        for _ in range(QUEUED - len(waiting)):
            self.cluster.run(["sbatch", *BUSY, "--wrap", f"sleep {SECONDS}"])
            self.submitted += 1


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


def one(cluster: ThrowawaySlurm, name: str, way: str, options: argparse.Namespace) -> str:
    """A line about one run. `way`: "Slurm", or the option of `adaptor shims`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        lab = Lab(Path(place))
        lab.configure(SITE)
        path = f"{os.environ['PATH']}:{Path(options.python).parent}"
        environment = {**lab.environment, "ADAPTOR_CONFIG": str(lab.config), "PATH": path}
        if way != "Slurm":
            lab.run("shims", lab.root / "bin", "--max-time", way)
            environment["PATH"] = f"{lab.root / 'bin'}:{path}"
            lab.run("daemon", "start")  # as a user's daemon, it is there
        words = CLIENTS[name].write(lab.work, options.jobs, options.python, options.limit)
        before = cluster.last_job()
        with Others(cluster) if options.busy else contextlib.nullcontext() as others:
            try:
                seconds = turnaround(lab.work, words, environment, options.jobs)
            finally:
                lab.close()
            count = cluster.last_job() - before - (others.submitted if others else 0)
        cluster.clear()
        busy = ", busy" if options.busy else ""
        return f"{way}{busy}: {options.jobs} jobs in {seconds:.0f} s, {count} Slurm jobs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--client", choices=CLIENTS, action="append", help="default: all that are installed")
    parser.add_argument("--busy", action="store_true", help="jobs of other users always wait")
    parser.add_argument("--limit", type=int, default=30, help="minutes of a job that keeps its workers")
    parser.add_argument("--way", action="append", help='"Slurm", or --max-time of the shims; default: both')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root, ThrowawaySlurm() as cluster:
        os.environ["SLURM_CONF"] = str(cluster.conf)
        cluster.put_srun_first(Path(root, "bin"))
        for name in options.client or CLIENTS:
            package = CLIENTS[name].package
            version = version_of(package, options.python) if package else ""
            for way in options.way or ("Slurm", "1h"):
                print(f"{name} {version}, {one(cluster, name, way, options)}", flush=True)


if __name__ == "__main__":
    main()
