"""Cost of the commands of the shims and of the real ones, one by one, on a throwaway Slurm that is full.

    python -m lab.campaign.shim_rate --jobs 10000 --seconds 300
    python -m lab.campaign.shim_rate --jobs 1000 --seconds 300 --there 9000

Real commands and shims take turns of `TURN` submissions. `--there`: jobs that both sides hold before, by
arrays. Prints the CPU time of the command itself, and of what answers it: slurmctld and munged, or the daemon
and the process of the shims.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from lab.campaign.shim_clients import SITE
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import Lab
from tests.living import until

TURN = 50
ARRAY = 1_000
SUBMIT = ("sbatch", "--time=5", "--output=/dev/null", "--wrap", "true")
QUEUE = ("squeue", "--noheader", "--format=%i %T")
OPTIONS = ClusterOptions(extra=("MaxJobCount=60000", "MaxArraySize=20000"))
SERVERS = {
    "Slurm": ("slurmctld", "munged"),
    "shims": ("adaptor.daemon", "adaptor.shims.serving"),
}


class Side:
    """One way to submit, with what it has taken."""

    def __init__(self, name: str, environment: Mapping[str, str], folder: Path, root: Path) -> None:
        self.name, self.environment, self.folder, self.root = name, environment, folder, root
        self.jobs, self.own, self.servers, self.wall = 0, 0.0, 0.0, 0.0

    def run(self, words: Sequence[str]) -> tuple[float, float]:
        """Seconds of the command's CPU and of its turnaround."""
        before, began = _children(), time.monotonic()
        subprocess.run(words, cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL, check=True)
        return _children() - before, time.monotonic() - began

    def submit(self, jobs: int) -> None:
        before = self.of_servers()
        for _ in range(jobs):
            own, wall = self.run(SUBMIT)
            self.own, self.wall, self.jobs = self.own + own, self.wall + wall, self.jobs + 1
        self.servers += self.of_servers() - before

    def processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter(["cmdline"]):
            line = " ".join(process.info["cmdline"] or ())
            if str(self.root) in line and any(name in line for name in SERVERS[self.name]):
                found.append(process)
        return found

    def of_servers(self) -> float:
        """CPU seconds, with those of children that have ended."""
        return sum(sum(process.cpu_times()[:4]) for process in self.processes())

    def memory(self) -> str:
        sizes = [process.memory_info().rss >> 20 for process in self.processes()]
        return " + ".join(map(str, sorted(sizes, reverse=True)))

    def told(self) -> str:
        own, servers = 1000 * self.own / self.jobs, 1000 * self.servers / self.jobs
        queue, wall = self.run(QUEUE)
        return (
            f"{self.name}: {self.jobs} sbatch in {self.wall:.0f} s, {self.jobs / self.wall:.1f}/s; CPU of"
            f" each {own:.0f} ms, of the servers {servers:.0f} ms; servers hold {self.memory()} MiB;"
            f" squeue of all {wall:.1f} s, {queue:.2f} s CPU"
        )


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _filled(side: Side, jobs: int) -> None:
    for first in range(0, jobs, ARRAY):
        side.run([*SUBMIT[:-2], f"--array=1-{min(ARRAY, jobs - first)}", *SUBMIT[-2:]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--there", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root, ThrowawaySlurm(OPTIONS) as cluster:
        os.environ["SLURM_CONF"] = str(cluster.conf)
        cluster.run(["sbatch", "--time=60", "-N4", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 3600"])
        lab = Lab(Path(root))
        lab.configure(SITE)
        lab.run("shims", lab.root / "bin", "--always")
        real = {**lab.environment, "ADAPTOR_CONFIG": str(lab.config)}
        shims = {**real, "PATH": f"{lab.root / 'bin'}:{os.environ['PATH']}"}
        sides = [Side("Slurm", real, lab.work, cluster.root), Side("shims", shims, lab.work, lab.root)]
        try:
            for side in sides:
                side.run(SUBMIT)  # starts a daemon
                _filled(side, options.there)
            until(lambda: len(sides[1].processes()) > len(SERVERS["shims"]), "a child waits")
            began = time.monotonic()
            while sides[1].jobs < options.jobs and time.monotonic() - began < options.seconds:
                for side in sides:
                    side.submit(min(TURN, options.jobs - side.jobs))
            for side in sides:
                print(side.told(), flush=True)
            size = sum(path.stat().st_size for path in lab.state.rglob("journal*")) >> 10
            print(f"journal: {size} KiB for {options.there + sides[1].jobs} jobs")
        finally:
            lab.close()


if __name__ == "__main__":
    main()
