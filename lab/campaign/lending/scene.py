"""A throwaway cluster whose idle nodes a user's bag may use in agent mode, freed by the scheduler's hooks."""

from __future__ import annotations

import abc
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from adaptor.processes.commands import isolated_command
from lab.campaign.lending.lender import UID, LenderLab
from tests.e2e.lab import Lab

SITE = """
sites:
  hpc:
    backend: {backend}
    partition: {partition}
    limits: {{max_pending_requests: 2, max_proc: 16, max_tr: 60m}}
    idle_timeout: 5
    poll_interval: 1
    donation:
      {{mode: agent, choose: all, launcher: {launcher}, runtime_directory: {runtime}, reclaim_timeout: 8s}}
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


class LendingScene(abc.ABC):
    """The cluster and the lender."""

    nodes: tuple[str, ...]
    lab: LenderLab

    @abc.abstractmethod
    def submit(self, node: str, script: Path) -> None:
        """A local job for a whole node."""

    @abc.abstractmethod
    def is_held(self, node: str) -> bool:
        """Whether a local job waits for this node, or has it."""


@contextmanager
def lender(
    root: Path, backend: str, partition: str, uid: int = UID, launcher: Sequence[str] = ()
) -> Iterator[tuple[LenderLab, list[str]]]:
    """One who may lend nodes, and what the administrator is told; the hooks are in `root`/hooks."""
    lab = LenderLab(root, uid)
    runtime = root / "lent"
    lab.configure(
        SITE.format(backend=backend, partition=partition, launcher=json.dumps(launcher), runtime=runtime)
    )
    hooks = ["site", "install-hooks", "hpc", "--write", root / "hooks", "--user", str(lab.uid)]
    told = subprocess.run(
        Lab.command(lab, *hooks), env=lab.environment, cwd=root, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    for offer in ([], ["--offer"]):  # the first prolog makes the runtime folder, and the lender's in it
        options = [f"--runtime={root}/lent", f"--user={lab.uid}", "--job=0", *offer]
        reclaim = isolated_command(sys.executable, "adaptor_donation_agents.reclaim", "n1", *options)
        subprocess.run(reclaim, check=True, stdout=subprocess.DEVNULL)
    for name, text in (("task.sh", TASK), ("fled.sh", FLED)):
        (lab.work / name).write_text(text)
    for folder in ("pids", "jobs"):
        (lab.work / folder).mkdir()
        (lab.work / folder).chmod(0o777)
    try:
        yield lab, told
    finally:
        lab.close()
