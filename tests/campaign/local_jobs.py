"""Jobs of other users, who want whole nodes and look whether anything of ours is left on them."""

from __future__ import annotations

import os
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
    """Those of one scene."""

    def __init__(self, cluster: ThrowawaySlurm, root: Path) -> None:
        self._cluster = cluster
        self._root = root
        self._names: list[str] = []

    def submit(self, nodes: int) -> str:
        """Raises ClusterError or subprocess.TimeoutExpired: Slurm did not take it."""
        name = f"local-{len(self._names) + 1}"
        script = self._root / f"{name}.sh"
        script.write_text(SCRIPT.format(root=self._root, name=name), encoding="utf-8")
        options = ["-p", "batch", f"-N{nodes}", "--exclusive", "-t2", "-o/dev/null", "-J", name]
        # They come again after a node was lost, as a user's jobs do.
        self._cluster.run(["sbatch", "--requeue", *options, str(script)], timeout=10)
        self._names.append(name)
        return f"{name} on {nodes} nodes"

    def waiting(self) -> list[str]:
        """Those that have not run to their end yet."""
        return [name for name in self._names if not (self._root / f"{name}.ran").exists()]

    def disturbed(self) -> Iterator[str]:
        """What local jobs have found of ours on their nodes."""
        for name in self._names:
            path = self._root / f"{name}.found"
            if path.exists():
                for line in path.read_text(errors="replace").splitlines():
                    yield f"{name} found {line}"

    @property
    def submitted(self) -> int:
        return len(self._names)


def runtime_directory(root: Path) -> Path:
    """Where the nodes of a scene keep what the hooks need."""
    return root / "lent"


def user_folder(root: Path, node: str) -> Path:
    return runtime_directory(root) / str(os.getuid()) / node
