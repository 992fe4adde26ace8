"""Jobs of other users, who want whole nodes and look whether anything of ours is left on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.clusters.slurm import ThrowawaySlurm

SCRIPT = r"""#!/bin/sh
for node in $(scontrol show hostnames); do
    for file in $(grep -alz "^ADAPTOR_SUPERVISED={root}/lent/.*/$node\$" /proc/[0-9]*/environ 2>/dev/null); do
        pid=$(basename $(dirname $file))
        echo "$node $pid $(tr '\0' ' ' < /proc/$pid/cmdline)" >> {root}/{name}.found
    done
done
sleep 2
touch {root}/{name}.ran
"""


class LocalJobs:
    """Local jobs of one scene."""

    def __init__(self, cluster: ThrowawaySlurm, root: Path) -> None:
        self._cluster = cluster
        self._root = root
        self._nodes: dict[str, int] = {}

    def submit(self, nodes: int) -> str:
        """Raises ClusterError or subprocess.TimeoutExpired: Slurm did not take it."""
        name = f"local-{len(self._nodes) + 1}"
        script = self._root / f"{name}.sh"
        script.write_text(SCRIPT.format(root=self._root, name=name), encoding="utf-8")
        self._ask(name, nodes)
        self._nodes[name] = nodes
        return f"{name} on {nodes} nodes"

    def waiting(self) -> list[str]:
        """Jobs that have not run to their end; one that was lost with its node is submitted again."""
        late = [name for name in self._nodes if not (self._root / f"{name}.ran").exists()]
        if late:
            queue = self._cluster.run(["squeue", "-h", "-o", "%j"], timeout=10).split()
            for name in set(late) - set(queue):
                self._ask(name, self._nodes[name])
        return late

    def _ask(self, name: str, nodes: int) -> None:
        options = ["-p", "batch", f"-N{nodes}", "--exclusive", "-t2", "-o/dev/null", "-J", name]
        script = self._root / f"{name}.sh"
        self._cluster.run(["sbatch", "--requeue", *options, str(script)], timeout=10)

    def disturbed(self) -> Iterator[str]:
        """Processes of ours that local jobs have found on their nodes."""
        for name in self._nodes:
            path = self._root / f"{name}.found"
            if path.exists():
                for line in path.read_text(errors="replace").splitlines():
                    yield f"{name} found {line}"


def runtime_directory(root: Path) -> Path:
    """Folder in which the nodes of a scene keep the files of the hooks."""
    return root / "lent"
