"""A task on several nodes of a pilot, with MPI, on a real Slurm."""

from __future__ import annotations

import ctypes.util
import os
import re
import shutil
import sys
from pathlib import Path

import psutil
import pytest

from tests.clusters.slurm import ThrowawaySlurm
from tests.e2e.lab import Lab, exactly_one_result_each, site
from tests.living import until

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        not shutil.which("mpiexec.mpich") or not ctypes.util.find_library("mpich"),
        reason="no MPICH here (Debian package mpich)",
    ),
]

SITE = site("slurm", (1, 8, "20m"), initial_tr="1m", idle_timeout=20)
SLEEP = ["sleep", f"98765.{os.getpid()}"]
"""Other runs of these tests have theirs."""
HELLO = Path(__file__).with_name("mpi_hello.py")


def test_mpi_over_two_nodes_of_a_pilot(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    mpiexec = f"mpiexec.mpich -f $ADAPTOR_NODEFILE -n 4 {sys.executable} {HELLO}"
    lab.bag([f"echo $ADAPTOR_NODES $(tr '\\n' ' ' < $ADAPTOR_NODEFILE); {mpiexec}"] * 2)
    lab.run("run", "tasks.bag", "--nodes", "2", "--cpus", "4", timeout=200)
    exactly_one_result_each(lab, 1, 2)
    for task in lab.results(1):
        text = Path(task["stdout"]).read_text()
        count, *nodes = text.partition("\n")[0].split()
        assert (count, ",".join(nodes)) == ("2", task["node"])
        hellos = re.findall(r"hello (\d) of 4 on (\w+), sum (\d)", text)
        assert sorted(rank for rank, _, _ in hellos) == ["0", "1", "2", "3"]
        assert {node for _, node, _ in hellos} == set(nodes), "ranks on both nodes"
        assert {total for _, _, total in hellos} == {"6"}, "the ranks have heard of each other"


def test_nothing_is_left_on_any_node_of_a_task_that_is_cancelled(slurm: ThrowawaySlurm, lab: Lab) -> None:
    lab.configure(SITE)
    lab.bag([f"exec mpiexec.mpich -f $ADAPTOR_NODEFILE -n 2 {' '.join(SLEEP)}"])
    lab.submit("tasks.bag", "--nodes", "2", "--cpus", "4")
    until(lambda: len(sleepers()) == 2, "a rank sleeps on each node")
    lab.run("cancel", "1")
    until(lambda: not sleepers(), "both are ended")
    (task,) = lab.results(1)
    assert task["state"] == "cancelled"
    until(lambda: not list(lab.state.glob("pilots/*/nodes-*")), "their list of nodes is removed")


def sleepers() -> list[psutil.Process]:
    return [each for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == SLEEP]
