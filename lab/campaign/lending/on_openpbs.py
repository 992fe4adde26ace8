"""Lending on a throwaway OpenPBS, with its hook."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from lab.campaign.lending.lender import LenderLab
from lab.campaign.lending.scene import LendingScene, lender
from tests.clusters.openpbs import ThrowawayOpenPbs


class OpenPbsScene(LendingScene):
    def __init__(self, cluster: ThrowawayOpenPbs, lab: LenderLab) -> None:
        self._cluster, self.lab = cluster, lab
        self.nodes = cluster.nodes
        self._jobs: dict[str, str] = {}

    def submit(self, node: str, script: Path) -> None:
        place = ["-l", f"select=1:ncpus=4:host={node}", "-l", "place=excl", "-l", "walltime=120"]
        options = ["-q", "workq", *place, "-j", "oe", "-o", "/dev/null", "--", "/bin/sh", str(script)]
        self._jobs[node] = self._cluster.run(["qsub", *options]).strip()

    def is_held(self, node: str) -> bool:
        return self._jobs.get(node) in self._cluster.run(["qselect"], check=False).split()


@contextmanager
def openpbs_scene(root: Path) -> Iterator[OpenPbsScene]:
    lending = lender(root, "pbs", "workq", _account_at_rest(), _launcher(root))
    with lending as (lab, told), ThrowawayOpenPbs() as cluster:
        commands = [shlex.split(line) for line in told if line.strip().startswith("qmgr -c ")]
        cluster.qmgr(*(command[-1] for command in commands))
        lab.use(cluster.env)
        try:
            yield OpenPbsScene(cluster, lab)
        finally:
            lab.close()


def _launcher(folder: Path) -> list[str]:
    """Runs a command with the host name of a node, as the node's own daemons have it, whoever calls it."""
    unshare, hostname = (_with_sys_admin(program, folder) for program in ("unshare", "hostname"))
    return [str(unshare), "--uts", "sh", "-c", f'{hostname} "$0" && exec "$@"', "{node}"]


def _with_sys_admin(program: str, folder: Path) -> Path:
    """A copy of a program that has CAP_SYS_ADMIN, which it takes to change a host name (capabilities(7))."""
    copy = folder / program
    shutil.copy(shutil.which(program) or program, copy)
    revision_2_effective, sys_admin = 0x02000001, 1 << 21
    os.setxattr(copy, "security.capability", struct.pack("<5I", revision_2_effective, sys_admin, 0, 0, 0))
    return copy


def _account_at_rest() -> int:
    """PBS answers those only who have an account; this one runs nothing here."""
    busy = {process.info["uids"].real for process in psutil.process_iter(["uids"]) if process.info["uids"]}
    return next(each.pw_uid for each in pwd.getpwall() if each.pw_uid and each.pw_uid not in busy)
