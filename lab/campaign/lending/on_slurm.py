"""Lending on a throwaway Slurm, with its prolog and epilog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.campaign.lending.lender import LenderLab
from lab.campaign.lending.scene import LendingScene, lender
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions


class SlurmScene(LendingScene):
    def __init__(self, cluster: ThrowawaySlurm, lab: LenderLab) -> None:
        self._cluster, self.lab = cluster, lab
        self.nodes = tuple(cluster.options.node_names)

    def submit(self, node: str, script: Path) -> None:
        options = ["-pbatch", f"-w{node}", "-N1", "--exclusive", "-t2", "-o/dev/null", f"-D{script.parent}"]
        self._cluster.run(["sbatch", *options, str(script)])

    def is_held(self, node: str) -> bool:
        return bool(self._cluster.run(["squeue", "-h", "-w", node], check=False).strip())


@contextmanager
def slurm_scene(root: Path) -> Iterator[SlurmScene]:
    with lender(root, "slurm", "batch") as (lab, _):
        lines = (
            f"Prolog={root}/hooks/adaptor-prolog",
            f"Epilog={root}/hooks/adaptor-epilog",
            "PrologFlags=Alloc,DeferBatch",
        )
        with ThrowawaySlurm(ClusterOptions(extra=lines)) as cluster:
            lab.use(cluster.env)
            try:
                yield SlurmScene(cluster, lab)
            finally:
                lab.close()
