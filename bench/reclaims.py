"""How long it takes to free a donated node on which tasks run, as the scheduler's prolog has it done."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from bench.donating_cluster import DonatingCluster, donating_cluster
from bench.stopwatch import seconds
from bench.table import Row
from tests.clusters.slurm import available

ROUNDS = 5
_DONATION = "{mode: agent, runtime_directory: {folder}/donated, patience: 100}"


def rows() -> Iterator[Row]:
    reason = available()
    if reason:
        yield Row("reclaims on a real Slurm", reason)
        return
    with donating_cluster(_DONATION) as cluster:
        bag = cluster.use_all()
        took: list[float] = []
        for _ in range(ROUNDS):
            cluster.wait_for_tasks(bag)
            took += [seconds(partial(_reclaim, cluster, node)) for node in cluster.slurm.options.node_names]
    what = f"reclaim of a node with running tasks, {len(took)} times"
    yield Row(what, f"median {statistics.median(took):.2f} s, longest {max(took):.2f} s", "≤ 1 s")


def _reclaim(cluster: DonatingCluster, node: str) -> None:
    """Raises RuntimeError: there was nothing to reclaim."""
    words = [
        "-I",
        "-m",
        "adaptor_donation_agents.reclaim",
        node,
        "--runtime",
        f"{cluster.slurm.root}/donated",
    ]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    if not done.stdout.strip():
        raise RuntimeError(f"nothing was in use on {node}: {done.stderr}")
