"""A throwaway Slurm whose idle nodes a user's bag may use in agent mode, with its prolog and epilog."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adaptor.processes.python_commands import isolated_command
from tests.campaign.lender import LenderLab
from tests.clusters.slurm import ThrowawaySlurm
from tests.clusters.slurm_conf import ClusterOptions
from tests.e2e.lab import Lab

SITE = """
sites:
  hpc:
    backend: slurm
    partition: batch
    limits: {{max_pending_requests: 2, max_proc: 16, max_tr: 60m}}
    idle_timeout: 5
    poll_interval: 1
    donation: {{mode: agent, choose: all, runtime_directory: {runtime}, reclaim_timeout: 5s}}
daemon:
  worker_timeout: 8
"""
TASK = """#!/bin/sh
# Names itself, and one that has fled: into another session, without its environment, deaf to SIGTERM.
pids=$PWD/pids/${ADAPTOR_SUPERVISED##*/}
echo "$$ $(cut -d' ' -f22 /proc/$$/stat)" >>"$pids"
trap '' TERM
[ "$1" = fleeing ] && { setsid env -i sh "$PWD/fled.sh" "$pids" & }
sleep 15 & sleep 15
"""
FLED = """#!/bin/sh
echo "$$ $(cut -d' ' -f22 /proc/$$/stat)" >>"$1"
trap '' TERM HUP
sleep 40
"""


@contextmanager
def lending_scene(root: Path) -> Iterator[tuple[ThrowawaySlurm, LenderLab]]:
    hooks = root / "hooks"
    lines = (
        f"Prolog={hooks}/adaptor-prolog",
        f"Epilog={hooks}/adaptor-epilog",
        "PrologFlags=Alloc,DeferBatch",
    )
    lab = LenderLab(root)
    lab.configure(SITE.format(runtime=root / "lent"))
    install = Lab.command(lab, "site", "install-hooks", "hpc", "--write", hooks, "--user", str(lab.uid))
    subprocess.run(install, env=lab.environment, cwd=root, check=True, capture_output=True)
    for offer in ([], ["--offer"]):  # the first prolog makes the runtime folder, and the lender's in it
        options = [f"--runtime={root}/lent", f"--user={lab.uid}", "--job=0", *offer]
        subprocess.run(
            isolated_command(sys.executable, "adaptor.node_agent.reclaim", "n1", *options), check=True
        )
    with ThrowawaySlurm(ClusterOptions(extra=lines)) as cluster:
        lab.use(cluster.env)
        for name, text in (("task.sh", TASK), ("fled.sh", FLED)):
            (lab.work / name).write_text(text)
        for folder, mode in (("pids", 0o777), ("jobs", 0o777)):
            (lab.work / folder).mkdir()
            (lab.work / folder).chmod(mode)
        try:
            yield cluster, lab
        finally:
            lab.close()
