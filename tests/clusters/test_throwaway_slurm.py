"""The throwaway cluster itself: it starts, works and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.clusters.slurm import ThrowawaySlurm, available
from tests.clusters.slurm_conf import ClusterOptions, Partition
from tests.clusters.throwaway import ClusterError
from tests.e2e.lab import LONG
from tests.living import is_gone, until

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(available() is not None, reason=available() or ""),
]


def _of(cluster: ThrowawaySlurm) -> set[psutil.Process]:
    """Its daemons and what they started; other clusters of this test run have theirs."""
    found = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd().startswith(str(cluster.root)):
                found.add(process)
    return found


def test_jobs_run_and_nothing_is_left_of_them(tmp_path: Path) -> None:
    options = ClusterOptions(
        nodes=2, cpus=3, partitions=(Partition("only", "Default=YES MaxTime=20"),), extra=("MaxJobCount=50",)
    )
    with ThrowawaySlurm(options) as cluster:
        assert "only*" in cluster.run(["sinfo", "-h"])
        assert "MaxJobCount             = 50" in cluster.run(["scontrol", "show", "config"])
        detaching = f"setsid bash -c 'echo $$ > {tmp_path}/detached; exec sleep 600' & "
        cluster.run(["sbatch", "-n6", "-o", "/dev/null", f"--wrap={detaching} srun -n6 sleep 600"])
        steps = ["squeue", "-h", "-s"]
        until(lambda: len(cluster.run(steps).splitlines()) >= 2, "the job and its step run")
        detached = tmp_path / "detached"
        until(lambda: detached.exists() and detached.read_text().endswith("\n"), "what it detaches runs")
        detached_one = psutil.Process(int(detached.read_text()))
        started = {*_of(cluster), detached_one}
    assert not cluster.root.exists()
    assert len(started) > 4, "munged, slurmctld, two slurmd and the job"
    assert [process for process in started if not is_gone(process)] == []


def test_the_controller_and_nodes_can_go_and_come_back() -> None:
    with ThrowawaySlurm(ClusterOptions(nodes=2)) as cluster:
        for kill in (False, True):
            cluster.stop_controller(kill=kill)
            assert cluster.run(["scontrol", "ping"], check=False).count("DOWN") == 1
            cluster.start_controller()
        cluster.stop_node("n2")
        cluster.run(["scontrol", "update", "nodename=n2", "state=down", "reason=test"])
        cluster.start_node("n2")
        cluster.wait_ready()


def test_a_cluster_that_cannot_start_says_why_and_cleans_up() -> None:
    cluster = ThrowawaySlurm(ClusterOptions(nodes=1, extra=("NoSuchSetting=1",)))
    with pytest.raises(ClusterError, match="NoSuchSetting"):
        cluster.start()
    assert not cluster.root.exists()


def test_as_a_program_it_says_how_to_use_it_and_ends_on_sigterm() -> None:
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.clusters.slurm", "--nodes", "1"],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    lines = []
    for line in program.stdout:
        lines.append(line)
        if "Ctrl-C" in line:
            break
    (export,) = [line.strip() for line in lines if "export SLURM_CONF=" in line]
    conf = Path(export.partition("=")[2])
    assert conf.exists()
    os.kill(program.pid, signal.SIGTERM)
    assert program.wait(LONG) == 0
    assert not conf.parent.exists()
