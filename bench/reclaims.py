"""How long it takes to free a donated node on which tasks run, as the scheduler's prolog has it done."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from bench.donating_cluster import LentCluster, donating_cluster
from bench.stopwatch import seconds
from bench.table import Row
from tests.clusters.slurm import available

ROUNDS = 5
_DONATION = "{mode: agent, runtime_directory: {folder}/lent, patience: 100}"


def rows() -> Iterator[Row]:
    reason = available()
    if reason:
        yield Row("reclaims on a real Slurm", reason)
        return
    with donating_cluster(_DONATION) as lent:
        bag = lent.lend()
        took: list[float] = []
        for _ in range(ROUNDS):
            lent.is_lent(bag)
            took += [seconds(partial(_reclaim, lent, node)) for node in lent.slurm.options.node_names]
    what = f"reclaim of a node with running tasks, {len(took)} times"
    yield Row(what, f"median {statistics.median(took):.2f} s, longest {max(took):.2f} s", "≤ 1 s")


def _reclaim(lent: LentCluster, node: str) -> None:
    """Raises RuntimeError: there was nothing to reclaim."""
    words = ["-I", "-m", "adaptor.node_agent.reclaim", node, "--runtime", f"{lent.slurm.root}/lent"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    if not done.stdout.strip():
        raise RuntimeError(f"nothing was lent on {node}: {done.stderr}")
