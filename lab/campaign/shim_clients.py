"""Programs that others wrote for Slurm, unchanged, with the shims in PATH and without, on a throwaway Slurm.

    python -m lab.campaign.shim_clients --jobs 100 --python PYTHON
    python -m lab.campaign.shim_clients --scene limits --seconds 6 --client snakemake --python PYTHON
    python -m lab.campaign.shim_clients --client dask-jobqueue --way Slurm --way 1h --way 20m

Prints by client: its version, the turnaround, and how many jobs Slurm was given. PYTHON is one that has the
packages of `CLIENTS`, as by `pip install aiida-core dask-jobqueue parsl qtoolkit
snakemake-executor-plugin-slurm submitit`.
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

from lab.campaign.shim_programs import CLIENTS
from lab.campaign.shim_scenes import SCENES, Others
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
AS_ALLOWED = """
sites:
  slurm:
    backend: slurm
    partition: batch
"""
"""Where the scheduler has limits on jobs, these are ours."""
PATIENCE = 7200.0  # seconds for one run


def version_of(package: str, python: str) -> str:
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def turnaround(folder: Path, words: Sequence[str], environment: Mapping[str, str], jobs: int) -> float:
    """Seconds. Raises SystemExit with what the client has said: it did not come to its right end."""
    began = time.monotonic()
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
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
        lab.configure(AS_ALLOWED if SCENES[options.scene].at_once else SITE)
        path = f"{os.environ['PATH']}:{Path(options.python).parent}"
        environment = {**lab.environment, "ADAPTOR_CONFIG": str(lab.config), "PATH": path}
        if way != "Slurm":
            lab.run("shims", lab.root / "bin", "--max-time", way)
            environment["PATH"] = f"{lab.root / 'bin'}:{path}"
            lab.run("daemon", "start")  # as a user's daemon, it is there
        scene = SCENES[options.scene]
        at_once = options.jobs if way != "Slurm" else min(scene.at_once or options.jobs, options.jobs)
        words = CLIENTS[name].write(
            lab.work,
            options.jobs,
            options.python,
            minutes=options.limit,
            seconds=options.seconds,
            at_once=at_once,
        )
        before = cluster.last_job()
        with Others(cluster, scene).running() as others:
            try:
                seconds = turnaround(lab.work, words, environment, options.jobs)
            finally:
                lab.close()
            count = cluster.last_job() - before - others.submitted
        cluster.clear()
        size = f"{options.jobs} jobs of {options.seconds} s"
        return f"{options.scene}, {way}: {size} in {seconds:.0f} s, {count} Slurm jobs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--client", choices=CLIENTS, action="append", help="default: all that are installed")
    parser.add_argument("--scene", choices=SCENES, default="empty")
    parser.add_argument("--seconds", type=float, default=1, help="runtime of each job")
    parser.add_argument("--times", type=int, default=1, help="repetitions")
    parser.add_argument("--limit", type=int, default=30, help="minutes of a job that keeps its workers")
    parser.add_argument("--way", action="append", help='"Slurm", or --max-time of the shims; default: both')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root, ThrowawaySlurm(SCENES[options.scene].options) as cluster:
        os.environ["SLURM_CONF"] = str(cluster.conf)
        cluster.put_srun_first(Path(root, "bin"))
        for name in options.client or CLIENTS:
            package = CLIENTS[name].package
            version = version_of(package, options.python) if package else ""
            for way in (options.way or ("Slurm", "1h")) * options.times:
                print(f"{name} {version}, {one(cluster, name, way, options)}", flush=True)


if __name__ == "__main__":
    main()
