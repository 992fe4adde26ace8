"""A cluster of Dask by the adaptor beside dask-jobqueue's: the same calls, workers and queue of others' jobs.

    python -m lab.campaign.dask_clusters --scene busy --calls 200 --seconds 2 --workers 8

Needs dask-jobqueue (`pip install dask-jobqueue`), Slurm and, for scenes with limits, its accounting.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

from lab.campaign.shim_scenes import SCENES, Others
from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import LONG, Lab, site

PROGRAM = """
    import sys, time
    from distributed import Client
    {module}

    def work(number):
        time.sleep({seconds})
        return number

    if __name__ == "__main__":
        begun = time.monotonic()
        with {cluster} as cluster, Client(cluster) as client:
            {scale}
            results = client.gather(client.map(work, range({calls})))
            assert sorted(results) == list(range({calls}))
            print(time.monotonic() - begun)
"""
WAYS = {
    "dask-jobqueue": (
        "from dask_jobqueue import SLURMCluster",
        'SLURMCluster(cores=1, memory="200MB", walltime="00:{minutes:02}:00", queue="batch", interface="lo",'
        ' python=sys.executable, log_directory="logs", local_directory="/tmp")',
        "cluster.scale(jobs={workers})",
    ),
    "adaptor": (
        "from adaptor.dask import AdaptorCluster",
        'AdaptorCluster({workers}, lifetime="{minutes}m")',
        "",
    ),
}


def program(way: str, chosen: argparse.Namespace) -> str:
    module, cluster, scale = WAYS[way]
    return PROGRAM.format(
        module=module,
        cluster=cluster.format(**vars(chosen)),
        scale=scale.format(**vars(chosen)) or "pass",
        **vars(chosen),
    )


def played(scene: str, way: str, text: str) -> tuple[float, int]:
    """Seconds until all results are there, and the jobs that were submitted."""
    with ThrowawaySlurm(SCENES[scene].options) as cluster, tempfile.TemporaryDirectory() as folder:
        os.environ.update(cluster.env)
        lab = Lab(Path(folder))
        lab.configure(site("slurm", initial_tr="2m", idle_timeout=10))
        try:
            with Others(cluster, SCENES[scene]).running():
                time.sleep(5)  # the queue is full
                process = lab.program(textwrap.dedent(text))
                out, err = process.communicate(timeout=LONG)
                if process.returncode:
                    raise SystemExit(err)
                seen = cluster.run(["squeue", "-h", "-r", "-t", "all", "-o", "%j"]).split()
                return float(out.split()[-1]), sum(name != "others" for name in seen)
        finally:
            lab.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scene", choices=SCENES, action="append")
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=2.0, help="of a call")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--minutes", type=int, default=2, help="for which a worker lives")
    chosen = parser.parse_args()
    if subprocess.run([sys.executable, "-c", "import dask_jobqueue"], capture_output=True).returncode:
        raise SystemExit("dask-jobqueue is not installed: pip install dask-jobqueue")
    for scene in chosen.scene or ["empty", "busy"]:
        for way in chosen.way or WAYS:
            took, jobs = played(scene, way, program(way, chosen))
            print(f"{scene}, {way}: {took:.0f} s, {jobs} jobs", flush=True)


if __name__ == "__main__":
    main()
